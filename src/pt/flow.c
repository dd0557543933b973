// SPDX-License-Identifier: GPL-2.0-or-later
#include "pt/flow.h"

#include <stdlib.h>
#include <string.h>

#include "base/le.h"
#include "pt/packet.h"
#include "pt/walk.h"

const char *const ipt_gap_names[IPT_GAPS] = {
	[IPT_GAP_NONE] = "none",
	[IPT_GAP_OVERFLOW] = "overflow",
	[IPT_GAP_LOST] = "lost trace",
	[IPT_GAP_CUT] = "cut off packet",
	[IPT_GAP_PACKET] = "unknown packet",
	[IPT_GAP_NO_CODE] = "code not found, or not a valid instruction",
	[IPT_GAP_FOREIGN] = "the binary was not found",
	[IPT_GAP_CALL] = "a return whose call was in a binary that was not found",
	[IPT_GAP_TNT] = "a TNT packet, but the code has no conditional branch here",
	[IPT_GAP_TIP] = "a TIP packet, but the code has no indirect branch here",
	[IPT_GAP_RETURN] = "a TNT packet says \"not taken\" at a return",
	[IPT_GAP_FUP] = "a FUP packet with an address that the code does not reach",
	[IPT_GAP_OFF] = "a branch packet does not match the tracing state (on or off)",
	[IPT_GAP_ENDLESS] = "an infinite loop without packets",
};

/* Keeps what rarely runs out of the way of run_packets(). */
#define RARE __attribute__((noinline, cold))

/* Those that wait for an address get it; 0: they have none. */
static void put_notes(struct ipt_flow *f, uint64_t address)
{
	for (unsigned i = 0; i < f->nr_notes; i++) {
		const struct ipt_note *note = &f->notes[i];

		ipt_put_note(f, (enum note_kind)note->kind, note->ip ? address : 0, note->value);
	}
	f->nr_notes = 0;
}

static uint64_t address_of(const struct ipt_flow *f)
{
	return f->at.place.base + f->at.block->start;
}

uint64_t ipt_flow_at(const struct ipt_flow *f)
{
	return f->at.block ? address_of(f) : 0;
}

/* Packets */

/* The highest of the bits is the oldest. */
static enum ipt_gap take_tnt(struct ipt_flow *f, uint64_t bits, unsigned nr)
{
	struct ipt_block *b = f->at.block;
	size_t known = f->nr;
	unsigned steps = 0;

	while (nr) {
		if (b->kind == IPT_COND) { /* most blocks */
			b = ipt_branch_if(f, b, bits >> --nr & 1);
			steps = 0;
			continue;
		}
		switch (b->kind) {
		case IPT_ON:
		case IPT_JUMP:
		case IPT_CALL:
			if (!steps)
				known = f->nr;
			b = ipt_run(f, b);
			if (++steps > IPT_MAX_STEPS) {
				f->nr = known;
				return ipt_stop_at(f, b, IPT_GAP_ENDLESS);
			}
			break;
		case IPT_RETURN:
			if (f->nr_returns) {
				if (!(bits >> --nr & 1))
					return ipt_stop_at(f, b, IPT_GAP_RETURN);
				b = ipt_return_to_call(f, b);
				steps = 0;
				break;
			}
			if (f->doubt)
				return ipt_stop_at(f, b, IPT_GAP_CALL);
			/* fall through */
		case IPT_JUMP_ANY:
		case IPT_CALL_ANY:
		case IPT_ENTER:
		case IPT_LEAVE:
			f->tnt = bits;
			f->nr_tnt = nr;
			return ipt_stop_at(f, b, IPT_GAP_NONE);
		case IPT_NOTHING: return ipt_stop_at(f, b, ipt_no_code(f, b));
		default: return ipt_stop_at(f, b, IPT_GAP_TNT);
		}
	}
	return ipt_stop_at(f, b, IPT_GAP_NONE);
}

static void arrive(struct ipt_flow *f, uint64_t ip)
{
	f->wide = f->next_wide;
	f->mode_info = false;
	ipt_go_to(f, ip);
}

static void begin_at(struct ipt_flow *f, uint64_t ip, enum ipt_branch_kind kind)
{
	ipt_time_passed(f); /* there may have been no packet with a time yet */
	arrive(f, ip);
	f->unsaid = f->at.block == &f->nowhere && f->foreign;
	if (!f->unsaid)
		ipt_put(f, kind, 0, ip, 0);
}

/* The code that follows is not traced, or that of a guest, which is not known. */
static void leave(struct ipt_flow *f)
{
	f->at.block = NULL;
	f->at_fup = f->mode_info = f->unsaid = false;
	f->guest = f->next_guest;
}

/*
 * The trace is off, or the code is foreign: then it goes on at the first target that is not. Erratum SKD010: the
 * FUP packet that says where the trace goes on after an overflow may be missing.
 */
static enum ipt_gap begin_at_target(struct ipt_flow *f, uint64_t ip)
{
	if (!ip || !(f->after_ovf || f->adrift))
		return f->adrift ? IPT_GAP_NONE : IPT_GAP_OFF;
	f->after_ovf = false;
	f->guest = f->next_guest;
	if (f->guest) {
		f->adrift = false;
		return IPT_GAP_NONE;
	}
	begin_at(f, ip, IPT_DID_BEGIN);
	if (f->adrift && f->unsaid)
		f->at.block = NULL;
	f->adrift &= f->unsaid;
	f->unsaid &= !f->adrift;
	return IPT_GAP_NONE;
}

/* The trace is off, or in a guest, which is left at a target outside of it. */
static RARE enum ipt_gap take_tip_off(struct ipt_flow *f, uint64_t ip)
{
	if (!f->guest)
		return begin_at_target(f, ip);
	f->after_ovf = false;
	f->guest = f->next_guest;
	if (!f->guest && ip)
		begin_at(f, ip, IPT_DID_BEGIN);
	return IPT_GAP_NONE;
}

static RARE enum ipt_gap take_tip_at_fup(struct ipt_flow *f, uint64_t ip)
{
	f->at_fup = false;
	if (f->next_guest) {
		if (!f->unsaid)
			ipt_put(f, IPT_DID_PAUSE, address_of(f), 0, 0);
		leave(f);
	} else if (f->unsaid) {
		begin_at(f, ip, IPT_DID_BEGIN);
	} else {
		ipt_put(f, IPT_DID_INTERRUPT, address_of(f), ip, 0);
		arrive(f, ip);
	}
	return IPT_GAP_NONE;
}

/* An instruction enters a guest. */
static RARE enum ipt_gap enter_guest(struct ipt_flow *f)
{
	if (f->nr_tnt)
		return IPT_GAP_TNT;
	f->insns += f->at.block->insns;
	ipt_put_after(f, IPT_DID_END, f->at.block, 0);
	leave(f);
	return IPT_GAP_NONE;
}

static enum ipt_gap take_tip(struct ipt_flow *f, uint64_t ip)
{
	static const uint8_t kinds[] = {
		[IPT_RETURN] = IPT_DID_RETURN, [IPT_JUMP_ANY] = IPT_DID_JUMP_ANY,
		[IPT_CALL_ANY] = IPT_DID_CALL, [IPT_ENTER] = IPT_DID_ENTER,
		[IPT_LEAVE] = IPT_DID_LEAVE,
	};
	enum ipt_gap gap;
	unsigned nr_tnt = f->nr_tnt;
	struct ipt_block *b;

	if (!f->at.block)
		return take_tip_off(f, ip);
	if (f->at_fup)
		return take_tip_at_fup(f, ip);
	gap = ipt_walk(f);
	if (gap) {
		f->resume = gap == IPT_GAP_FOREIGN ? ip : 0;
		return gap;
	}
	b = f->at.block;
	if (b->kind < IPT_RETURN)
		return IPT_GAP_TIP;
	if (f->next_guest)
		return enter_guest(f);
	f->insns += b->insns;
	ipt_put_after(f, (enum ipt_branch_kind)kinds[b->kind], b, ip);
	if (b->kind == IPT_CALL_ANY)
		ipt_push(f, b);
	arrive(f, ip);
	if (!nr_tnt)
		return IPT_GAP_NONE;
	f->nr_tnt = 0;
	return take_tnt(f, f->tnt, nr_tnt);
}

/*
 * Goes on at `resume`, if that is set; else at the next target if only code is missing, or at the next PSB packet.
 */
static void fail(struct ipt_flow *f, enum ipt_gap gap, uint64_t position)
{
	put_notes(f, 0);
	ipt_put(f, IPT_DID_GAP, ipt_flow_at(f), position, (uint8_t)gap);
	f->at.block = NULL;
	f->nr_returns = f->nr_tnt = 0;
	f->at_fup = f->fup_info = f->mode_info = false;
	f->unsaid = false;
	f->adrift = gap == IPT_GAP_FOREIGN || gap == IPT_GAP_CALL;
	f->doubt = f->adrift && !f->in_psb;
	if (!f->resume && !f->adrift)
		f->reading = IPT_READS_NOTHING;
	if (f->resume && f->adrift)
		begin_at_target(f, f->resume);
	else if (f->resume)
		begin_at(f, f->resume, IPT_DID_BEGIN);
	f->resume = 0;
}

/* Whether the trace went on after an overflow, with the branch *begin unless `unsaid`, and nothing has run since. */
static bool has_just_overflowed(const struct ipt_flow *f, size_t *begin)
{
	const struct ipt_branch *b = f->branches;
	size_t nr = f->nr;

	while (nr && b[nr - 1].kind == IPT_DID_NOTE)
		nr--;
	*begin = nr - 1;
	if (!nr || f->insns)
		return false;
	if (!f->unsaid && (b[nr - 1].kind != IPT_DID_BEGIN || b[nr - 1].to != address_of(f)))
		return false;
	nr -= !f->unsaid;
	nr -= nr && b[nr - 1].kind == IPT_DID_SWITCH;
	return nr && b[nr - 1].kind == IPT_DID_GAP && b[nr - 1].size == IPT_GAP_OVERFLOW;
}

/* Takes back a branch, but not the notes behind it. */
static void take_back(struct ipt_flow *f, size_t nr)
{
	memmove(&f->branches[nr], &f->branches[nr + 1], (f->nr - nr - 1) * sizeof(*f->branches));
	f->nr--;
}

static enum ipt_gap take_pge(struct ipt_flow *f, uint64_t ip)
{
	size_t begin;

	f->fup_info = false; /* what waits for a FUP packet happened while the trace was off */
	put_notes(f, 0);
	/* Erratum BDM70: it comes although a PSB packet has just had the same address. */
	if (f->at.block && address_of(f) == ip)
		return IPT_GAP_NONE;
	/* Erratum APL12: a FUP packet may follow an overflow although the trace is off. */
	if (f->at.block && !has_just_overflowed(f, &begin))
		return IPT_GAP_OFF;
	if (f->at.block && !f->unsaid)
		take_back(f, begin);
	leave(f);
	f->after_ovf = f->adrift = false;
	if (!f->guest)
		begin_at(f, ip, IPT_DID_BEGIN);
	return IPT_GAP_NONE;
}

/* Without a FUP packet, the last instruction is a branch that leaves the traced code. */
static enum ipt_gap take_pgd(struct ipt_flow *f, uint64_t ip)
{
	enum ipt_gap gap;

	f->after_ovf = f->adrift = false;
	if (!f->at.block) {
		f->guest = f->next_guest;
		return IPT_GAP_NONE;
	}
	if (f->at_fup && !f->unsaid) {
		ipt_put(f, IPT_DID_PAUSE, address_of(f), 0, 0);
	} else if (!f->unsaid) {
		gap = ipt_walk_out(f, ip);
		if (gap)
			return gap;
		f->insns += f->at.block->insns;
		ipt_put_after(f, IPT_DID_END, f->at.block, 0);
	}
	leave(f);
	return IPT_GAP_NONE;
}

static enum ipt_gap take_fup(struct ipt_flow *f, uint64_t ip)
{
	bool info = f->fup_info || f->mode_info;
	enum ipt_gap gap;

	f->fup_info = f->mode_info = false;
	if (f->guest) {
		f->after_ovf = false;
		put_notes(f, 0);
		return IPT_GAP_NONE;
	}
	if (f->after_ovf) {
		f->after_ovf = false;
		begin_at(f, ip, IPT_DID_BEGIN);
		put_notes(f, ip);
		return IPT_GAP_NONE;
	}
	if (f->in_psb && !f->at.block) {
		begin_at(f, ip, f->begun ? IPT_DID_BEGIN : IPT_DID_GO_ON);
		return IPT_GAP_NONE;
	}
	if (!f->at.block) {
		put_notes(f, ip);
		return IPT_GAP_NONE;
	}
	gap = ipt_walk_to(f, ip);
	if (gap) {
		f->resume = f->in_psb ? ip : 0;
		return gap;
	}
	f->at_fup = !f->in_psb && !info;
	put_notes(f, ip);
	return IPT_GAP_NONE;
}

static void take_psb(struct ipt_flow *f)
{
	put_notes(f, 0); /* its FUP packet is another one */
	f->in_psb = true;
	f->last_ip = 0;
	f->nr_returns = 0;
	f->reading = IPT_READS_PACKETS;
	f->after_ovf = f->adrift = f->doubt = false;
}

static void take_psbend(struct ipt_flow *f)
{
	f->in_psb = false;
	f->begun = true;
}

/* A note here or, to keep their order, at the FUP packet that it or another one waits for. */
static void take_note(struct ipt_flow *f, enum note_kind kind, const struct ipt_packet *p)
{
	f->fup_info |= p->ip;
	if (!p->ip && !f->nr_notes) {
		ipt_put_note(f, kind, 0, p->value);
		return;
	}
	if (f->nr_notes == IPT_NOTES)
		put_notes(f, 0);
	f->notes[f->nr_notes++] =
		(struct ipt_note){ .value = p->value, .kind = (uint8_t)kind, .ip = p->ip };
}

static void take_cbr(struct ipt_flow *f, const struct ipt_packet *p)
{
	ipt_clock_cbr(&f->clock, (uint8_t)p->value);
	if (p->value != f->ratio)
		take_note(f, NOTE_CBR, p);
	f->ratio = (uint8_t)p->value;
}

/* 64-bit code, and whether interrupts are on. A FUP packet tells where this changes, or a target does. */
static void take_mode(struct ipt_flow *f, bool wide)
{
	f->next_wide = wide;
	if (f->in_psb && !f->at.block)
		f->wide = wide;
	f->mode_info = !f->in_psb && !f->at_fup && f->at.block;
}

/* The TSC packet of the piece's first PSB packet was a guest's, and so was what followed from that time. */
static void forget_time(struct ipt_flow *f)
{
	size_t nr;

	f->clock = (struct ipt_clock){ .info = f->clock.info };
	f->thread = (struct ipt_thread){ UINT32_MAX, UINT32_MAX, 0 };
	nr = f->nr;
	f->nr = 0;
	for (size_t i = 0; i < nr; i++) {
		struct ipt_branch b = f->branches[i];

		if (b.kind == IPT_DID_SWITCH || b.kind == IPT_DID_NOTE)
			continue;
		b.time = 0; /* a gap, in packets before the PSBEND packet */
		f->branches[f->nr++] = b;
	}
}

/* Whether a guest runs: from the next target on or, after a PSB packet, already. */
static enum ipt_gap take_pip(struct ipt_flow *f, bool guest)
{
	f->next_guest = guest;
	if (!f->in_psb)
		return IPT_GAP_NONE;
	f->guest = guest;
	if (guest && !f->begun)
		forget_time(f);
	return guest && f->at.block ? IPT_GAP_OFF : IPT_GAP_NONE;
}

static enum ipt_gap take_rare(struct ipt_flow *f, const struct ipt_packet *p, uint64_t position)
{
	switch (p->kind) {
	case IPT_PSB: take_psb(f); break;
	case IPT_PSBEND: take_psbend(f); break;
	case IPT_MODE_EXEC: take_mode(f, p->value); break;
	case IPT_PIP: return take_pip(f, p->other);
	case IPT_MODE_TSX: /* while the trace is off, a TIP.PGE packet follows, and no FUP packet */
		f->fup_info |= !p->value && !f->in_psb && f->at.block;
		break;
	case IPT_CBR: take_cbr(f, p); break;
	case IPT_TMA:
		if (!f->guest)
			ipt_clock_tma(&f->clock, (uint16_t)p->value, (uint16_t)p->other);
		break;
	case IPT_OVF:
		f->begun |= f->in_psb; /* there is no PSBEND packet */
		f->in_psb = false;
		fail(f, IPT_GAP_OVERFLOW, position);
		f->last_ip = 0;
		f->reading = IPT_READS_PACKETS;
		f->after_ovf = true;
		break;
	case IPT_STOP: break;
	case IPT_PTW: take_note(f, NOTE_PTWRITE, p); break;
	case IPT_EXSTOP: take_note(f, NOTE_EXSTOP, p); break;
	case IPT_MWAIT: take_note(f, NOTE_MWAIT, p); break;
	case IPT_PWRE: take_note(f, NOTE_PWRE, p); break;
	case IPT_PWRX: take_note(f, NOTE_PWRX, p); break;
	case IPT_BBP:
		f->reading = IPT_READS_ITEMS;
		f->item = (uint8_t)(1 + p->value);
		break;
	case IPT_BEP:
	case IPT_CFE: /* without `ip`, the FUP packet of an interrupt may follow, and its target */
	case IPT_TRIG: f->fup_info |= p->ip; break;
	default: break;
	}
	return IPT_GAP_NONE;
}

/* Bytes */

/* The size of the address in a packet, by the upper bits of its first byte; -1: none has it. */
static const int8_t ip_sizes[8] = { 0, 2, 4, 6, 6, -1, 8, -1 };

static uint64_t read_ip(uint64_t last, const uint8_t *at)
{
	unsigned form = *at >> 5;
	unsigned bits = 8 * (unsigned)ip_sizes[form];
	uint64_t ip = le64_at(at + 1);

	if (bits < 64)
		ip &= ((uint64_t)1 << bits) - 1;
	if (form == 3)
		ip = (uint64_t)((int64_t)(ip << 16) >> 16);
	else if (bits < 64)
		ip |= last & ~(((uint64_t)1 << bits) - 1);
	return ip;
}

/* An address that is left out is 0. */
static enum ipt_gap take_ip_packet(struct ipt_flow *f, const uint8_t *at)
{
	uint64_t ip = 0;

	if (*at >> 5)
		ip = f->last_ip = read_ip(f->last_ip, at);
	if ((*at & 0x1f) == 0x0d)
		return take_tip(f, ip);
	/* The cpu writes the targets that it deferred before anything else with an address. */
	if (f->nr_tnt)
		return IPT_GAP_TNT;
	switch (*at & 0x1f) {
	case 0x11: return take_pge(f, ip);
	case 0x01: return take_pgd(f, ip);
	default: return ip ? take_fup(f, ip) : IPT_GAP_NONE;
	}
}

static bool is_ip_packet(uint8_t first)
{
	uint8_t op = first & 0x1f;

	return (op == 0x0d || op == 0x11 || op == 0x01 || op == 0x1d) && ip_sizes[first >> 5] >= 0;
}

static size_t take_cyc(struct ipt_flow *f, const uint8_t *at, size_t room)
{
	uint64_t value = *at >> 3;
	bool more = *at & 4;
	size_t size = 1;

	for (unsigned shift = 5; more && size < room && shift < 64; shift += 7) {
		value |= (uint64_t)(at[size] >> 1) << shift;
		more = at[size++] & 1;
	}
	if (more)
		return 0;
	ipt_clock_cyc(&f->clock, value);
	f->cycles += value;
	ipt_time_passed(f);
	return size;
}

/* A guest may have another time. */
static size_t take_tsc(struct ipt_flow *f, const uint8_t *at)
{
	if (f->guest)
		return 8;
	ipt_clock_tsc(&f->clock, le64_at(at) >> 8);
	ipt_time_passed(f);
	return 8;
}

static size_t take_mtc(struct ipt_flow *f, const uint8_t *at)
{
	ipt_clock_mtc(&f->clock, at[1]);
	ipt_time_passed(f);
	return 2;
}

/* Conditions that are not of code that runs here. */
static enum ipt_gap take_no_tnt(const struct ipt_flow *f)
{
	if (f->nr_tnt)
		return IPT_GAP_TNT;
	return f->guest || f->adrift ? IPT_GAP_NONE : IPT_GAP_OFF;
}

static enum ipt_gap take_short_tnt(struct ipt_flow *f, uint8_t byte)
{
	unsigned nr = 31 - (unsigned)__builtin_clz(byte) - 1;

	if (!f->at.block || f->nr_tnt)
		return take_no_tnt(f);
	return take_tnt(f, byte >> 1 & ((1u << nr) - 1), nr);
}

static enum ipt_gap take_long_tnt(struct ipt_flow *f, const uint8_t *at)
{
	uint64_t bits = le64_at(at) >> 16;
	unsigned nr;

	if (!bits)
		return IPT_GAP_PACKET;
	nr = 63 - (unsigned)__builtin_clzll(bits);
	if (!f->at.block || f->nr_tnt)
		return take_no_tnt(f);
	return take_tnt(f, bits & (((uint64_t)1 << nr) - 1), nr);
}

/* The size of one of the usual packets; 0: it is none of them. */
static size_t usual_size(const uint8_t *at)
{
	if (is_ip_packet(*at))
		return 1 + (size_t)ip_sizes[*at >> 5];
	switch (*at) {
	case 0x59: return 2;
	case 0x19: return 8;
	case 2: return at[1] == 0xa3 ? 8 : 0;
	}
	return 0;
}

static size_t take_other(struct ipt_flow *f, const uint8_t *at, size_t room, uint64_t position,
			 enum ipt_gap *gap)
{
	struct ipt_packet packet;
	int ret = ipt_packet_read(at, at + room, &packet);

	if (ret <= 0) {
		*gap = ret ? IPT_GAP_PACKET : IPT_GAP_CUT;
		return ret ? 1 : room;
	}
	*gap = take_rare(f, &packet, position);
	return packet.size;
}

/* One packet. `room` bytes belong to the trace; IPT_LONGEST may be read. Returns its size. */
static inline size_t take_packet(struct ipt_flow *f, const uint8_t *at, size_t room,
				 uint64_t position, enum ipt_gap *gap)
{
	uint8_t first = *at;

	*gap = IPT_GAP_NONE;
	if (room < IPT_LONGEST && usual_size(at) > room) {
		*gap = IPT_GAP_CUT;
		return room;
	}
	if (!(first & 1) && first > 2) {
		*gap = take_short_tnt(f, first);
		return 1;
	}
	if ((first & 3) == 3) {
		size_t size = take_cyc(f, at, room);

		if (!size)
			*gap = room < IPT_LONGEST ? IPT_GAP_CUT : IPT_GAP_PACKET;
		return size ? size : room < IPT_LONGEST ? room : 1;
	}
	if (is_ip_packet(first)) {
		*gap = take_ip_packet(f, at);
		return 1 + (size_t)ip_sizes[first >> 5];
	}
	switch (first) {
	case 0: return 1;
	case 0x59: return take_mtc(f, at);
	case 0x19: return take_tsc(f, at);
	}
	if (first == 2 && at[1] == 0xa3) {
		*gap = take_long_tnt(f, at);
		return 8;
	}
	return take_other(f, at, room, position, gap);
}

/* Whether a packet inside a block of items ends it, as perf has it. */
static bool ends_items(const uint8_t *at)
{
	static const uint8_t inside[] = {
		0x03, 0x73, 0xc3, 0x62, 0xe2, 0x22, 0xa2, 0x13, 0x53, 0x63
	};

	if (*at == 2)
		return !memchr(inside, at[1], sizeof(inside));
	if (!*at || (*at & 3) == 3 || *at == 0x19 || *at == 0x59)
		return false;
	return !is_ip_packet(*at) || (*at & 0x1f) != 0x1d;
}

/* Where to go on after an error: a PSB packet, or so near the end that one may begin there. */
static const uint8_t *skip_to_psb(const uint8_t *at, const uint8_t *end, bool last)
{
	const uint8_t *psb = ipt_packet_find_psb(at, end);

	if (psb)
		return psb;
	if (last)
		return end;
	return end - at < IPT_PSB_SIZE ? at : end - IPT_PSB_SIZE + 1;
}

void ipt_flow_begin(struct ipt_flow *f)
{
	f->next_wide = f->wide = true;
	f->reading = IPT_READS_NOTHING;
	f->thread = (struct ipt_thread){ UINT32_MAX, UINT32_MAX, 0 };
}

void ipt_flow_release(struct ipt_flow *f)
{
	free(f->branches);
	f->branches = NULL;
	f->nr = f->cap = 0;
}

/*
 * Skips bytes that are no packet. Returns their number; 0: a packet is next, or nothing can be read before more bytes
 * come.
 */
static RARE size_t skip_no_packet(struct ipt_flow *f, const uint8_t *at, size_t room,
				  uint64_t position, bool last)
{
	const uint8_t *psb;

	if (f->reading == IPT_READS_NOTHING) {
		psb = skip_to_psb(at, at + room, last);
		if (room - (size_t)(psb - at) >= IPT_PSB_SIZE)
			f->reading = IPT_READS_PACKETS;
		return (size_t)(psb - at);
	}
	if ((*at & 7) == 4) {
		if (f->item <= room)
			return f->item;
		fail(f, IPT_GAP_CUT, position);
		return room;
	}
	if (ends_items(at))
		f->reading = IPT_READS_PACKETS;
	return 0;
}

/* Decodes while a whole packet must be at hand. Returns where it stopped. */
static const uint8_t *run_packets(struct ipt_flow *f, const uint8_t *data, const uint8_t *end,
				  size_t slack, uint64_t position, bool last)
{
	const uint8_t *at = data;

	while ((size_t)(end - at) > slack && f->nr < IPT_ENOUGH) {
		enum ipt_gap gap;
		size_t size;

		if (f->reading) {
			size = skip_no_packet(f, at, (size_t)(end - at),
					      position + (size_t)(at - data), last);
			at += size;
			if (f->reading == IPT_READS_NOTHING)
				return at;
			if (size)
				continue;
		}
		size = take_packet(f, at, (size_t)(end - at), position + (size_t)(at - data), &gap);
		if (gap)
			fail(f, gap, position + (size_t)(at - data));
		at += size;
	}
	return at;
}

/* The last bytes, in a buffer that allows reading beyond them. */
static size_t run_rest(struct ipt_flow *f, const uint8_t *data, size_t len, uint64_t position)
{
	uint8_t rest[2 * IPT_LONGEST] = { 0 };

	memcpy(rest, data, len);
	return (size_t)(run_packets(f, rest, rest + len, 0, position, true) - rest);
}

size_t ipt_flow_run(struct ipt_flow *f, const uint8_t *data, size_t len, uint64_t position,
		    bool last)
{
	const uint8_t *at = run_packets(f, data, data + len, IPT_LONGEST, position, last);
	size_t took = (size_t)(at - data);

	if (last && len - took <= IPT_LONGEST && f->nr < IPT_ENOUGH)
		took += run_rest(f, at, len - took, position + took);
	if (last && took == len)
		put_notes(f, 0);
	return took;
}

void ipt_flow_end(struct ipt_flow *f, uint64_t next, uint64_t position)
{
	enum ipt_gap gap;

	if (!f->at.block || !next)
		return;
	gap = ipt_walk_to(f, next);
	if (gap)
		fail(f, gap, position);
}

/* The address in the packet; 0: it has none, or is cut off. */
static uint64_t whole_ip(const uint8_t *at, size_t room)
{
	uint8_t packet[1 + sizeof(uint64_t)] = { 0 };
	size_t size = 1 + (size_t)ip_sizes[*at >> 5];

	if (size > room)
		return 0;
	memcpy(packet, at, size);
	return read_ip(0, packet);
}

uint64_t ipt_flow_psb_ip(const uint8_t *data, size_t len)
{
	const uint8_t *at = data, *end = data + len;
	struct ipt_packet packet;

	while (at < end) {
		if (is_ip_packet(*at))
			return (*at & 0x1f) == 0x1d ? whole_ip(at, (size_t)(end - at)) : 0;
		if (ipt_packet_read(at, end, &packet) <= 0 || packet.kind == IPT_PSBEND ||
		    packet.kind == IPT_OVF)
			return 0;
		at += packet.size;
	}
	return 0;
}

// SPDX-License-Identifier: GPL-2.0-or-later
#include "pt/flow.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "pt/packet.h"

/* No code runs through this many blocks without a branch that needs a packet: it is a loop. */
#define MAX_STEPS 4096

const char *const ipt_gap_names[IPT_GAPS] = {
	[IPT_GAP_NONE] = "none",
	[IPT_GAP_OVERFLOW] = "overflow",
	[IPT_GAP_LOST] = "lost trace",
	[IPT_GAP_CUT] = "cut off packet",
	[IPT_GAP_PACKET] = "unknown packet",
	[IPT_GAP_NO_CODE] = "code not found, or not a valid instruction",
	[IPT_GAP_TNT] = "a TNT packet, but the code has no conditional branch here",
	[IPT_GAP_TIP] = "a TIP packet, but the code has no indirect branch here",
	[IPT_GAP_RETURN] = "a TNT packet says \"not taken\" at a return",
	[IPT_GAP_FUP] = "a FUP packet with an address that the code does not reach",
	[IPT_GAP_OFF] = "a branch packet does not match the tracing state (on or off)",
	[IPT_GAP_ENDLESS] = "an infinite loop without packets",
};

/* Branches */

static void put_more(struct ipt_flow *f)
{
	f->cap = f->cap ? f->cap * 2 : 1024;
	f->branches = xrealloc(f->branches, f->cap, sizeof(*f->branches));
}

static inline void put(struct ipt_flow *f, enum ipt_branch_kind kind, uint64_t from, uint64_t to,
		       uint8_t size)
{
	if (f->nr == f->cap)
		put_more(f);
	f->branches[f->nr++] = (struct ipt_branch){
		.from = from,
		.to = to,
		.time = f->clock.now,
		.insns = (uint32_t)f->insns,
		.cycles = (uint32_t)f->cycles,
		.kind = (uint8_t)kind,
		.size = size,
	};
	f->insns = f->cycles = 0;
}

/* A record between two branches, which does not divide the instructions. */
static void put_note(struct ipt_flow *f, enum ipt_branch_kind kind, uint64_t from, uint64_t to)
{
	uint64_t insns = f->insns, cycles = f->cycles;

	f->insns = f->cycles = 0;
	put(f, kind, from, to, 0);
	f->insns = insns;
	f->cycles = cycles;
}

static inline void put_after(struct ipt_flow *f, enum ipt_branch_kind kind,
			     const struct ipt_block *b, uint64_t to)
{
	put(f, kind, f->at.place.base + ipt_block_branch(b), to, b->last);
}

static uint64_t address_of(const struct ipt_flow *f)
{
	return f->at.place.base + f->at.block->start;
}

uint64_t ipt_flow_at(const struct ipt_flow *f)
{
	return f->at.block ? address_of(f) : 0;
}

/* Places */

static void look_at_thread(struct ipt_flow *f)
{
	struct ipt_thread old = f->thread;

	f->thread = f->world->thread(f->world->data, f->queue, f->clock.now);
	memset(f->targets, 0, sizeof(f->targets));
	if (old.pid != f->thread.pid || old.tid != f->thread.tid)
		put(f, IPT_DID_SWITCH, f->thread.tid, f->thread.pid, 0);
}

static void time_passed(struct ipt_flow *f)
{
	if (f->clock.now >= f->thread.until)
		look_at_thread(f);
}

/* Whether a block has no instruction, maybe because the first one ends in other code. */
static bool is_cut(const struct ipt_code *code, const struct ipt_block *b)
{
	return b->kind == IPT_NOTHING && b->start + IPT_LONGEST_INSN > code->len;
}

static void find_spot(struct ipt_flow *f, uint64_t address, struct ipt_spot *spot)
{
	struct ipt_place *place = &spot->place;

	spot->block = NULL;
	if (!f->world->find(f->world->data, f->thread.pid, f->clock.now, address, place))
		return;
	spot->block = ipt_code_find(place->code, address - place->base, f->wide);
	if (!is_cut(place->code, spot->block) || !place->bridge)
		return;
	*place = (struct ipt_place){ .code = place->bridge, .base = place->bridge_base };
	spot->block = ipt_code_find(place->code, address - place->base, f->wide);
}

/* Goes on at any address. If no code is known there, that is an error only when it has to run. */
static inline void go_to(struct ipt_flow *f, uint64_t address)
{
	size_t slot = (address ^ address >> 12) % IPT_TARGETS;

	if (f->targets[slot].address != address || !f->targets[slot].spot.block ||
	    f->targets[slot].spot.block->wide != f->wide) {
		f->targets[slot].address = address;
		find_spot(f, address, &f->targets[slot].spot);
	}
	f->at = f->targets[slot].spot;
	if (!f->at.block) {
		f->nowhere = (struct ipt_block){ .kind = IPT_NOTHING, .start = address };
		f->at = (struct ipt_spot){ .block = &f->nowhere };
	}
}

/* For a target outside of the code that the branch is in. */
static struct ipt_block *leave_code(struct ipt_flow *f, uint64_t offset)
{
	uint64_t address = f->at.place.base + offset;

	go_to(f, f->wide ? address : address & UINT32_MAX);
	return f->at.block;
}

static struct ipt_block *link_to(struct ipt_flow *f, uint64_t offset, bool wide,
				 struct ipt_block **link)
{
	struct ipt_code *code = f->at.place.code;
	struct ipt_block *next;

	if (offset >= code->len)
		return leave_code(f, offset);
	next = ipt_code_find(code, offset, wide);
	if (is_cut(code, next))
		return leave_code(f, offset);
	__atomic_store_n(link, next, __ATOMIC_RELEASE);
	return next;
}

static inline struct ipt_block *taken(struct ipt_flow *f, struct ipt_block *b)
{
	struct ipt_block *next = __atomic_load_n(&b->taken, __ATOMIC_ACQUIRE);

	return next ? next : link_to(f, b->target, b->wide, &b->taken);
}

static inline struct ipt_block *fall(struct ipt_flow *f, struct ipt_block *b)
{
	struct ipt_block *next = __atomic_load_n(&b->fall, __ATOMIC_ACQUIRE);

	return next ? next : link_to(f, ipt_block_next(b), b->wide, &b->fall);
}

/* Addresses of 32-bit code wrap around. */
static inline uint64_t target_of(const struct ipt_flow *f, const struct ipt_block *b)
{
	uint64_t address = f->at.place.base + b->target;

	return b->wide ? address : (uint32_t)address;
}

static inline void push(struct ipt_flow *f, struct ipt_block *b)
{
	struct ipt_spot *spot = &f->returns[f->top++ % IPT_RETURNS];

	spot->block = b;
	spot->place = f->at.place;
	f->nr_returns += f->nr_returns < IPT_RETURNS;
}

/*
 * Runs a block whose successor needs no packet. A call of the next
 * instruction only reads the instruction pointer: the cpu does not remember it, either, unless it is indirect.
 */
static inline struct ipt_block *run(struct ipt_flow *f, struct ipt_block *b)
{
	f->insns += b->insns;
	switch (b->kind) {
	case IPT_JUMP:
		if (f->all || b->leaves)
			put_after(f, IPT_DID_JUMP, b, target_of(f, b));
		return taken(f, b);
	case IPT_CALL:
		put_after(f, IPT_DID_CALL, b, target_of(f, b));
		if (b->target != ipt_block_next(b))
			push(f, b);
		return taken(f, b);
	default: return fall(f, b);
	}
}

static inline bool runs_alone(const struct ipt_block *b)
{
	return b->kind == IPT_ON || b->kind == IPT_JUMP || b->kind == IPT_CALL;
}

/* Packets */

/* One condition. Usually without a jump that depends on it, which the cpu could not predict. */
static inline struct ipt_block *branch_if(struct ipt_flow *f, struct ipt_block *b, bool taken_bit)
{
	struct ipt_block **link = taken_bit ? &b->taken : &b->fall;
	struct ipt_block *next = __atomic_load_n(link, __ATOMIC_ACQUIRE);

	f->insns += b->insns;
	if (next && !(taken_bit & (f->all | b->leaves)))
		return next;
	if (!taken_bit)
		return fall(f, b);
	if (f->all || b->leaves)
		put_after(f, IPT_DID_JUMP, b, target_of(f, b));
	return taken(f, b);
}

/* A return to the last call, which one bit tells. */
static inline struct ipt_block *return_to_call(struct ipt_flow *f, struct ipt_block *b)
{
	const struct ipt_spot *call = &f->returns[--f->top % IPT_RETURNS];

	f->nr_returns--;
	f->insns += b->insns;
	put_after(f, IPT_DID_RETURN, b, call->place.base + ipt_block_next(call->block));
	f->at.place = call->place;
	return fall(f, call->block);
}

/* The code is at this block now; if there is a gap, this is where. */
static enum ipt_gap stop_at(struct ipt_flow *f, struct ipt_block *b, enum ipt_gap gap)
{
	f->at.block = b;
	return gap;
}

/* The highest of the bits is the oldest. */
static enum ipt_gap take_tnt(struct ipt_flow *f, uint64_t bits, unsigned nr)
{
	struct ipt_block *b = f->at.block;
	size_t known = f->nr;
	unsigned steps = 0;

	while (nr) {
		if (b->kind == IPT_COND) { /* most blocks */
			b = branch_if(f, b, bits >> --nr & 1);
			steps = 0;
			continue;
		}
		switch (b->kind) {
		case IPT_ON:
		case IPT_JUMP:
		case IPT_CALL:
			if (!steps)
				known = f->nr;
			b = run(f, b);
			if (++steps > MAX_STEPS) {
				f->nr = known;
				return stop_at(f, b, IPT_GAP_ENDLESS);
			}
			break;
		case IPT_RETURN:
			if (f->nr_returns) {
				if (!(bits >> --nr & 1))
					return stop_at(f, b, IPT_GAP_RETURN);
				b = return_to_call(f, b);
				steps = 0;
				break;
			}
			/* fall through */
		case IPT_JUMP_ANY:
		case IPT_CALL_ANY:
		case IPT_ENTER:
		case IPT_LEAVE:
			f->tnt = bits;
			f->nr_tnt = nr;
			return stop_at(f, b, IPT_GAP_NONE);
		case IPT_NOTHING: return stop_at(f, b, IPT_GAP_NO_CODE);
		default: return stop_at(f, b, IPT_GAP_TNT);
		}
	}
	return stop_at(f, b, IPT_GAP_NONE);
}

/* Runs up to a branch that needs a packet. */
static enum ipt_gap walk(struct ipt_flow *f)
{
	struct ipt_block *b = f->at.block;
	size_t nr = f->nr;

	for (unsigned steps = 0; runs_alone(b); steps++) {
		if (steps > MAX_STEPS) {
			f->nr = nr;
			return stop_at(f, b, IPT_GAP_ENDLESS);
		}
		b = run(f, b);
	}
	return stop_at(f, b, b->kind != IPT_NOTHING ? IPT_GAP_NONE : IPT_GAP_NO_CODE);
}

/* Whether an offset is in a block and before its end. */
static bool is_in(const struct ipt_block *b, uint64_t offset)
{
	return offset >= b->start && offset < ipt_block_next(b);
}

/* Stops inside a block, before the instruction at an offset. */
static enum ipt_gap stop_in(struct ipt_flow *f, struct ipt_block *b, uint64_t offset)
{
	int before = ipt_block_before(f->at.place.code, b, offset);

	if (before < 0)
		return stop_at(f, b, IPT_GAP_FUP);
	f->insns += (unsigned)before;
	return stop_at(f, ipt_code_find(f->at.place.code, offset, b->wide), IPT_GAP_NONE);
}

/* Runs up to the instruction at an address. */
static enum ipt_gap walk_to(struct ipt_flow *f, uint64_t ip)
{
	struct ipt_block *b = f->at.block;
	size_t nr = f->nr;

	for (unsigned steps = 0;; steps++) {
		if (f->at.place.base + b->start == ip)
			return stop_at(f, b, IPT_GAP_NONE);
		if (is_in(b, ip - f->at.place.base))
			return stop_in(f, b, ip - f->at.place.base);
		if (!runs_alone(b))
			return stop_at(f, b,
				       b->kind == IPT_NOTHING ? IPT_GAP_NO_CODE : IPT_GAP_FUP);
		if (steps > MAX_STEPS) {
			f->nr = nr;
			return stop_at(f, b, IPT_GAP_ENDLESS);
		}
		b = run(f, b);
	}
}

static void arrive(struct ipt_flow *f, uint64_t ip)
{
	f->wide = f->next_wide;
	go_to(f, ip);
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
		return IPT_GAP_OFF;
	if (f->at_fup) {
		f->at_fup = false;
		put(f, IPT_DID_INTERRUPT, address_of(f), ip, 0);
		arrive(f, ip);
		return IPT_GAP_NONE;
	}
	gap = walk(f);
	if (gap)
		return gap;
	b = f->at.block;
	if (b->kind < IPT_RETURN)
		return IPT_GAP_TIP;
	f->insns += b->insns;
	put_after(f, (enum ipt_branch_kind)kinds[b->kind], b, ip);
	if (b->kind == IPT_CALL_ANY)
		push(f, b);
	arrive(f, ip);
	if (!nr_tnt)
		return IPT_GAP_NONE;
	f->nr_tnt = 0;
	return take_tnt(f, f->tnt, nr_tnt);
}

static void begin_at(struct ipt_flow *f, uint64_t ip, enum ipt_branch_kind kind)
{
	time_passed(f); /* there may have been no packet with a time yet */
	put(f, kind, 0, ip, 0);
	arrive(f, ip);
}

/* The rest up to the next PSB packet cannot be decoded, unless this is one. */
static void fail(struct ipt_flow *f, enum ipt_gap gap, uint64_t position)
{
	put(f, IPT_DID_GAP, ipt_flow_at(f), position, (uint8_t)gap);
	f->at.block = NULL;
	f->nr_returns = f->nr_tnt = 0;
	f->at_fup = f->fup_info = false;
	f->note.kind = 0;
	f->lost = !f->resume;
	if (f->resume)
		begin_at(f, f->resume, IPT_DID_BEGIN);
	f->resume = 0;
}

static enum ipt_gap take_pge(struct ipt_flow *f, uint64_t ip)
{
	/* Erratum BDM70: it comes although a PSB packet has just had the same address. */
	if (f->at.block)
		return address_of(f) == ip ? IPT_GAP_NONE : IPT_GAP_OFF;
	f->after_ovf = false;
	begin_at(f, ip, IPT_DID_BEGIN);
	return IPT_GAP_NONE;
}

/* Without a FUP packet, the last instruction is a branch that leaves the traced code. */
static enum ipt_gap walk_out(struct ipt_flow *f, uint64_t ip)
{
	struct ipt_block *b = f->at.block;
	size_t nr = f->nr;

	for (unsigned steps = 0; runs_alone(b); steps++) {
		bool jumps = b->kind != IPT_ON;

		if (jumps && ip && target_of(f, b) == ip)
			break;
		if (steps > MAX_STEPS) {
			f->nr = nr;
			return stop_at(f, b, IPT_GAP_ENDLESS);
		}
		b = run(f, b);
	}
	return stop_at(f, b, b->kind != IPT_NOTHING ? IPT_GAP_NONE : IPT_GAP_NO_CODE);
}

static enum ipt_gap take_pgd(struct ipt_flow *f, uint64_t ip)
{
	enum ipt_gap gap;

	f->after_ovf = false;
	if (!f->at.block)
		return IPT_GAP_NONE;
	if (f->at_fup) {
		f->at_fup = false;
		put(f, IPT_DID_PAUSE, address_of(f), 0, 0);
	} else {
		gap = walk_out(f, ip);
		if (gap)
			return gap;
		f->insns += f->at.block->insns;
		put_after(f, IPT_DID_END, f->at.block, 0);
	}
	f->at.block = NULL;
	return IPT_GAP_NONE;
}

static void take_note(struct ipt_flow *f, uint64_t ip)
{
	if (f->note.kind)
		put_note(f, (enum ipt_branch_kind)f->note.kind, ip, f->note.to);
	f->note.kind = 0;
}

static enum ipt_gap take_fup(struct ipt_flow *f, uint64_t ip)
{
	bool info = f->fup_info;
	enum ipt_gap gap;

	f->fup_info = false;
	if (f->after_ovf) {
		f->after_ovf = false;
		begin_at(f, ip, IPT_DID_BEGIN);
		return IPT_GAP_NONE;
	}
	if (f->in_psb && !f->at.block) {
		begin_at(f, ip, f->begun ? IPT_DID_BEGIN : IPT_DID_GO_ON);
		return IPT_GAP_NONE;
	}
	if (!f->at.block) {
		take_note(f, ip);
		return IPT_GAP_NONE;
	}
	gap = walk_to(f, ip);
	if (gap) {
		f->resume = f->in_psb ? ip : 0;
		return gap;
	}
	f->at_fup = !f->in_psb && !info;
	take_note(f, ip);
	return IPT_GAP_NONE;
}

static void take_psb(struct ipt_flow *f)
{
	f->in_psb = true;
	f->last_ip = 0;
	f->nr_returns = 0;
	f->lost = f->after_ovf = false;
}

static void take_psbend(struct ipt_flow *f)
{
	f->in_psb = false;
	f->begun = true;
}

/* A value that the trace only passes on, here or at the next FUP packet. */
static void pass_on(struct ipt_flow *f, enum ipt_branch_kind kind, uint64_t from, uint64_t to,
		    bool waits)
{
	if (!waits) {
		put_note(f, kind, from, to);
		return;
	}
	f->note = (struct ipt_branch){ .kind = (uint8_t)kind, .to = to };
	f->fup_info = true;
}

static enum ipt_gap take_rare(struct ipt_flow *f, const struct ipt_packet *p, uint64_t position)
{
	switch (p->kind) {
	case IPT_PSB: take_psb(f); break;
	case IPT_PSBEND: take_psbend(f); break;
	case IPT_MODE_EXEC:
		f->next_wide = p->value;
		if (f->in_psb && !f->at.block)
			f->wide = p->value;
		break;
	case IPT_MODE_TSX: /* while the trace is off, a TIP.PGE packet follows, and no FUP packet */
		f->fup_info |= !p->value && !f->in_psb && f->at.block;
		break;
	case IPT_CBR: ipt_clock_cbr(&f->clock, (uint8_t)p->value); break;
	case IPT_TMA: ipt_clock_tma(&f->clock, (uint16_t)p->value, (uint16_t)p->other); break;
	case IPT_OVF:
		f->in_psb = false;
		fail(f, IPT_GAP_OVERFLOW, position);
		f->last_ip = 0;
		f->lost = false;
		f->after_ovf = true;
		break;
	case IPT_STOP: break;
	case IPT_PTW: pass_on(f, IPT_DID_WRITE, 0, p->value, p->ip); break;
	case IPT_EXSTOP:
	case IPT_MWAIT: f->fup_info |= p->ip; break;
	case IPT_PWRE:
	case IPT_PWRX: pass_on(f, IPT_DID_POWER, p->kind, p->value, false); break;
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
	uint64_t ip = 0;

	memcpy(&ip, at + 1, 8);
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
	time_passed(f);
	return size;
}

static size_t take_tsc(struct ipt_flow *f, const uint8_t *at)
{
	uint64_t tsc;

	memcpy(&tsc, at, sizeof(tsc));
	ipt_clock_tsc(&f->clock, tsc >> 8);
	time_passed(f);
	return 8;
}

static size_t take_mtc(struct ipt_flow *f, const uint8_t *at)
{
	ipt_clock_mtc(&f->clock, at[1]);
	time_passed(f);
	return 2;
}

static enum ipt_gap take_short_tnt(struct ipt_flow *f, uint8_t byte)
{
	unsigned nr = 31 - (unsigned)__builtin_clz(byte) - 1;

	if (!f->at.block || f->nr_tnt)
		return f->nr_tnt ? IPT_GAP_TNT : IPT_GAP_OFF;
	return take_tnt(f, byte >> 1 & ((1u << nr) - 1), nr);
}

static enum ipt_gap take_long_tnt(struct ipt_flow *f, const uint8_t *at)
{
	uint64_t bits;
	unsigned nr;

	memcpy(&bits, at, 8);
	bits >>= 16;
	if (!bits)
		return IPT_GAP_PACKET;
	nr = 63 - (unsigned)__builtin_clzll(bits);
	if (!f->at.block || f->nr_tnt)
		return f->nr_tnt ? IPT_GAP_TNT : IPT_GAP_OFF;
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
	f->lost = true;
	f->thread = (struct ipt_thread){ UINT32_MAX, UINT32_MAX, 0 };
}

void ipt_flow_release(struct ipt_flow *f)
{
	free(f->branches);
	f->branches = NULL;
	f->nr = f->cap = 0;
}

/* Decodes while a whole packet must be at hand. Returns where it stopped. */
static const uint8_t *run_packets(struct ipt_flow *f, const uint8_t *data, const uint8_t *end,
				  size_t slack, uint64_t position, bool last)
{
	const uint8_t *at = data;

	while ((size_t)(end - at) > slack && f->nr < IPT_ENOUGH) {
		enum ipt_gap gap;
		size_t size;

		if (f->lost) {
			at = skip_to_psb(at, end, last);
			if ((size_t)(end - at) < IPT_PSB_SIZE)
				return at;
			f->lost = false;
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
	return took;
}

void ipt_flow_end(struct ipt_flow *f, uint64_t next, uint64_t position)
{
	enum ipt_gap gap;

	if (!f->at.block || !next)
		return;
	gap = walk_to(f, next);
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

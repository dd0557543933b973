/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * pt_text: traces of Intel PT as text, and what pt/flow makes of them as text. Addresses are hexadecimal, from
 * the start of the code, or whole after a `@`. The packets:
 *
 *	psb:ADDRESS psb (with packets behind it) PSB PSBEND (alone)
 *	tnt:10110 (the oldest first; more than 6: a long packet)
 *	tip:ADDRESS pge: pgd: fup: (behind the name, the form of the address; without one it is whole)
 *	mode:64 mode:32 tsx:begin tsx:commit tsx:abort ovf stop ptw:VALUE ptwip:VALUE exstop exstopip
 *	mode:64if (interrupts are on) pip:0 pip:1 (of a guest) cfe cfeip trig trigip bbp:4 bbp:8 bep bepip
 *	mwait pwre pwrx tsc:TIME tma:CTC,FAST mtc:N cyc:N cbr:N hex:BYTES
 *
 * Branches are "KIND FROM>TO INSTRUCTIONS", with "; " between them, and at the end "+INSTRUCTIONS". Notes are
 * "KIND ADDRESS=VALUE INSTRUCTIONS", which the next branch has, too. A trace
 * without a gap is also given to libipt, which must execute as many instructions, and go to the same targets.
 * It must end with the end of tracing: libipt runs on after the last packet.
 */
#ifndef KSCOPE_TESTS_UNIT_PT_TEXT_H
#define KSCOPE_TESTS_UNIT_PT_TEXT_H

#include <endian.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "model/event.h"
#include "pt/ahead.h"
#include "pt/history.h"
#include "pt/packet.h"
#include "test.h"

#ifdef HAVE_LIBIPT
#include <intel-pt.h>
#endif

#ifndef PT_BASE
#define PT_BASE 0x401000
#endif
#define PT_PID 100
#define PT_FOREIGN 0x501000 /* mapped, but its code is not at hand */
#define PT_MAX_TARGETS 1000

struct pt_bytes {
	const uint8_t *data;
	size_t len;
};

struct pt_trace {
	uint8_t data[1 << 16];
	size_t len;
};

/* Packets */

static inline void pt_add(struct pt_trace *t, const void *data, size_t len)
{
	memcpy(t->data + t->len, data, len);
	t->len += len;
}

static inline uint64_t pt_address(const char *text)
{
	return *text == '@' ? strtoull(text + 1, NULL, 16) : PT_BASE + strtoull(text, NULL, 16);
}

/* The lower `len` bytes of a number, after a head. */
static inline void pt_add_number(struct pt_trace *t, const char *head, size_t head_len,
				 uint64_t number, size_t len)
{
	pt_add(t, head, head_len);
	number = htole64(number);
	pt_add(t, &number, len);
}

static inline void pt_add_ip(struct pt_trace *t, unsigned op, unsigned form, const char *address)
{
	static const uint8_t sizes[] = { 0, 2, 4, 6, 6, 0, 8 };
	uint8_t head = (uint8_t)(form << 5 | op);

	pt_add_number(t, (const char *)&head, 1, pt_address(address), sizes[form]);
}

static inline void pt_add_tnt(struct pt_trace *t, const char *bits)
{
	uint64_t value = 1;
	size_t nr = strlen(bits);

	for (size_t i = 0; i < nr; i++)
		value = value << 1 | (bits[i] == '1');
	if (nr > 6)
		pt_add_number(t, "\2\xa3", 2, value, 6);
	else
		pt_add_number(t, "", 0, value << 1, 1);
}

static inline void pt_add_psb(struct pt_trace *t, const char *address)
{
	for (int i = 0; i < 8; i++)
		pt_add(t, "\2\x82", 2);
	pt_add(t, "\x99\1", 2);
	if (address)
		pt_add_ip(t, 0x1d, 3, address);
	pt_add(t, "\2\x23", 2);
}

static inline void pt_add_cyc(struct pt_trace *t, uint64_t cycles)
{
	uint8_t byte = (uint8_t)(cycles << 3 | (cycles >> 5 ? 4 : 0) | 3);

	pt_add(t, &byte, 1);
	for (cycles >>= 5; cycles; cycles >>= 7) {
		byte = (uint8_t)(cycles << 1 | (cycles >> 7 ? 1 : 0));
		pt_add(t, &byte, 1);
	}
}

static inline void pt_add_hex(struct pt_trace *t, const char *text)
{
	for (; text[0] && text[1]; text += 2) {
		char digits[3] = { text[0], text[1] };

		pt_add_number(t, "", 0, strtoull(digits, NULL, 16), 1);
	}
}

/* Packets that are always the same. */
static inline bool pt_add_fixed(struct pt_trace *t, const char *name)
{
	static const struct {
		const char *name, *hex;
	} packets[] = {
		{ "PSB", "02820282028202820282028202820282" },
		{ "PSBEND", "0223" },
		{ "mode64", "9901" },
		{ "mode32", "9902" },
		{ "mode64if", "9905" },
		{ "pip0", "0243001000000000" },
		{ "pip1", "0243011000000000" },
		{ "cfe", "02130120" },
		{ "cfeip", "02138120" },
		{ "trig", "d94001ff04" },
		{ "trigip", "d98001" },
		{ "bbp4", "026384" },
		{ "bbp8", "026304" },
		{ "bep", "0233" },
		{ "bepip", "02b3" },
		{ "tsxbegin", "9921" },
		{ "tsxcommit", "9920" },
		{ "tsxabort", "9922" },
		{ "ovf", "02f3" },
		{ "stop", "0283" },
		{ "exstop", "0262" },
		{ "exstopip", "02e2" },
		{ "mwait", "02c20102030400000000" },
		{ "pwre", "02220022" },
		{ "pwrx", "02a22100000000" },
	};

	for (size_t i = 0; i < sizeof(packets) / sizeof(*packets); i++) {
		if (strcmp(packets[i].name, name) != 0)
			continue;
		pt_add_hex(t, packets[i].hex);
		return true;
	}
	return false;
}

static inline bool pt_add_address_packet(struct pt_trace *t, const char *name, const char *value)
{
	static const struct {
		char name[4];
		unsigned op;
	} kinds[] = { { "tip", 0x0d }, { "pge", 0x11 }, { "pgd", 0x01 }, { "fup", 0x1d } };

	for (size_t i = 0; i < 4; i++) {
		if (strncmp(kinds[i].name, name, 3) != 0)
			continue;
		pt_add_ip(t, kinds[i].op, name[3] ? (unsigned)(name[3] - '0') : 6, value);
		return true;
	}
	return false;
}

static inline bool pt_add_time(struct pt_trace *t, const char *name, const char *value)
{
	char *end;
	uint64_t number = strtoull(value, &end, 10);

	if (!strcmp(name, "tsc"))
		pt_add_number(t, "\x19", 1, number, 7);
	else if (!strcmp(name, "mtc"))
		pt_add_number(t, "\x59", 1, number, 1);
	else if (!strcmp(name, "cyc"))
		pt_add_cyc(t, number);
	else if (!strcmp(name, "cbr"))
		pt_add_number(t, "\2\3", 2, number, 2);
	else if (!strcmp(name, "tma"))
		pt_add_number(t, "\2\x73", 2, number | strtoull(end + 1, NULL, 10) << 24, 5);
	else
		return false;
	return true;
}

static inline void pt_add_packet(struct pt_trace *t, char *word)
{
	char *value = strchr(word, ':'), whole[20];

	if (value)
		*value++ = '\0';
	snprintf(whole, sizeof(whole), "%.9s%.9s", word, value ? value : "");
	if (pt_add_fixed(t, whole) || pt_add_address_packet(t, word, value ? value : "0") ||
	    (value && pt_add_time(t, word, value)))
		return;
	if (!strcmp(word, "psb"))
		pt_add_psb(t, value);
	else if (value && !strcmp(word, "tnt"))
		pt_add_tnt(t, value);
	else if (value && !strcmp(word, "ptw"))
		pt_add_number(t, "\2\x32", 2, strtoull(value, NULL, 16), 8);
	else if (value && !strcmp(word, "ptwip"))
		pt_add_number(t, "\2\xb2", 2, strtoull(value, NULL, 16), 8);
	else if (value && !strcmp(word, "hex"))
		pt_add_hex(t, value);
	else
		check(word, false);
}

static inline void pt_add_text(struct pt_trace *t, const char *text)
{
	char *copy = strdup(text), *rest = NULL;

	for (char *word = strtok_r(copy, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
		pt_add_packet(t, word);
	free(copy);
}

/* Changes of the kernel's code */

struct pt_poke {
	uint64_t time, offset;
	const char *old, *new; /* hexadecimal */
};

static const struct pt_poke *pt_pokes; /* of the tests that follow */
static size_t pt_nr_pokes;

static inline size_t pt_poke_bytes(const struct pt_poke *p, bool new, uint8_t bytes[16])
{
	struct pt_trace t;

	t.len = 0;
	pt_add_hex(&t, new ? p->new : p->old);
	memcpy(bytes, t.data, t.len);
	return t.len;
}

static inline void pt_add_pokes(struct ipt_history *h)
{
	for (size_t i = 0; i < pt_nr_pokes; i++) {
		const struct pt_poke *p = &pt_pokes[i];
		uint8_t bytes[32];
		struct ipt_poke poke = { .address = PT_BASE + p->offset, .time = p->time };

		poke.old_len = (uint32_t)pt_poke_bytes(p, false, bytes);
		poke.new_len = (uint32_t)pt_poke_bytes(p, true, bytes + poke.old_len);
		if (!ipt_pokes_add(&h->pokes, &poke, bytes))
			abort();
	}
}

/* A machine with one process, or a kernel, whose code is at PT_BASE */

struct pt_machine {
	struct pt_bytes bytes;
	struct ipt_code code;
	struct ipt_history history;
	struct ipt_world world;
	struct ipt_clock_info clock;
};

static inline size_t pt_read_code(const void *data, uint64_t offset, uint8_t *bytes, size_t size)
{
	const struct pt_bytes *code = data;
	size_t left = offset < code->len ? code->len - (size_t)offset : 0;

	if (size > left)
		size = left;
	if (size)
		memcpy(bytes, code->data + offset, size);
	return size;
}

static inline void pt_open(struct pt_machine *m, struct pt_bytes code)
{
	memset(m, 0, sizeof(*m));
	m->bytes = code;
	ipt_code_init(&m->code, (struct ipt_bytes){ .read = pt_read_code, .data = &m->bytes },
		      code.len, 0);
	ipt_history_map(&m->history, (uint64_t)PT_BASE >> 63 ? IPT_KERNEL_PID : PT_PID, 0, PT_BASE,
			code.len, &m->code);
	ipt_history_map(&m->history, PT_PID, 0, PT_FOREIGN, 4096, NULL);
	ipt_history_queue(&m->history, PT_PID);
	pt_add_pokes(&m->history);
	ipt_history_complete(&m->history);
	m->world = ipt_history_world(&m->history);
	m->clock = (struct ipt_clock_info){ { 80, 1 }, 3, 20 };
}

static inline void pt_close(struct pt_machine *m)
{
	ipt_history_release(&m->history);
	ipt_code_release(&m->code);
}

/* Branches as text */

struct pt_result {
	char text[1 << 16];
	size_t len;
	uint64_t insns;
	uint64_t targets[PT_MAX_TARGETS];
	size_t nr_targets;
	bool gap;
};

static inline const char *pt_place(uint64_t address, char text[20])
{
	if (address >= PT_BASE && address < PT_BASE + 0x10000)
		snprintf(text, 20, "%" PRIx64, address - PT_BASE);
	else
		snprintf(text, 20, address ? "@%" PRIx64 : "-", address);
	return text;
}

static inline void pt_say(struct pt_result *r, const char *text)
{
	r->len += (size_t)snprintf(r->text + r->len, sizeof(r->text) - r->len, "%s%s",
				   r->len ? "; " : "", text);
}

static inline void pt_say_branch(struct pt_result *r, const struct ipt_branch *b)
{
	static const char *const names[] = {
		[IPT_DID_JUMP] = "jump",     [IPT_DID_JUMP_ANY] = "any",  [IPT_DID_CALL] = "call",
		[IPT_DID_RETURN] = "ret",    [IPT_DID_ENTER] = "enter",	  [IPT_DID_LEAVE] = "leave",
		[IPT_DID_END] = "end",	     [IPT_DID_INTERRUPT] = "int", [IPT_DID_PAUSE] = "pause",
		[IPT_DID_BEGIN] = "begin",   [IPT_DID_GO_ON] = "on",	  [IPT_DID_GAP] = "gap",
		[IPT_DID_SWITCH] = "switch",
	};
	char text[120], from[20], to[20];

	if (b->kind != IPT_DID_NOTE)
		r->insns += b->insns;
	if (b->kind == IPT_DID_SWITCH)
		return;
	if (b->kind == IPT_DID_GAP) {
		r->gap = true;
		snprintf(text, sizeof(text), "gap %s at %" PRIu64 " %s %" PRIu32,
			 pt_place(b->from, from), b->to, ipt_gap_names[b->size], b->insns);
	} else if (b->kind == IPT_DID_NOTE) {
		snprintf(text, sizeof(text), "%s %s=%" PRIx64 " %" PRIu32, note_names[b->size],
			 pt_place(b->from, from), b->to, b->insns);
	} else {
		snprintf(text, sizeof(text), "%s %s>%s %" PRIu32, names[b->kind],
			 pt_place(b->from, from), pt_place(b->to, to), b->insns);
	}
	pt_say(r, text);
	if (b->kind <= IPT_DID_INTERRUPT && b->to && r->nr_targets < PT_MAX_TARGETS)
		r->targets[r->nr_targets++] = b->to;
}

/* With all branches, also those inside of functions. */
static inline void pt_decode(const struct pt_trace *t, struct pt_bytes code, struct pt_result *r)
{
	struct pt_machine m;
	struct ipt_flow flow = { .all = true };
	size_t at = 0;
	char rest[30];

	pt_open(&m, code);
	memset(r, 0, sizeof(*r));
	flow.world = &m.world;
	flow.clock.info = &m.clock;
	ipt_flow_begin(&flow);
	while (at < t->len) {
		at += ipt_flow_run(&flow, t->data + at, t->len - at, at, true);
		for (size_t i = 0; i < flow.nr; i++)
			pt_say_branch(r, &flow.branches[i]);
		flow.nr = 0;
	}
	r->insns += flow.insns;
	snprintf(rest, sizeof(rest), "+%" PRIu64, flow.insns);
	pt_say(r, rest);
	ipt_flow_release(&flow);
	pt_close(&m);
}

/* What libipt says */

#ifdef HAVE_LIBIPT
struct pt_memory {
	struct pt_bytes code;
	struct pt_insn_decoder *decoder;
};

/* Puts the bytes of a poke over what was read from an offset on. */
static inline void pt_overlay(const struct pt_poke *p, bool new, uint64_t offset, uint8_t *to,
			      size_t size)
{
	uint8_t bytes[16];
	size_t len = pt_poke_bytes(p, new, bytes);

	for (size_t i = 0; i < len; i++) {
		if (p->offset + i >= offset && p->offset + i < offset + size)
			to[p->offset + i - offset] = bytes[i];
	}
}

/* The code as it is at the time of the last packet that libipt has read. */
static inline int pt_oracle_read(uint8_t *to, size_t size, const struct pt_asid *asid, uint64_t ip,
				 void *data)
{
	const struct pt_memory *memory = data;
	uint64_t offset = ip - PT_BASE, time = 0;
	size_t got;

	(void)asid;
	got = pt_read_code(&memory->code, offset, to, size);
	if (ip < PT_BASE || (!got && !pt_nr_pokes))
		return -pte_nomap;
	if (!got) /* there is nothing but what is poked there */
		memset(to, 0, got = size);
	pt_insn_time(memory->decoder, &time, NULL, NULL);
	for (size_t i = pt_nr_pokes; i-- > 0;)
		pt_overlay(&pt_pokes[i], false, offset, to, got);
	for (size_t i = 0; i < pt_nr_pokes && pt_pokes[i].time <= time; i++)
		pt_overlay(&pt_pokes[i], true, offset, to, got);
	return (int)got;
}

static inline bool pt_is_branch(const struct pt_insn *insn, uint64_t next)
{
	switch (insn->iclass) {
	case ptic_call:
	case ptic_return:
	case ptic_jump:
	case ptic_far_call:
	case ptic_far_return:
	case ptic_far_jump: return true;
	default: return insn->ip + insn->size != next;
	}
}

static inline void pt_oracle_arrive(struct pt_result *r, const struct pt_insn *last, uint64_t ip)
{
	if (pt_is_branch(last, ip) && r->nr_targets < PT_MAX_TARGETS)
		r->targets[r->nr_targets++] = ip;
}

/* Tracing may end, or an interrupt may come, before the first instruction at a target. */
static inline void pt_oracle_event(const struct pt_event *event, struct pt_insn *last,
				   bool *enabled, struct pt_result *r)
{
	if (event->type == ptev_async_branch) {
		if (*enabled)
			pt_oracle_arrive(r, last, event->variant.async_branch.from);
		*last = (struct pt_insn){ .iclass = ptic_far_call };
		*enabled = true;
	}
	if (event->type == ptev_async_disabled && *enabled)
		pt_oracle_arrive(r, last, event->variant.async_disabled.at);
	if (event->type == ptev_async_disabled || event->type == ptev_disabled)
		*enabled = false;
}

/* Executes a trace up to its end, or the first error. Returns the last status. */
static inline int pt_oracle_run(struct pt_insn_decoder *decoder, struct pt_result *r)
{
	struct pt_insn insn = { 0 }, last = { 0 };
	int status = pt_insn_sync_forward(decoder);
	bool enabled = false;

	while (status >= 0) {
		while (status >= 0 && status & pts_event_pending) {
			struct pt_event event;

			status = pt_insn_event(decoder, &event, sizeof(event));
			if (status >= 0)
				pt_oracle_event(&event, &last, &enabled, r);
		}
		if (status < 0 || status & pts_eos)
			break;
		status = pt_insn_next(decoder, &insn, sizeof(insn));
		if (status < 0)
			break;
		r->insns++;
		if (enabled)
			pt_oracle_arrive(r, &last, insn.ip);
		last = insn;
		enabled = true;
	}
	return status;
}

static inline bool pt_oracle(const struct pt_trace *t, struct pt_bytes code, struct pt_result *r)
{
	struct pt_memory memory = { .code = code };
	struct pt_config config;
	int status;

	pt_config_init(&config);
	config.begin = (uint8_t *)(uintptr_t)t->data;
	config.end = config.begin + t->len;
	config.errata.bdm70 = 1;
	memset(r, 0, sizeof(*r));
	memory.decoder = pt_insn_alloc_decoder(&config);
	pt_image_set_callback(pt_insn_get_image(memory.decoder), pt_oracle_read, &memory);
	status = pt_oracle_run(memory.decoder, r);
	pt_insn_free_decoder(memory.decoder);
	if (status < 0 && status != -pte_eos)
		printf("# libipt: %s\n", pt_errstr(pt_errcode(status)));
	return status >= 0 || status == -pte_eos;
}
#endif

static inline bool pt_agrees(const struct pt_trace *t, struct pt_bytes code,
			     const struct pt_result *r)
{
#ifdef HAVE_LIBIPT
	static struct pt_result other;

	if (r->gap)
		return true;
	if (pt_oracle(t, code, &other) && other.insns == r->insns &&
	    other.nr_targets == r->nr_targets &&
	    !memcmp(other.targets, r->targets, r->nr_targets * sizeof(*r->targets)))
		return true;
	printf("# libipt: %" PRIu64 " instructions, not %" PRIu64 "; %zu targets, not %zu\n",
	       other.insns, r->insns, other.nr_targets, r->nr_targets);
	return false;
#else
	(void)t, (void)code, (void)r;
	return true;
#endif
}

/* With `alone`, of packets that libipt does not know, or understands otherwise. */
static inline void pt_expect_of(const char *name, struct pt_bytes code, const char *trace,
				const char *expected, bool alone)
{
	static struct pt_trace t;
	static struct pt_result r;
	bool good;

	t.len = 0;
	pt_add_text(&t, trace);
	pt_decode(&t, code, &r);
	good = !strcmp(r.text, expected);
	if (!good)
		printf("# is:     %s\n# not:    %s\n", r.text, expected);
	check(name, good && (alone || pt_agrees(&t, code, &r)));
}

static inline void pt_expect(const char *name, struct pt_bytes code, const char *trace,
			     const char *expected)
{
	pt_expect_of(name, code, trace, expected, false);
}

static inline void pt_expect_alone(const char *name, struct pt_bytes code, const char *trace,
				   const char *expected)
{
	pt_expect_of(name, code, trace, expected, true);
}

static inline bool pt_can_test(void)
{
#if defined(HAVE_LIBIPT) && defined(HAVE_ZYDIS)
	return true;
#else
	printf("skip Intel PT: kscope was built without libipt or Zydis\n");
	return false;
#endif
}

#endif

// SPDX-License-Identifier: GPL-2.0-or-later
/* The language of traces: by hand, cut at every byte, and damaged; and the rule that it learns by. */
#include <stdlib.h>
#include <string.h>

#include "read/wire_trace.h"
#include "test.h"
#include "wire/trace.h"

/*
 * main at 0x1000: 3 instructions, 8 bytes, the last of 5 calls f; behind it a loop of 2 instructions
 * that goes on to the end of main.
 * f at 0x2000: 2 instructions, 4 bytes, the last of 1 returns.
 */
static const uint8_t trace_bytes[] = {
	0xc6, 2,    0,	  0,				/* begin, nothing is known */
	0xc5, 5,    0x80, 0x80, 0x02, 1,		/* sp 0x4000, kernel */
	0xc1, 0x80, 0x40, 4,	3,    8, 5, 0xf0, 0x3f, /* main, 0x1000, calls */
	0xc1, 0xf0, 0x3f, 6,	2,    4, 1,		/* f returns */
	0xc1, 0xf7, 0x3f, 2,	2,    4, 2, 7,		/* the loop, to its beginning */
	0xc0, 2,					/* once more */
	0x83, 0x00,					/* and three times more */
	0xc4, 100,					/* 100 ns later */
	0xc2, 1,    0xc3, 3,	4,			/* after one of 2, a trap, at 0x100a */
	0xc5, 1,    0xff, 0x01,				/* sp 0x3f80 */
	0xc1, 0xe8, 0xbf, 0x01, 8,    3, 6, 2,		/* the handler, at 0x4000, leaves */
	0xc5, 1,    0x80, 0x02,				/* sp 0x4000 */
	0xc1, 0xf7, 0xbf, 0x01, 0,    1, 2, 2,		/* back at 0x100a */
	0xc0, 2,    0xc7, 2,				/* end, both done */
};

/* Offsets of some codes' ends. */
#define AFTER_BEGIN 4
#define AFTER_STATE 10
#define AFTER_MAIN 19
#define AFTER_F 26

#define NR_BLOCKS 64

static const struct wire_trace_info info; /* of the first version */

struct want {
	enum branch_kind kind;
	uint64_t from, to, instructions, next, sp, time;
};

static const struct want wanted[] = {
	{ BRANCH_BEGIN, 0, 0x1000, 0, 0, 0x4000, 7 },
	{ BRANCH_CALL, 0x1003, 0x2000, 3, 0x1008, 0, 7 },
	{ BRANCH_RETURN, 0x2003, 0x1008, 2, 0, 0, 7 },
	{ BRANCH_JUMP, 0x100a, 0x1008, 2, 0, 0, 7 },
	{ BRANCH_JUMP, 0x100a, 0x1008, 2, 0, 0, 7 },
	{ BRANCH_JUMP, 0x100a, 0x1008, 2, 0, 0, 7 },
	{ BRANCH_JUMP, 0x100a, 0x1008, 2, 0, 0, 7 },
	{ BRANCH_ENTER, 0x100a, 0x4000, 1, 0x100a, 0x3f80, 107 },
	{ BRANCH_LEAVE, 0x4004, 0x100a, 3, 0, 0x4000, 107 },
	{ BRANCH_JUMP, 0x100a, 0x1008, 1, 0, 0, 107 },
	{ BRANCH_END, 0x100a, 0, 2, 0, 0, 107 },
};
#define NR_WANTED (sizeof(wanted) / sizeof(wanted[0]))

static bool is(const struct event *ev, const struct want *want)
{
	const struct event_branch *b = &ev->branch;
	bool same = b->kind == want->kind && b->from == want->from && b->to == want->to &&
		    b->instructions == want->instructions && b->next == want->next &&
		    b->sp == want->sp && ev->time == want->time && b->context == IP_KERNEL;

	if (!same)
		printf("# %d %lx -> %lx n %lu next %lx sp %lx time %lu\n", b->kind, b->from, b->to,
		       b->instructions, b->next, b->sp, ev->time);
	return same;
}

static void test_events(void)
{
	struct wire_trace trace;
	struct event ev = { 0 };
	bool good = true;

	wire_trace_init(&trace, 0, info);
	wire_trace_feed(&trace, trace_bytes, sizeof(trace_bytes), 7);
	for (size_t i = 0; i < NR_WANTED; i++)
		good &= wire_trace_next(&trace, &ev) == 1 && is(&ev, &wanted[i]);
	check("trace: every event", good && wire_trace_next(&trace, &ev) == 0);
	check("trace: every instruction", trace.total == 20);
	wire_trace_release(&trace);
}

/* A cut inside a code is damage, one between codes is the end of a chunk; nothing is read beyond. */
static void test_cuts(void)
{
	bool good = true;

	for (size_t len = 0; len < sizeof(trace_bytes); len++) {
		uint8_t *copy = malloc(len + !len); /* so that ASan sees a byte too far */
		struct wire_trace trace;
		struct event ev = { 0 };
		size_t n = 0;
		int ret;

		memcpy(copy, trace_bytes, len);
		wire_trace_init(&trace, 0, info);
		wire_trace_feed(&trace, copy, len, 7);
		while ((ret = wire_trace_next(&trace, &ev)) > 0 && n < NR_WANTED)
			good &= is(&ev, &wanted[n++]);
		good &= ret <= 0 && n < NR_WANTED;
		wire_trace_release(&trace);
		free(copy);
	}
	check("trace: cut at every byte", good);
}

/* Decodes the trace with a sample at an offset. Returns whether it and all branches are there. */
static bool has_sample(size_t at, int *end)
{
	static const uint8_t sample[] = { 0xc8, 0x81, 1 };
	uint8_t bytes[sizeof(trace_bytes) + sizeof(sample)];
	struct wire_trace trace;
	struct event ev = { 0 };
	size_t n = 0, samples = 0;

	memcpy(bytes, trace_bytes, at);
	memcpy(bytes + at, sample, sizeof(sample));
	memcpy(bytes + at + sizeof(sample), trace_bytes + at, sizeof(trace_bytes) - at);
	wire_trace_init(&trace, 0, info);
	wire_trace_feed(&trace, bytes, sizeof(bytes), 7);
	while ((*end = wire_trace_next(&trace, &ev)) > 0) {
		if (ev.kind == EVENT_CHECK)
			samples += trace.place == 129 && ev.time == 7;
		else if (n < NR_WANTED)
			n += is(&ev, &wanted[n]);
	}
	wire_trace_release(&trace);
	return samples == 1 && n == NR_WANTED;
}

/* The place of a sample is between two steps: an event of its own, which changes nothing else. */
static void test_samples(void)
{
	static const size_t between[] = { AFTER_MAIN, AFTER_F };
	static const size_t elsewhere[] = { 0, AFTER_BEGIN, AFTER_STATE, sizeof(trace_bytes) };
	bool good = true;
	int end;

	for (size_t i = 0; i < sizeof(between) / sizeof(between[0]); i++)
		good &= has_sample(between[i], &end) && end == 0;
	check("trace: samples between steps", good);
	good = true;
	for (size_t i = 0; i < sizeof(elsewhere) / sizeof(elsewhere[0]); i++)
		good &= !has_sample(elsewhere[i], &end) && end < 0;
	check("trace: and nowhere else", good);
}

/* Guests of SVM */

static const uint8_t guest_bytes[] = {
	0xc6, 2,    0,	  0,			     /* begin, nothing is known */
	0xc5, 7,    0x80, 0x80, 2,    0x80, 0x20, 1, /* sp 0x4000, space 0x1000, kernel */
	0xc1, 0x80, 0x80, 1,	0x78, 2,    4,	  3,	0,    0, /* 0x2000: vmrun, which replaces sp */
	0xc5, 3,    0x80, 0xc0, 2,    0x80, 0xe0, 0x80, 0x80, 0x80, 0x80,
	0x80, 8, /* sp 0x9000, space 0x3000 of guest 1 */
	0xc1, 0xf8, 0xbf, 1,	0x46, 2,    4,	  1,	0x10, /* 0x5000 returns */
	0xc3, 3,    0x80, 0x40,				      /* a trap, at 0x6000 */
	0xc5, 0x13, 0xff, 0xbf, 2,    0x80, 0x20, 0x90, 0xc0, 2, /* sp 0x4000, space 0x1000, left 0x9008 */
	0xc1, 0xff, 0xbf, 1,	1,    1,    2,	  2,	0xb, /* 0x2004 jumps to 0x2000 */
	0xc5, 0,    0xc0, 0,				     /* there */
	0xc5, 3,    0x80, 0xc0, 2,    0x80, 0xe0, 0x80, 0x80, 0x80, 0x80,
	0x80, 8,				     /* sp 0x9000, guest 1 */
	0xc1, 0xf4, 0xbf, 2,	7,    1,    2,	  2, /* 0x7000 calls the kernel of the guest */
	0xc3, 3,    0x80, 0x40,			     /* a trap, at 0x8000 */
	0xc5, 0x13, 0xff, 0xbf, 2,    0x80, 0x20, 0x80, 0xc0, 2, /* sp 0x4000, space 0x1000, left 0x9000 */
	0xc0, 2,						 /* back after vmrun */
	0xc5, 0,    0xc0, 0,	0xc5, 0,    0xc0, 2, /* to vmrun, whose guest leaves at once */
};

static const struct {
	struct want want;
	uint64_t left;
	unsigned guest;
} in_guests[] = {
	{ { BRANCH_BEGIN, 0, 0x2000, 0, 0, 0x4000, 7 }, 0, 0 },
	{ { BRANCH_LEAVE, 0x2001, 0x5000, 2, 0, 0x9000, 7 }, 0x4000, 1 },
	/* It returned, and left before the caller went on. */
	{ { BRANCH_RETURN, 0x5003, 0x6000, 2, 0, 0, 7 }, 0, 1 },
	{ { BRANCH_ENTER, 0x6000, 0x2004, 0, 0x6000, 0x4000, 7 }, 0x9008, 0 },
	{ { BRANCH_JUMP, 0x2004, 0x2000, 1, 0, 0x4000, 7 }, 0, 0 },
	{ { BRANCH_LEAVE, 0x2001, 0x5000 + 0x2000, 2, 0, 0x9000, 7 }, 0x4000, 1 },
	/* It called its own kernel, and left before that ran. */
	{ { BRANCH_ENTER, 0x7000, 0x8000, 1, 0x7002, 0x9000, 7 }, 0, 1 },
	{ { BRANCH_ENTER, 0x8000, 0x2004, 0, 0x8000, 0x4000, 7 }, 0x9000, 0 },
	{ { BRANCH_JUMP, 0x2004, 0x2000, 1, 0, 0x4000, 7 }, 0, 0 },
	{ { BRANCH_JUMP, 0x2001, 0x2004, 2, 0, 0x4000, 7 }, 0x4000, 0 },
};

static void test_guests(void)
{
	struct wire_trace trace;
	struct event ev = { 0 };
	bool good = true;

	wire_trace_init(&trace, 0, wire_trace_info(2, "x86_64"));
	wire_trace_feed(&trace, guest_bytes, sizeof(guest_bytes), 7);
	for (size_t i = 0; i < sizeof(in_guests) / sizeof(in_guests[0]); i++)
		good &= wire_trace_next(&trace, &ev) == 1 && is(&ev, &in_guests[i].want) &&
			ev.branch.left == in_guests[i].left &&
			ev.branch.guest == in_guests[i].guest &&
			ev.branch.space >> 52 == in_guests[i].guest;
	check("trace: guests", good && wire_trace_next(&trace, &ev) == 0);
	wire_trace_release(&trace);
	/* Of other machines, these bits are the number of an address space. */
	wire_trace_init(&trace, 0, wire_trace_info(2, "aarch64"));
	wire_trace_feed(&trace, guest_bytes, sizeof(guest_bytes), 7);
	for (good = true; wire_trace_next(&trace, &ev) == 1;)
		good &= !ev.branch.guest;
	check("trace: no guests", good);
	wire_trace_release(&trace);
}

/* Interrupts */

static const uint8_t mask_bytes[] = {
	0xc6, 2,    0,	  0,			    /* begin, nothing is known */
	0xc5, 0x45, 0x80, 0x80, 2,    1,	    /* sp 0x4000, kernel, interrupts are off */
	0xc1, 0x80, 0x40, 0x80, 4,    8, 2,   9, 2, /* A, 0x1000: on after 2 of 4, off after 4 */
	0xc1, 0,    0x80, 3,	6,    2, 0xc,	    /* B: the last instruction switches them */
	0xc1, 0,    0,	  1,	2,    2,	    /* C */
	0xc0, 1,    0xca, 2,	0xc0, 2,	    /* B, after which they are off */
	0xc0, 1,    0xca, 0,	0x81, 0,	    /* B, which changes nothing */
	0xc3, 0x0a, 0xc5, 0x40,			    /* a trap, where they were on, to off */
	0xc1, 0xe0, 0xff, 1,	8,    1, 2,   2,    /* D leaves */
	0xc5, 0x20, 0xc0, 2,			    /* C, on */
	0xc5, 0x44, 0,	  0xc0, 1,		    /* B as a program */
	0xca, 2,    0xc0, 2,	0xc7, 1,	    /* which cannot switch them; end */
};

static const struct {
	bool is_mask;
	int what; /* enum event_interrupts, or enum branch_kind */
	uint64_t instructions;
} masks[] = {
	{ false, BRANCH_BEGIN, 0 },  { true, INTERRUPTS_OFF, 0 }, { true, INTERRUPTS_ON, 2 },
	{ true, INTERRUPTS_OFF, 4 }, { true, INTERRUPTS_ON, 7 },  { false, BRANCH_JUMP, 8 },
	{ true, INTERRUPTS_OFF, 3 }, { false, BRANCH_JUMP, 4 },	  { true, INTERRUPTS_ON, 4 },
	{ false, BRANCH_ENTER, 4 },  { true, INTERRUPTS_OFF, 0 }, { true, INTERRUPTS_ON, 1 },
	{ false, BRANCH_LEAVE, 1 },  { false, BRANCH_JUMP, 1 },	  { false, BRANCH_END, 4 },
};

static bool is_expected(const struct event *ev, size_t i)
{
	bool is_mask = ev->kind == EVENT_MASK;
	int what = is_mask ? (int)ev->mask.interrupts : (int)ev->branch.kind;
	uint64_t instructions = is_mask ? ev->mask.instructions : ev->branch.instructions;

	if (is_mask == masks[i].is_mask && what == masks[i].what &&
	    instructions == masks[i].instructions)
		return true;
	printf("# %zu: mask %d, %d, %lu\n", i, is_mask, what, instructions);
	return false;
}

static void test_masks(void)
{
	struct wire_trace trace;
	struct event ev = { 0 };
	bool good = true;

	wire_trace_init(&trace, 0, wire_trace_info(3, "x86_64"));
	wire_trace_feed(&trace, mask_bytes, sizeof(mask_bytes), 7);
	for (size_t i = 0; i < sizeof(masks) / sizeof(masks[0]); i++)
		good &= wire_trace_next(&trace, &ev) == 1 && is_expected(&ev, i);
	check("trace: interrupts", good && wire_trace_next(&trace, &ev) == 0);
	wire_trace_release(&trace);
}

/* What is not known does not count as off: a trap right after B, or after a return, does not say it. */
static void test_unknown_masks(void)
{
	static const uint8_t after_b[] = { 0xc3, 2, 0xc5, 0x40, 0xc0, 0 };
	static const uint8_t after_return[] = {
		0xc1, 0xe0, 0xff, 1,	8,    1, 2, 2, /* D leaves */
		0xc3, 2,    0xc5, 0x40, 0xc0, 0	       /* and a trap follows */
	};
	static const size_t after_new_b = 26, after_new_c = 32;
	struct wire_trace trace;
	struct event ev = { 0 };
	unsigned unknown = 0, off = 0;

	wire_trace_init(&trace, 0, wire_trace_info(3, "x86_64"));
	wire_trace_feed(&trace, mask_bytes, after_new_b, 7);
	while (wire_trace_next(&trace, &ev) == 1)
		;
	wire_trace_feed(&trace, after_b, sizeof(after_b), NO_TIME);
	while (wire_trace_next(&trace, &ev) == 1) {
		unknown += ev.kind == EVENT_MASK && ev.mask.interrupts == INTERRUPTS_UNKNOWN;
		off += ev.kind == EVENT_MASK && ev.mask.interrupts == INTERRUPTS_OFF;
	}
	check("trace: unknown before a trap", unknown == 1 && off == 1);
	wire_trace_release(&trace);
	wire_trace_init(&trace, 0, wire_trace_info(3, "x86_64"));
	wire_trace_feed(&trace, mask_bytes, after_new_c, 7);
	while (wire_trace_next(&trace, &ev) == 1)
		;
	wire_trace_feed(&trace, after_return, sizeof(after_return), NO_TIME);
	unknown = 0;
	while (wire_trace_next(&trace, &ev) == 1)
		unknown += ev.kind == EVENT_MASK && ev.mask.interrupts == INTERRUPTS_UNKNOWN;
	check("trace: and after a return from an exception", unknown == 1);
	wire_trace_hole(&trace);
	wire_trace_feed(&trace, trace_bytes, sizeof(trace_bytes), 9);
	for (off = 0; wire_trace_next(&trace, &ev) == 1;)
		off += ev.kind == EVENT_MASK;
	check("trace: and after a hole", off == 0 && trace.shown_mask == WIRE_MASK_UNKNOWN);
	wire_trace_release(&trace);
}

/* A cpu that waits, with interrupts off, counts as on. */
static void test_waits(void)
{
	static const uint8_t bytes[] = {
		0xc6, 2,    0,	  0,		 /* begin, nothing is known */
		0xc5, 0x45, 0x80, 0x80, 2, 1,	 /* sp 0x4000, kernel, off */
		0xc1, 0x80, 0x40, 9,	2, 4, 2, /* waits */
		0xc4, 100,  0xc4, 100,		 /* the times before and after */
		0xc1, 0,    0x80, 1,	2, 2, 4, /* then off for 1 instruction */
		0xc0, 0,    0xc0, 1,		 /* once more, without a time */
	};
	static const struct {
		int interrupts;
		uint64_t time, instructions;
	} want[] = {
		{ INTERRUPTS_OFF, 7, 0 },
		{ INTERRUPTS_ON, 107, 1 },
		{ INTERRUPTS_OFF, 207, 2 },
		{ INTERRUPTS_ON, 207, 3 },
	};
	struct wire_trace trace;
	struct event ev = { 0 };
	size_t n = 0;
	bool good = true;

	wire_trace_init(&trace, 0, wire_trace_info(3, "x86_64"));
	wire_trace_feed(&trace, bytes, sizeof(bytes), 7);
	while (wire_trace_next(&trace, &ev) == 1) {
		if (ev.kind != EVENT_MASK || n == sizeof(want) / sizeof(want[0]))
			continue;
		good &= (int)ev.mask.interrupts == want[n].interrupts && ev.time == want[n].time &&
			ev.mask.instructions == want[n].instructions;
		n++;
	}
	check("trace: waits with interrupts off", good && n == sizeof(want) / sizeof(want[0]));
	wire_trace_release(&trace);
}

static void test_holes(void)
{
	struct wire_trace trace;
	struct event ev = { 0 };
	static const uint8_t steps[] = { 0x81, 0 };

	wire_trace_init(&trace, 0, info);
	wire_trace_feed(&trace, steps, sizeof(steps), NO_TIME);
	check("trace: bytes without a beginning are left out", wire_trace_next(&trace, &ev) == 0);
	wire_trace_feed(&trace, trace_bytes, 40, 7);
	while (wire_trace_next(&trace, &ev) > 0)
		;
	wire_trace_hole(&trace);
	wire_trace_feed(&trace, steps, sizeof(steps), NO_TIME);
	check("trace: and so is what follows a hole", wire_trace_next(&trace, &ev) == 0);
	wire_trace_feed(&trace, trace_bytes, sizeof(trace_bytes), 9);
	check("trace: up to the next beginning",
	      wire_trace_next(&trace, &ev) == 1 && ev.branch.kind == BRANCH_BEGIN && ev.time == 9);
	wire_trace_release(&trace);
}

/* A trace may begin inside a block, but not behind it. */
static void test_skipped(void)
{
	uint8_t bytes[sizeof(trace_bytes)];
	struct wire_trace trace;
	struct event ev = { 0 };

	memcpy(bytes, trace_bytes, sizeof(bytes));
	for (bytes[2] = 1; bytes[2] <= 3; bytes[2]++) {
		wire_trace_init(&trace, 0, info);
		wire_trace_feed(&trace, bytes, sizeof(bytes), 7);
		check("trace: begins inside a block",
		      wire_trace_next(&trace, &ev) == 1 && wire_trace_next(&trace, &ev) == 1 &&
			      ev.branch.instructions == 3u - bytes[2]);
		wire_trace_release(&trace);
	}
	wire_trace_init(&trace, 0, info);
	wire_trace_feed(&trace, bytes, sizeof(bytes), 7);
	check("trace: begins behind a block", wire_trace_next(&trace, &ev) < 0);
	wire_trace_release(&trace);
}

static void test_garbage(const char *name, const uint8_t *whole, size_t size)
{
	uint64_t seed = 1;
	uint8_t bytes[256];
	bool good = true;

	for (int round = 0; round < 20000; round++) {
		struct wire_trace trace;
		struct event ev = { 0 };
		int ret, n = 0;

		memcpy(bytes, whole, size);
		for (int i = 0; i < 4; i++)
			bytes[next_random(&seed) % size] = (uint8_t)next_random(&seed);
		wire_trace_init(&trace, 0, info);
		wire_trace_feed(&trace, bytes, size, 7);
		while ((ret = wire_trace_next(&trace, &ev)) > 0) {
			n++;
			good &= ev.kind != EVENT_BRANCH || ev.branch.instructions < 10000000;
		}
		good &= n < 100000 && (ret == 0 || trace.wrong);
		wire_trace_release(&trace);
	}
	check(name, good);
}

/* One side of a trace: blocks of all flows, in a row. */
struct side {
	struct wire_calls calls;
	struct wire_block blocks[NR_BLOCKS];
};

static void init_side(struct side *side)
{
	uint64_t seed = 2;

	memset(side, 0, sizeof(*side));
	for (size_t i = 0; i < NR_BLOCKS; i++) {
		side->blocks[i].start = i * 16;
		side->blocks[i].end = i * 16 + 16;
		side->blocks[i].flow = (uint8_t)(next_random(&seed) % WIRE_FLOW_KINDS);
		side->blocks[i].flags = next_random(&seed) % 8 ? 0 : next_random(&seed) % 4;
	}
}

/* Returns go behind their call; others go on, or to a place that depends on theirs; some anywhere. */
static size_t choose(const struct side *side, size_t from, uint64_t *seed)
{
	const struct wire_block *call = side->calls.at[(side->calls.depth - 1) % WIRE_CALLS];
	uint32_t chance = next_random(seed) % 16;

	if (chance == 0)
		return next_random(seed) % NR_BLOCKS;
	if (side->blocks[from].flow == WIRE_FLOW_RETURN && call)
		return call->end / 16 % NR_BLOCKS;
	return (chance < 8 ? from + 1 : from * 7 + 3) % NR_BLOCKS;
}

/* What one side writes the other side understands, and both learn the same. */
static void test_sides(void)
{
	static struct side writer, reader;
	size_t steps[WIRE_FLOW_KINDS][2] = { 0 }, from = 0;
	uint64_t seed = 3;
	bool good = true;

	init_side(&writer);
	init_side(&reader);
	for (int i = 0; i < 200000; i++) {
		size_t to = choose(&writer, from, &seed);
		struct wire_block *last = &reader.blocks[from], *next = &reader.blocks[to];
		int bit = wire_step_bit(&writer.calls, &writer.blocks[from], &writer.blocks[to]);
		bool moved = next_random(&seed) % 16 == 0;

		if (bit < 0) {
			wire_learn(&writer.calls, &writer.blocks[from], &writer.blocks[to], moved);
			wire_learn(&reader.calls, last, next, moved);
		} else {
			steps[last->flow][bit]++;
			good &= wire_step(&reader.calls, last, bit) == next;
		}
		from = to;
	}
	check("trace: a bit leads the reader to the block that the writer meant", good);
	check("trace: bits stand for calls, returns and jumps",
	      steps[WIRE_FLOW_CALL][0] && steps[WIRE_FLOW_RETURN][0] &&
		      steps[WIRE_FLOW_RETURN][1] && steps[WIRE_FLOW_COND][0] &&
		      steps[WIRE_FLOW_COND][1]);
	for (size_t i = 0; i < NR_BLOCKS; i++) {
		for (size_t j = 0; j < 2; j++) {
			const struct wire_block *a = writer.blocks[i].next[j],
						*b = reader.blocks[i].next[j];

			good &= a ? b && a->start == b->start : !b;
		}
	}
	check("trace: writer and reader learn the same successors", good);
}

int main(void)
{
	test_events();
	test_cuts();
	test_samples();
	test_guests();
	test_holes();
	test_skipped();
	test_masks();
	test_unknown_masks();
	test_waits();
	test_garbage("trace: damage anywhere", trace_bytes, sizeof(trace_bytes));
	test_garbage("trace: damage among masks", mask_bytes, sizeof(mask_bytes));
	test_sides();
	return test_result();
}

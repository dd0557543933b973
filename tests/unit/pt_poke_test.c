// SPDX-License-Identifier: GPL-2.0-or-later
/* pt/poke: code that the kernel changes while it runs, at the right times. */
#define PT_BASE 0xffffffff81000000
#include "pt_text.h"

#define NOP5 "0f1f440000"
#define MANY 100000
#define ROUNDS 1000

static const uint8_t bytes[0x80] = {
	0x0f,	       0x1f, 0x44, 0x00, 0x00,	       /* 00: nop, or a jump to 10: a static key */
	0x90,					       /* 05: nop */
	0x74,	       0xf8,			       /* 06: je 00 */
	0xc3,					       /* 08: ret */
	[0x10] = 0x90, 0x90,			       /* 10: nop; nop */
	0xeb,	       0xf1,			       /* 12: jmp 05 */
	[0x20] = 0x90,				       /* 20: nop */
	0x74,	       0x01,			       /* 21: je 24 */
	0x90,					       /* 23: nop */
	0xc3,					       /* 24: ret */
	[0x40] = 0x48, 0x83, 0xec, 0x08,	       /* 40: sub $8,%rsp */
	0x48,	       0x89, 0xe5,		       /* 44: mov %rsp,%rbp */
	0x90,					       /* 47: nop */
	0x74,	       0xf6,			       /* 48: je 40 */
	0xe8,	       0xd1, 0xff, 0xff, 0xff,	       /* 4a: call 20 */
	0xeb,	       0xef,			       /* 4f: jmp 40 */
	[0x60] = 0x90,				       /* 60: nop */
	0x48,	       0x8d, 0x05, 0x00, 0x00, 0, 0x0, /* 61: lea 0(%rip),%rax */
	0x74,	       0xf6,			       /* 68: je 60 */
	0xc3,					       /* 6a: ret */
};

static const struct pt_bytes code = { bytes, sizeof(bytes) };

#define POKES(...)                                                 \
	do {                                                       \
		static const struct pt_poke pokes[] = __VA_ARGS__; \
		pt_pokes = pokes;                                  \
		pt_nr_pokes = sizeof(pokes) / sizeof(*pokes);      \
	} while (0)

/*
 * An interrupt at a place, after which it is later: before a cpu runs new code, the kernel interrupts it. libipt
 * needs it, too, because it runs code before it reads a packet with the time.
 */
#define AT(place, time) " fup:" place " tip:20 tsc:" time " tnt:1 tip:" place " "
#define INT(place) "int " place ">20 0; jump 21>24 2; ret 24>" place " 1; "

static void test_key(void)
{
	POKES({ { 100, 0x00, NOP5, "e90b000000" }, { 200, 0x00, "e90b000000", NOP5 } });
	pt_expect("a static key is off", code,
		  "psb:0 tsc:50 tnt:11" AT("0", "99") "tnt:1 fup:0 pgd0",
		  "on ->0 0; jump 6>0 3; jump 6>0 3; " INT("0") "jump 6>0 3; pause 0>- 0; +0");
	pt_expect("it is on", code,
		  "psb:0" AT("0", "100") "tnt:1" AT("0", "199") "tnt:1 fup:0 pgd0",
		  "on ->0 0; " INT("0") "jump 0>10 1; jump 12>5 3; jump 6>0 2; " INT(
			  "0") "jump 0>10 1; jump 12>5 3; jump 6>0 2; pause 0>- 0; +0");
	pt_expect("off, on and off again", code,
		  "psb:0 tsc:99 tnt:1" AT("0", "100") "tnt:1" AT("0", "200") "tnt:10 tip:5 fup:5 "
									     "pgd0",
		  "on ->0 0; jump 6>0 3; " INT("0") "jump 0>10 1; jump 12>5 3; jump 6>0 2; " INT(
			  "0") "jump 6>0 3; ret 8>5 4; pause 5>- 0; +0");
	pt_expect("a trace that begins behind it", code,
		  "PSB tsc:150 mode:64 fup:5 PSBEND tnt:1 fup:10 pgd0",
		  "on ->5 0; jump 6>0 2; jump 0>10 1; pause 10>- 0; +0");
}

static void test_time(void)
{
	POKES({ { 100, 0x00, NOP5, "e90b000000" }, { 200, 0x00, "e90b000000", NOP5 } });
	/* libipt has run it already when it reads the time. */
	pt_expect_alone("what runs next is what is there now", code,
			"psb:8 tip:0 tsc:110 tnt:1 tsc:220 tnt:1 fup:0 pgd0",
			"on ->8 0; ret 8>0 1; jump 0>10 1; jump 12>5 3; jump 6>0 2; jump 6>0 3; "
			"pause 0>- 0; +0");
	pt_expect_alone("a guest has its own time", code,
			"psb:8 tsc:90 pip:1 tip:0 tsc:150 tma:5,6 pip:0 tip:0 tnt:1 fup:0 pgd0",
			"on ->8 0; end 8>- 1; begin ->0 0; jump 6>0 3; pause 0>- 0; +0");
}

/* The map has the code of the end of the recording. */
static void test_late_map(void)
{
	static uint8_t late[sizeof(bytes)];
	const struct pt_bytes later = { late, sizeof(late) };

	memcpy(late, bytes, sizeof(late));
	late[0] = 0xe9;
	late[1] = 0x0b;
	late[2] = late[3] = late[4] = 0;
	POKES({ { 100, 0x00, NOP5, "e90b000000" } });
	pt_expect("before the first change are its old bytes", later,
		  "psb:0 tsc:99 tnt:1" AT("0", "100") "tnt:1 fup:0 pgd0",
		  "on ->0 0; jump 6>0 3; " INT("0") "jump 0>10 1; jump 12>5 3; jump 6>0 2; pause "
						    "0>- 0; +0");
}

static void test_calls(void)
{
	POKES({ { 100, 0x00, NOP5, "e81b000000" }, { 200, 0x00, "e81b000000", NOP5 } });
	pt_expect("a call of a tracer", code,
		  "psb:0 tsc:99 tnt:1" AT("0", "100") "tnt:111 fup:0 pgd0",
		  "on ->0 0; jump 6>0 3; " INT("0") "call 0>20 1; jump 21>24 2; ret 24>5 1; jump "
						    "6>0 2; pause 0>- 0; +0");
	pt_expect("it is gone when the tracer returns", code,
		  "psb:0" AT("0", "100") "tnt:1" AT("24", "200") "tnt:11 tnt:1 fup:0 pgd0",
		  "on ->0 0; " INT("0") "call 0>20 1; jump 21>24 2; " INT(
			  "24") "ret 24>5 1; jump 6>0 2; jump 6>0 3; pause 0>- 0; +0");
	POKES({ { 100, 0x4f, "ebef", "9090" }, { 100, 0x51, "00", "c3" } });
	pt_expect("what follows a call changes before it returns", code,
		  "psb:4a tsc:99 tnt:1" AT("24", "100") "tnt:1 tip:20 fup:20 pgd0",
		  "on ->4a 0; call 4a>20 1; jump 21>24 2; " INT(
			  "24") "ret 24>4f 1; ret 51>20 3; pause 20>- 0; +0");
	pt_expect("or does not", code, "psb:4a tsc:99 tnt:11 fup:40 pgd0",
		  "on ->4a 0; call 4a>20 1; jump 21>24 2; ret 24>4f 1; jump 4f>40 1; pause 40>- 0; "
		  "+0");
}

/* Changes that are not of whole instructions. */
static void test_borders(void)
{
	POKES({ { 100, 0x40, "48", "cc" }, { 200, 0x40, "cc", "48" } });
	pt_expect("a breakpoint on the first byte", code,
		  "psb:40 tsc:99 tnt:1" AT("40", "100") AT("40", "200") "tnt:1 fup:44 pgd0",
		  "on ->40 0; jump 48>40 4; " INT("40") INT("40") "jump 48>40 4; pause 44>- 1; +0");
	pt_expect("which runs", code, "psb:8" AT("8", "100") "tip:40 tip:20 fup:20 pgd0",
		  "on ->8 0; " INT("8") "ret 8>40 1; enter 40>20 1; pause 20>- 0; +0");
	POKES({ { 100, 0x40, "4883ec0848", "e9cbffffff" },
		{ 200, 0x40, "e9cbffffff", "4883ec0848" } });
	pt_expect(
		"a jump in place of one and a half instructions", code,
		"psb:40 tsc:99 tnt:1" AT("40", "100") "tnt:1" AT("0", "200") "tnt:0 tip:40 tnt:1 "
									     "fup:44 pgd0",
		"on ->40 0; jump 48>40 4; " INT("40") "jump 40>10 1; jump 12>5 3; jump 6>0 2; " INT(
			"0") "ret 8>40 4; jump 48>40 4; pause 44>- 1; +0");
	POKES({ { 100, 0x64, "00000000", "01000000" }, { 150, 0x63, "05", "45" } });
	pt_expect("a change inside an instruction", code,
		  "psb:60 tsc:99 tnt:1" AT("60", "100") "tnt:1" AT("60", "150") "fup:65 pgd0",
		  "on ->60 0; jump 68>60 3; " INT("60") "jump 68>60 3; " INT(
			  "60") "pause 65>- 2; +0");
	POKES({ { 100, 0x61, "488d0500000000", "90" },
		{ 100, 0x62, "8d0500000000", "74fc" },
		{ 200, 0x61, "90", "90c3" } });
	pt_expect("old and new bytes of different number", code,
		  "psb:60 tsc:99 tnt:1" AT("60", "100") "tnt:1" AT("60",
								   "200") "tip:60 fup:60 pgd0",
		  "on ->60 0; jump 68>60 3; " INT("60") "jump 62>60 3; " INT(
			  "60") "ret 62>60 3; pause 60>- 0; +0");
}

/* Several changes near each other, and of the same bytes. */
static void test_overlaps(void)
{
	POKES({ { 100, 0x00, NOP5, "e90b000000" },
		{ 120, 0x05, "90", "cc" },
		{ 140, 0x05, "cc", "90" },
		{ 150, 0x12, "ebf1", "9090" },
		{ 150, 0x14, "00", "c3" },
		{ 200, 0x00, "e90b000000", NOP5 } });
	pt_expect(
		"neighbours", code,
		"psb:0" AT("0", "119") "tnt:1" AT("0", "120") AT("5", "140") "tnt:1" AT(
			"0", "160") "tip:0" AT("0", "200") "tnt:1 fup:0 pgd0",
		"on ->0 0; " INT("0") "jump 0>10 1; jump 12>5 3; jump 6>0 2; " INT(
			"0") "jump 0>10 1; jump 12>5 3; " INT("5") "jump 6>0 2; " INT("0") "jump "
											   "0>10 "
											   "1; "
											   "ret "
											   "14>0 "
											   "5;"
											   " " INT("0") "jump 6>0 3; pause 0>- 0; +0");
	POKES({ { 100, 0x00, NOP5, "e90b000000" }, { 100, 0x00, "e90b000000", "9090909090" } });
	pt_expect("two at the same time: the last one", code,
		  "psb:0" AT("0", "100") "tnt:1 fup:0 pgd0",
		  "on ->0 0; " INT("0") "jump 6>0 7; pause 0>- 0; +0");
}

/* Code that is in no map. */
static void test_new_code(void)
{
	POKES({ { 100, 0x2000, "", "90eb01cc90c3" },
		{ 200, 0x2000, "90eb01cc90c3", "" },
		{ 300, 0x2000, "", "c3" } });
	pt_expect("code appears", code, "psb:24" AT("24", "100") "tip:2000 tip:24 fup:24 pgd0",
		  "on ->24 0; " INT("24") "ret 24>2000 1; jump 2001>2004 2; ret 2005>24 2; pause "
					  "24>- 0; +0");
	pt_expect("it is not there before", code, "psb:24 tsc:99 tip:2000 tip:24 fup:24 pgd0",
		  "on ->24 0; ret 24>2000 1; gap 2000 at 44 code not found, or not a valid "
		  "instruction 0; +0");
	pt_expect("it remains until something else is there", code,
		  "psb:24" AT("24", "200") "tip:2000 tip:2000" AT("2000",
								  "300") "tip:24 fup:24 pgd0",
		  "on ->24 0; " INT("24") "ret 24>2000 1; jump 2001>2004 2; ret 2005>2000 2; " INT(
			  "2000") "ret 2000>24 1; pause 24>- 0; +0");
}

/* What a hole has at a time and an address; -1: nothing. */
static int byte_at(const struct ipt_history *h, uint64_t time, uint64_t address)
{
	struct ipt_world world = ipt_history_world(h);
	struct ipt_place place;
	uint8_t byte;

	if (!world.find(world.data, PT_PID, time, address, &place) || !place.code->passing ||
	    place.code->bytes.read(place.code->bytes.data, address - place.base, &byte, 1) != 1)
		return -1;
	return byte;
}

/* Another module at the same address: what was poked before is gone. */
static void test_modules(void)
{
	static const uint8_t nops[0x20] = { 0x90, 0x90, 0x90, 0x90 };
	const struct pt_bytes other = { nops, sizeof(nops) };
	struct ipt_code one, two;
	struct ipt_history h = { 0 };

	POKES({ { 100, 0x00, NOP5, "e90b000000" }, { 400, 0x01, "90", "91" } });
	ipt_code_init(&one, (struct ipt_bytes){ .read = pt_read_code, .data = &code }, code.len, 0);
	ipt_code_init(&two, (struct ipt_bytes){ .read = pt_read_code, .data = &other }, other.len,
		      0);
	ipt_history_map(&h, IPT_KERNEL_PID, 50, PT_BASE, code.len, &one);
	ipt_history_map(&h, IPT_KERNEL_PID, 300, PT_BASE, other.len, &two);
	pt_add_pokes(&h);
	ipt_history_complete(&h);
	check("a module is changed",
	      byte_at(&h, 99, PT_BASE) == 0x0f && byte_at(&h, 100, PT_BASE) == 0xe9);
	check("and replaced by another one",
	      byte_at(&h, 299, PT_BASE) == 0xe9 && byte_at(&h, 300, PT_BASE) == 0x90 &&
		      byte_at(&h, 399, PT_BASE + 1) == 0x90 && byte_at(&h, 500, PT_BASE) == 0x90);
	check("which is changed, too", byte_at(&h, 400, PT_BASE + 1) == 0x91);
	check("other code is not in a hole", byte_at(&h, 400, PT_BASE + 6) < 0);
	ipt_history_release(&h);
	ipt_code_release(&one);
	ipt_code_release(&two);
}

static bool add_poke(struct ipt_history *h, uint64_t time, uint64_t address, uint32_t len,
		     uint8_t value)
{
	uint8_t values[16];

	memset(values, value - 1, len);
	memset(values + len, value, len);
	return ipt_pokes_add(
		&h->pokes,
		&(struct ipt_poke){
			.address = address, .time = time, .old_len = len, .new_len = len },
		values);
}

/* This is hours of work if each poke looks at all others. */
static void test_many(void)
{
	struct ipt_history h = { 0 };
	uint64_t chain = PT_BASE + 0x1000000, apart = PT_BASE + 0x2000000;
	bool good = true;

	for (uint64_t i = 0; i < MANY; i++) {
		good &= add_poke(&h, 1000 + i, PT_BASE + 8, 5, (uint8_t)i);
		good &= add_poke(&h, 1000 + i, chain + i, 2, (uint8_t)i);
		good &= add_poke(&h, 1000 + i, apart + 32 * i, 5, (uint8_t)i);
	}
	ipt_history_complete(&h);
	for (uint64_t i = 0; i < MANY; i++) {
		good &= byte_at(&h, 1000 + i, PT_BASE + 12) == (uint8_t)i;
		good &= byte_at(&h, 1000 + i, chain + i + 1) == (uint8_t)i;
		good &= byte_at(&h, UINT64_MAX, chain + i) == (uint8_t)i;
		good &= byte_at(&h, 999 + i, apart + 32 * i) == (uint8_t)(i - 1);
		good &= byte_at(&h, 1000 + i, apart + 32 * i) == (uint8_t)i;
		good &= byte_at(&h, 1000 + i, apart + 32 * i + 5) < 0;
	}
	check("many changes", good);
	ipt_history_release(&h);
}

static void test_limits(void)
{
	struct ipt_history h = { 0 };

	check("an address of a program is none", add_poke(&h, 1, 0x401000, 1, 1) && !h.pokes.nr);
	check("nothing changes", add_poke(&h, 1, PT_BASE, 0, 1) && !h.pokes.nr);
	check("the end of all addresses", add_poke(&h, 1, UINT64_MAX, 1, 1) && h.pokes.nr == 1 &&
						  add_poke(&h, 1, UINT64_MAX, 2, 1) &&
						  h.pokes.nr == 1);
	add_poke(&h, 1, (uint64_t)1 << 63, 1, 5);
	ipt_history_complete(&h);
	check("the last and the first byte",
	      byte_at(&h, 1, UINT64_MAX) == 1 && byte_at(&h, 1, (uint64_t)1 << 63) == 5);
	ipt_history_release(&h);
	h.pokes.nr = IPT_MAX_POKES;
	check("too many", !add_poke(&h, 1, PT_BASE, 1, 1));
	h.pokes.nr = 0;
	h.pokes.len = IPT_MAX_POKED - 1;
	check("too much", !add_poke(&h, 1, PT_BASE, 1, 1));
}

/* Pieces */

static struct pt_trace trace;
static struct pt_poke toggles[ROUNDS];

/* Every few rounds, the key is switched, and some of the rounds begin with a PSB packet. */
static uint64_t make_trace(void)
{
	uint64_t random = 7, time = 1000, insns = 0;
	bool on = false;
	char text[200];

	pt_nr_pokes = 0;
	pt_pokes = toggles;
	for (int i = 0; i < ROUNDS; i++) {
		bool flip = next_random(&random) % 4 == 0;

		time += 10;
		if (flip) {
			toggles[pt_nr_pokes++] =
				(struct pt_poke){ time, 0, on ? "e90b000000" : NOP5,
						  on ? NOP5 : "e90b000000" };
			on = !on;
		}
		snprintf(text, sizeof(text), AT("0", "%" PRIu64), time);
		if (!i || next_random(&random) % 3 == 0)
			snprintf(text, sizeof(text), "PSB tsc:%" PRIu64 " mode:64 fup:0 PSBEND",
				 time);
		else
			insns += 3;
		pt_add_text(&trace, text);
		pt_add_text(&trace, "tnt:1");
		insns += on ? 6 : 3;
	}
	pt_add_text(&trace, "fup:0 pgd0");
	return insns;
}

static bool read_trace(const void *data, uint32_t queue, uint64_t position, uint8_t *to, size_t len)
{
	(void)data, (void)queue;
	if (position > trace.len || len > trace.len - position)
		return false;
	memcpy(to, trace.data + position, len);
	return true;
}

static uint64_t count_insns(uint64_t piece, size_t threads)
{
	struct ipt_ahead ahead = { .read = read_trace, .all = true, .piece = piece };
	struct ipt_piece *next;
	struct pt_machine m;
	uint64_t insns = 0;

	pt_open(&m, code);
	ahead.world = &m.world;
	ahead.clock = &m.clock;
	ipt_ahead_init(&ahead);
	ipt_ahead_add(&ahead, 0, 0, trace.len);
	ipt_ahead_start(&ahead, threads);
	while ((next = ipt_ahead_next(&ahead, 0))) {
		for (size_t i = 0; i < next->flow.nr; i++)
			insns += next->flow.branches[i].kind == IPT_DID_GAP
					 ? 1000000
					 : next->flow.branches[i].insns;
		if (next->done)
			insns += next->flow.insns;
		ipt_ahead_took(&ahead, 0);
	}
	ipt_ahead_release(&ahead);
	pt_close(&m);
	return insns;
}

static void test_pieces(void)
{
	uint64_t insns = make_trace();
	bool good = true;

	for (uint64_t piece = 1; piece < 100000; piece = piece * 3 / 2 + 1) {
		for (size_t threads = 0; threads <= 2; threads += 2)
			good &= count_insns(piece, threads) == insns;
	}
	check("the same instructions in pieces of any size", good);
}

int main(void)
{
	if (!pt_can_test())
		return 0;
	test_key();
	test_time();
	test_late_map();
	test_calls();
	test_borders();
	test_overlaps();
	test_new_code();
	test_modules();
	test_many();
	test_limits();
	test_pieces();
	return test_result();
}

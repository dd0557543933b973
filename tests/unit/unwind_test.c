// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Stacks made by hand: frame pointers as every machine and compiler lays them out, Linux's ORC tables
 * in all three forms, traps, and stacks and tables that lie. What is real is in e2e/.
 */
#include <string.h>

#include "test.h"
#include "unwind_scene.h"

/* The chain as offsets in the code; markers as they are. The last of `want` is 0. */
static bool chain_is(struct scene *s, const struct event_sample *sample, const uint64_t *want)
{
	for (uint32_t i = 0; i < sample->nr; i++) {
		uint64_t ip = sample->ips[i], offset = ip - s->text;

		if (!want[i] || (ip != want[i] && offset != want[i]))
			return false;
	}
	return !want[sample->nr];
}

#define CHAIN(...) ((const uint64_t[]){ __VA_ARGS__, 0 })

/* ---- frame pointers ---- */

struct layout {
	const char *arch, *what;
	unsigned sp, fp, lr; /* numbers; lr 0: none */
	int ra, next;	     /* from the frame pointer, in words */
};

static const struct layout layouts[] = {
	{ "x86_64", "", 7, 6, 0, 1, 0 },
	{ "i386", "", 4, 5, 0, 1, 0 },
	{ "aarch64", "", 31, 29, 30, 1, 0 },
	{ "arm", " as LLVM does", 13, 11, 14, 1, 0 },
	{ "arm", " as GCC does", 13, 11, 14, 0, -1 },
	{ "arm", " of the APCS", 13, 11, 14, -1, -3 },
	{ "riscv64", "", 2, 8, 1, -1, -2 },
	{ "riscv32", "", 2, 8, 1, -1, -2 },
};

/* Frames at words 20, 40 and 60; leaf called by middle called by outer called by root. */
static void put_frames(struct scene *s, const struct layout *l)
{
	static const unsigned at[] = { 20, 40, 60 };
	const uint64_t callers[] = { MIDDLE + 0x10, OUTER + 0x10, ROOT + 0x10 };

	for (unsigned i = 0; i < 3; i++) {
		uint64_t next = i < 2 ? place(s, at[i + 1]) : 0;

		if (l->ra == -1 && l->next == -3) { /* the APCS has pc and sp besides */
			poke(s, at[i], s->text + LEAF + 8);
			poke(s, at[i] - 2, place(s, at[i] + 1));
		}
		poke(s, (unsigned)((int)at[i] + l->ra), s->text + callers[i]);
		poke(s, (unsigned)((int)at[i] + l->next), next);
	}
	s->regs[l->sp] = place(s, 0);
	s->regs[l->fp] = place(s, at[0]);
	if (l->lr)
		s->regs[l->lr] = s->text + LEAF + 0x40; /* the leaf has called before */
}

static void test_frame_pointers(void)
{
	for (size_t i = 0; i < sizeof(layouts) / sizeof(*layouts); i++) {
		const struct layout *l = &layouts[i];
		struct scene s;
		char text[100];

		scene_open(&s, l->arch, NULL, 0);
		put_frames(&s, l);
		snprintf(text, sizeof(text), "%s: frame pointers%s", l->arch, l->what);
		s.unwind.method = UNWIND_FP;
		check(text,
		      chain_is(&s, look(&s, s.text + LEAF + 0x20),
			       CHAIN(LEAF + 0x20, MIDDLE + 0x10, OUTER + 0x10, ROOT + 0x10)) &&
			      s.unwind.kernel.ended == 1);
		/* At its entry the leaf has no frame yet: the first one is middle's. */
		poke(&s, 0, s.text + MIDDLE + 0x30);
		if (l->lr)
			s.regs[l->lr] = s.text + MIDDLE + 0x30;
		s.regs[l->fp] = place(&s, 40);
		snprintf(text, sizeof(text), "%s: a function's entry%s", l->arch, l->what);
		check(text, chain_is(&s, look(&s, s.text + LEAF),
				     CHAIN(LEAF, MIDDLE + 0x30, OUTER + 0x10, ROOT + 0x10)));
		/* A circle, and one that leads back. */
		poke(&s, (unsigned)(40 + l->next), place(&s, 40));
		snprintf(text, sizeof(text), "%s: a circle ends%s", l->arch, l->what);
		check(text, look(&s, s.text + LEAF)->nr < 20);
		poke(&s, (unsigned)(40 + l->next), place(&s, 20));
		snprintf(text, sizeof(text), "%s: a way back ends%s", l->arch, l->what);
		check(text, look(&s, s.text + LEAF)->nr < 20);
		/* The copy ends in the middle of a frame. */
		s.cpu.stack_len = 40 * s.word + 1;
		snprintf(text, sizeof(text), "%s: a short copy%s", l->arch, l->what);
		check(text, look(&s, s.text + LEAF)->nr <= 3);
		s.cpu.stack_len = 0;
		snprintf(text, sizeof(text), "%s: no copy%s", l->arch, l->what);
		check(text, look(&s, s.text + LEAF)->nr <= 2);
		scene_close(&s);
	}
}

/* A leaf without a frame on a machine with a link register. */
static void test_leaf(void)
{
	struct scene s;

	scene_open(&s, "aarch64", NULL, 0);
	s.unwind.method = UNWIND_FP;
	put_frames(&s, &layouts[2]);
	s.regs[29] = place(&s, 40);
	s.regs[30] = s.text + MIDDLE + 0x30;
	check("aarch64: a leaf without a frame",
	      chain_is(&s, look(&s, s.text + LEAF + 0x20),
		       CHAIN(LEAF + 0x20, MIDDLE + 0x30, OUTER + 0x10, ROOT + 0x10)));
	s.regs[30] |= UINT64_C(0x2a) << 48; /* it stays: all ones */
	s.regs[30] &= ~(UINT64_C(0x15) << 48);
	check("aarch64: authenticated pointers",
	      chain_is(&s, look(&s, s.text + LEAF + 0x20),
		       CHAIN(LEAF + 0x20, MIDDLE + 0x30, OUTER + 0x10, ROOT + 0x10)));
	scene_close(&s);
}

/* Of a function that calls itself. It has no frame while the link register points into it. */
static void test_recursion(void)
{
	struct scene s;

	scene_open(&s, "aarch64", NULL, 0);
	s.unwind.method = UNWIND_FP;
	for (unsigned i = 0; i < 3; i++) {
		poke(&s, 2 * i, i < 2 ? place(&s, 2 * i + 2) : 0);
		poke(&s, 2 * i + 1, s.text + (i < 2 ? LEAF + 12 : ROOT + 0x10));
	}
	s.regs[31] = s.regs[29] = place(&s, 0);
	s.regs[30] = s.text + LEAF + 12;
	check("aarch64: a leaf that was called by itself",
	      chain_is(&s, look(&s, s.text + LEAF + 16),
		       CHAIN(LEAF + 16, LEAF + 12, LEAF + 12, LEAF + 12, ROOT + 0x10)));
	check("aarch64: a frame that has called itself",
	      chain_is(&s, look(&s, s.text + LEAF + 12),
		       CHAIN(LEAF + 12, LEAF + 12, LEAF + 12, ROOT + 0x10)));
	scene_close(&s);
}

/* ---- addresses that are not callers ---- */

static void test_data(const char *arch, const struct layout *l)
{
	const uint64_t data[] = { CODE_LEN + 0x10, 0, 0 };
	struct scene s;
	char text[100];

	scene_open(&s, arch, NULL, 0);
	put_frames(&s, l);
	s.unwind.method = UNWIND_FP;
	for (unsigned i = 0; i < 2; i++) {
		poke(&s, (unsigned)(60 + l->ra), i ? place(&s, 77) : s.text + data[i]);
		snprintf(text, sizeof(text), "%s: %s is no caller", arch,
			 i ? "the stack" : "data in a segment with code");
		check(text, chain_is(&s, look(&s, s.text + LEAF + 0x20),
				     CHAIN(LEAF + 0x20, MIDDLE + 0x10, OUTER + 0x10)) &&
				    !s.unwind.kernel.ended);
	}
	/* But a call that does not return may be the last instruction of the code. */
	poke(&s, (unsigned)(60 + l->ra), s.text + CODE_LEN);
	snprintf(text, sizeof(text), "%s: a call that ends the code", arch);
	check(text, chain_is(&s, look(&s, s.text + LEAF + 0x20),
			     CHAIN(LEAF + 0x20, MIDDLE + 0x10, OUTER + 0x10, CODE_LEN)) &&
			    s.unwind.kernel.ended == 1);
	scene_close(&s);
}

/*
 * A new thread returns to the first byte of a function. But a call may be the last instruction of the
 * function before, if it does not return.
 */
static void test_first_function(const char *arch, const struct layout *l, uint64_t first,
				uint64_t called)
{
	struct scene s;
	char text[100];

	scene_open(&s, arch, NULL, 0);
	put_frames(&s, l);
	s.unwind.method = UNWIND_FP;
	poke(&s, (unsigned)(60 + l->ra), s.text + first);
	poke(&s, (unsigned)(60 + l->next), 0);
	snprintf(text, sizeof(text), "%s: a thread's first function", arch);
	check(text, chain_is(&s, look(&s, s.text + LEAF + 0x20),
			     CHAIN(LEAF + 0x20, MIDDLE + 0x10, OUTER + 0x10, IP_KERNEL, first)) &&
			    s.unwind.kernel.ended == 1);
	poke(&s, (unsigned)(60 + l->ra), s.text + called);
	snprintf(text, sizeof(text), "%s: a call that ends a function", arch);
	check(text, chain_is(&s, look(&s, s.text + LEAF + 0x20),
			     CHAIN(LEAF + 0x20, MIDDLE + 0x10, OUTER + 0x10, called)));
	scene_close(&s);
}

/* A call of the function that follows: at its entry, the return address is the pc. */
static void test_next_function(void)
{
	struct scene s;

	scene_open(&s, "aarch64", NULL, 0);
	put_frames(&s, &layouts[2]);
	s.unwind.method = UNWIND_FP;
	s.regs[29] = place(&s, 40);
	s.regs[30] = s.text + ROOT;
	check("aarch64: called by the end of the function before",
	      chain_is(&s, look(&s, s.text + ROOT), CHAIN(ROOT, ROOT, OUTER + 0x10, ROOT + 0x10)) &&
		      s.unwind.kernel.ended == 1);
	scene_close(&s);
}

/* ---- exceptions of Cortex-M; unwind_arm.py has their frames ---- */

/* What the hardware stores for an exception, from a word of the stack or of the outer one. */
static void put_exception(struct scene *s, uint8_t *memory, unsigned at, uint64_t pc, uint64_t lr,
			  bool aligned)
{
	const uint32_t frame[] = { 0,
				   1,
				   2,
				   3,
				   12,
				   (uint32_t)(s->text + lr),
				   (uint32_t)(s->text + pc),
				   0x01000000 | (uint32_t)aligned << 9 };

	for (unsigned i = 0; i < sizeof(frame) / 4; i++)
		put_le32(memory + 4 * (at + i), frame[i]);
}

/* A record of LLVM's: the next frame pointer, and a return address. */
static void put_record(uint8_t *memory, unsigned at, uint64_t next, uint64_t pc)
{
	put_le32(memory + 4 * at, (uint32_t)next);
	put_le32(memory + 4 * at + 4, (uint32_t)pc);
}

/* A handler interrupted a handler, which interrupted a thread with a stack of its own. */
static void test_nested_exceptions(void)
{
	struct scene s;

	scene_open(&s, "arm", NULL, 0);
	s.unwind.method = UNWIND_FP;
	s.regs[13] = place(&s, 0);
	s.regs[11] = place(&s, 4);
	put_record(s.memory, 4, place(&s, 20), 0xfffffff1);
	put_exception(&s, s.memory, 6, MIDDLE, STUB + 0x10, false);
	put_record(s.memory, 20, 0x123, 0xfffffffd);
	s.cpu.outer = s.outer;
	s.cpu.outer_addr = 0xc8009000;
	s.cpu.outer_len = sizeof(s.outer);
	put_exception(&s, s.outer, 0, OUTER, ROOT + 0x10, true);
	check("Cortex-M: a nested handler, and a thread",
	      chain_is(&s, look(&s, s.text + LEAF + 0x20),
		       CHAIN(LEAF + 0x20, IP_KERNEL, MIDDLE, STUB + 0x10, IP_KERNEL, OUTER,
			     ROOT + 0x10)));
	s.cpu.outer_len = 0;
	check("Cortex-M: the thread's stack is not there",
	      chain_is(&s, look(&s, s.text + LEAF + 0x20),
		       CHAIN(LEAF + 0x20, IP_KERNEL, MIDDLE, STUB + 0x10)) &&
		      !s.unwind.kernel.ended);
	s.cpu.stack_len = 4 * 10;
	check("Cortex-M: the copy ends in what the hardware stored",
	      chain_is(&s, look(&s, s.text + LEAF + 0x20), CHAIN(LEAF + 0x20)) &&
		      !s.unwind.kernel.ended);
	s.regs[14] = 0xffffffff;
	check("Cortex-M: reset",
	      chain_is(&s, look(&s, s.text + LEAF), CHAIN(LEAF)) && s.unwind.kernel.ended == 1);
	scene_close(&s);
}

/* ---- traps ---- */

/* struct pt_regs of arm64, whose last part is a frame record. */
static void test_arm64_trap(unsigned record, bool meta)
{
	unsigned regs = 30, at = regs + record / 8;
	struct scene s;

	scene_open(&s, "aarch64", NULL, 0);
	put_frames(&s, &layouts[2]);
	s.regs[29] = place(&s, at);
	poke(&s, at, meta ? 0 : place(&s, 100));
	poke(&s, at + 1, meta ? 0 : s.text + OUTER + 0x20);
	poke(&s, at + 2, meta ? 2 : 0);
	poke(&s, regs + 29, place(&s, 100));
	poke(&s, regs + 30, s.text + OUTER + 0x44);
	poke(&s, regs + 31, place(&s, 90));
	poke(&s, regs + 32, s.text + OUTER + 0x20);
	poke(&s, regs + 33, 0x60000005);
	poke(&s, 100, 0);
	poke(&s, 101, s.text + ROOT + 0x10);
	check(meta ? "aarch64: a trap, Linux 6.13" : "aarch64: a trap, Linux 6.1",
	      chain_is(&s, look(&s, s.text + LEAF + 0x20),
		       CHAIN(LEAF + 0x20, IP_KERNEL, OUTER + 0x20, ROOT + 0x10)));
	poke(&s, at, 0);
	poke(&s, at + 1, 0);
	poke(&s, regs + 32, 0xaaaa1234);
	poke(&s, regs + 33, 0x60000000);
	check(meta ? "aarch64: from user mode, Linux 6.13" : "aarch64: from user mode, Linux 6.1",
	      chain_is(&s, look(&s, s.text + LEAF + 0x20),
		       CHAIN(LEAF + 0x20, IP_USER, 0xaaaa1234)) &&
		      s.unwind.kernel.ended == 2);
	scene_close(&s);
}

#define RISCV_WORDS 36 /* of struct pt_regs */

/* What the assembly of RISC-V saves: the pc, the registers but x0, status. */
static void put_riscv_regs(struct scene *s, unsigned at, uint64_t pc, uint64_t sp, uint64_t status)
{
	poke(s, at, pc);
	poke(s, at + 1, s->text + OUTER + 0x44);
	poke(s, at + 2, sp);
	poke(s, at + 8, place(s, 80));
	poke(s, at + 32, s->word == 8 ? status | UINT64_C(2) << 32 : status);
	poke(s, 18, sp); /* the leaf, its handler, found the interrupted sp in the frame pointer */
}

/* Before an indirect call, the link register may have the address of the function to call. */
static void test_riscv_call(void)
{
	struct scene s;

	scene_open(&s, "riscv64", NULL, 0);
	s.unwind.method = UNWIND_FP;
	put_frames(&s, &layouts[6]);
	s.regs[1] = s.text + OUTER + 0x44;
	check("riscv64: a target in the link register is no caller",
	      chain_is(&s, look(&s, s.text + LEAF + 0x40),
		       CHAIN(LEAF + 0x40, MIDDLE + 0x10, OUTER + 0x10, ROOT + 0x10)));
	scene_close(&s);
}

/* A handler's frame at word 20, right below the registers; the interrupted frame at word 80. */
static void test_riscv_trap(const char *arch)
{
	const uint64_t plain[] = { LEAF + 0x20, STUB + 0x10, ROOT + 0x20, 0 };
	struct scene s;
	char text[100];

	scene_open(&s, arch, NULL, 0);
	if (s.word == 8)
		s.stack = 0xff20000000001000; /* with tables of five levels */
	put_frames(&s, &layouts[s.word == 8 ? 6 : 7]);
	poke(&s, 19, s.text + STUB + 0x10);
	poke(&s, 79, s.text + ROOT + 0x10);
	poke(&s, 78, s.text + MIDDLE); /* a thread begins with its function there */
	put_riscv_regs(&s, 20, s.text + OUTER + 0x20, place(&s, 20 + RISCV_WORDS), 0x120);
	snprintf(text, sizeof(text), "%s: a trap, up to the start of the thread", arch);
	check(text,
	      chain_is(&s, look(&s, s.text + LEAF + 0x20),
		       CHAIN(LEAF + 0x20, STUB + 0x10, IP_KERNEL, OUTER + 0x20, ROOT + 0x10)) &&
		      s.unwind.kernel.ended == 1);
	put_riscv_regs(&s, 20, 0x401000, 0x7fff1000, 0x20);
	snprintf(text, sizeof(text), "%s: from user mode", arch);
	check(text, chain_is(&s, look(&s, s.text + LEAF + 0x20),
			     CHAIN(LEAF + 0x20, STUB + 0x10, IP_USER, 0x401000)) &&
			    s.unwind.kernel.ended == 2);
	/* Left over from an earlier trap: the frame pointer is another one. */
	put_riscv_regs(&s, 20, s.text + OUTER + 0x20, place(&s, 20 + RISCV_WORDS), 0x120);
	poke(&s, 18, place(&s, 60));
	poke(&s, 59, s.text + ROOT + 0x20);
	snprintf(text, sizeof(text), "%s: old registers are no trap", arch);
	check(text, chain_is(&s, look(&s, s.text + LEAF + 0x20), plain));
	scene_close(&s);
}

/* What x86 pushes, below a stub that saved four registers. */
static void test_pushed(const char *arch, unsigned sp, unsigned fp)
{
	struct scene s;
	char text[100];

	scene_open(&s, arch, NULL, 0);
	s.regs[sp] = place(&s, 0);
	s.regs[fp] = place(&s, 20);
	poke(&s, 20, place(&s, 60)); /* middle's frame: it was called by the stub */
	poke(&s, 21, s.text + STUB + 0x10);
	for (unsigned i = 0; i < 4; i++)
		poke(&s, 22 + i, i * 1000);
	poke(&s, 26, s.text + OUTER + 0x20);
	poke(&s, 27, 0x10);
	poke(&s, 28, 0x246);
	poke(&s, 29, place(&s, 31));
	poke(&s, 30, 0x18);
	poke(&s, 60, 0);
	poke(&s, 61, s.text + ROOT + 0x10);
	snprintf(text, sizeof(text), "%s: through a trap", arch);
	check(text, chain_is(&s, look(&s, s.text + MIDDLE),
			     CHAIN(MIDDLE, STUB + 0x10, IP_KERNEL, OUTER + 0x20, ROOT + 0x10)));
	poke(&s, 26, 0x401000);
	poke(&s, 27, 0x33);
	poke(&s, 29, 0x7fff1000);
	poke(&s, 30, 0x2b);
	snprintf(text, sizeof(text), "%s: to user mode", arch);
	check(text, chain_is(&s, look(&s, s.text + MIDDLE),
			     CHAIN(MIDDLE, STUB + 0x10, IP_USER, 0x401000)));
	scene_close(&s);
}

/* ---- ORC ---- */

enum version { OLD, SIX_THREE, NEW };
enum { UNDEFINED, PREV_SP, DX, DI, BP, SP, R10, R13, BP_INDIRECT, SP_INDIRECT };
enum { CALL, REGS, PARTIAL, END, NOTHING };

static uint16_t flags(enum version version, unsigned sp, unsigned bp, unsigned type)
{
	static const uint16_t new_types[] = { 2, 3, 4, 1, 0 };
	unsigned low = sp | bp << 4;

	if (version == NEW)
		return (uint16_t)(low | new_types[type] << 8);
	if (type == END)
		return (uint16_t)(version == OLD ? 1 << 10 : 1 << 11);
	if (type == NOTHING)
		return 0;
	return (uint16_t)(low | type << 8);
}

static size_t make_lines(enum version v, struct orc_line *lines)
{
	const struct orc_line all[] = {
		{ ROOT, 0, 0, flags(v, UNDEFINED, 0, END) },
		{ OUTER, 16, 0, flags(v, SP, UNDEFINED, CALL) },
		{ MIDDLE, 16, -16, flags(v, BP, PREV_SP, CALL) },
		{ LEAF, 8, 0, flags(v, SP, UNDEFINED, CALL) },
		{ LEAF + 0x20, 40, 0, flags(v, SP, UNDEFINED, CALL) },
		{ LEAF + 0x80, 0, 0, flags(v, SP_INDIRECT, UNDEFINED, CALL) },
		{ LEAF + 0x90, 16, 0, flags(v, R13, UNDEFINED, CALL) },
		{ STUB, 0, 0, flags(v, SP, UNDEFINED, REGS) },
		{ STUB + 0x20, 8, 0, flags(v, SP, UNDEFINED, REGS) },
		{ STUB + 0x40, 8, 0, flags(v, SP, UNDEFINED, PARTIAL) },
		{ STUB + 0x80, 0, 0, flags(v, UNDEFINED, 0, NOTHING) },
	};

	memcpy(lines, all, sizeof(all));
	return sizeof(all) / sizeof(*all);
}

static void put_trap(struct scene *s, unsigned at, uint64_t ip, uint64_t cs, unsigned sp)
{
	poke(s, at, ip);
	poke(s, at + 1, cs);
	poke(s, at + 2, 0x246);
	poke(s, at + 3, place(s, sp));
	poke(s, at + 4, cs + 8);
}

static void test_orc_version(enum version v, bool sorted)
{
	static const char *const of[] = { "4.14", "6.3", "6.4" };
	struct orc_line lines[MAX_LINES];
	size_t nr = make_lines(v, lines);
	struct scene s;
	char text[100];

	for (size_t i = 0; !sorted && i < nr / 2; i++) {
		struct orc_line line = lines[i];

		lines[i] = lines[nr - 1 - i];
		lines[nr - 1 - i] = line;
	}
	scene_open(&s, "x86_64", lines, nr);
	s.unwind.method = UNWIND_ORC;
#define NAME(what)                                                                                \
	(snprintf(text, sizeof(text), "orc of %s%s: " what, of[v], sorted ? "" : ", not sorted"), \
	 text)
	s.regs[7] = place(&s, 0);
	s.regs[6] = place(&s, 20);
	poke(&s, 4, s.text + MIDDLE + 0x10); /* leaf's */
	poke(&s, 20, 77);
	poke(&s, 21, s.text + OUTER + 0x10);
	poke(&s, 23, s.text + ROOT + 0x10);
	check(NAME("calls"),
	      chain_is(&s, look(&s, s.text + LEAF + 0x24),
		       CHAIN(LEAF + 0x24, MIDDLE + 0x10, OUTER + 0x10, ROOT + 0x10)) &&
		      s.unwind.kernel.ended == 1);
	/* The whole of pt_regs, then the rest of the same stack. */
	poke(&s, 4 - 4, s.text + STUB + 0x10);
	for (unsigned i = 0; i < 15; i++)
		poke(&s, 1 + i, i == 4 ? place(&s, 40) : 1000 + i);
	put_trap(&s, 17, s.text + MIDDLE + 0x20, 0x10, 30);
	poke(&s, 41, s.text + OUTER + 0x10);
	poke(&s, 43, s.text + ROOT + 0x10);
	check(NAME("registers of a trap"),
	      chain_is(&s, look(&s, s.text + LEAF),
		       CHAIN(LEAF, STUB + 0x10, IP_KERNEL, MIDDLE + 0x20, OUTER + 0x10,
			     ROOT + 0x10)));
	put_trap(&s, 17, 0x401000, 0x33, 30);
	check(NAME("from user mode"),
	      chain_is(&s, look(&s, s.text + LEAF), CHAIN(LEAF, STUB + 0x10, IP_USER, 0x401000)));
	put_trap(&s, 1, 0x402000, 0x33, 30);
	check(NAME("what the processor pushed"),
	      chain_is(&s, look(&s, s.text + STUB + 0x44), CHAIN(STUB + 0x44, IP_USER, 0x402000)));
	/* The rule is for what the processor pushed, but all registers have been saved since. */
	poke(&s, 2, 0);
	put_trap(&s, 16, s.text + MIDDLE + 0x20, 0x10, 21);
	poke(&s, 4, place(&s, 40));
	check(NAME("all registers in the place of what the processor pushed"),
	      chain_is(&s, look(&s, s.text + STUB + 0x44),
		       CHAIN(STUB + 0x44, IP_KERNEL, MIDDLE + 0x20, OUTER + 0x10, ROOT + 0x10)));
	poke(&s, 18, 0); /* not even that */
	check(NAME("neither of them"), look(&s, s.text + STUB + 0x44)->nr <= 3);
	/* The function that saves the registers: its return address is on top of them. */
	put_trap(&s, 17, s.text + MIDDLE + 0x20, 0x10, 22);
	poke(&s, 5, place(&s, 40));
	poke(&s, 0, s.text + ROOT + 0x10);
	check(NAME("a return address on top of the registers"),
	      chain_is(&s, look(&s, s.text + STUB + 0x24), CHAIN(STUB + 0x24, ROOT + 0x10)));
	poke(&s, 0, 12345);
	check(NAME("no return address on top of the registers"),
	      chain_is(&s, look(&s, s.text + STUB + 0x24),
		       CHAIN(STUB + 0x24, IP_KERNEL, MIDDLE + 0x20, OUTER + 0x10, ROOT + 0x10)));
	check(NAME("no rule"), look(&s, s.text + STUB + 0x84)->nr >= 1);
	/* From the interrupt's stack to the one that it was entered from. */
	s.cpu.outer = s.outer;
	s.cpu.outer_addr = s.stack + 0x10000;
	s.cpu.outer_len = sizeof(s.outer);
	poke(&s, 0, s.cpu.outer_addr + 64);
	memcpy(s.outer + 56, &(uint64_t){ htole64(s.text + ROOT + 0x10) }, 8);
	check(NAME("another stack"),
	      chain_is(&s, look(&s, s.text + LEAF + 0x84), CHAIN(LEAF + 0x84, ROOT + 0x10)));
	s.cpu.outer_len = 0;
	check(NAME("another stack that is not there"),
	      chain_is(&s, look(&s, s.text + LEAF + 0x84), CHAIN(LEAF + 0x84)));
	s.regs[13] = place(&s, 50);
	poke(&s, 51, s.text + ROOT + 0x10);
	check(NAME("by r13"),
	      chain_is(&s, look(&s, s.text + LEAF + 0x94), CHAIN(LEAF + 0x94, ROOT + 0x10)));
#undef NAME
	scene_close(&s);
}

/* ---- lies ---- */

static uint64_t any_value(struct scene *s, uint64_t *random)
{
	uint32_t what = next_random(random) % 8;

	if (what < 3)
		return place(s, next_random(random) % WORDS);
	if (what < 6)
		return s->text + next_random(random) % 0x600;
	return what == 6 ? next_random(random) % 64 : (uint64_t)next_random(random) << 33;
}

static void test_random(const char *arch, enum unwind_method method)
{
	static const char *const methods[] = { "auto", "fp", "cfi", "orc" };
	struct orc_line lines[MAX_LINES];
	uint64_t random = 7, longest = 0;
	struct scene s;
	char text[100];

	for (unsigned i = 0; i < MAX_LINES; i++)
		lines[i] = (struct orc_line){ next_random(&random) % 0x600,
					      (int16_t)(next_random(&random) % 64 * 8 - 64),
					      (int16_t)(next_random(&random) % 64 * 8 - 64),
					      (uint16_t)next_random(&random) };
	scene_open(&s, arch, lines, MAX_LINES);
	s.unwind.method = method;
	for (unsigned round = 0; round < 3000; round++) {
		uint32_t nr;

		for (unsigned i = 0; i < WORDS; i++)
			poke(&s, i, any_value(&s, &random));
		for (unsigned i = 0; i < 33; i++)
			s.regs[i] = any_value(&s, &random);
		s.cpu.stack_len = next_random(&random) % sizeof(s.memory);
		s.cpu.mask = round % 3 ? UINT64_MAX >> 31 : (uint64_t)next_random(&random) << 1;
		nr = look(&s, any_value(&s, &random))->nr;
		longest = nr > longest ? nr : longest;
	}
	snprintf(text, sizeof(text), "%s: 3000 stacks of lies by %s", arch, methods[method]);
	check(text, longest > 1 && longest < 1100);
	scene_close(&s);
}

static void test_nothing_known(void)
{
	struct scene s;

	scene_open(&s, "x86_64", NULL, 0);
	s.cpu.mask = 0;
	check("no registers", look(&s, s.text + LEAF)->nr == 1);
	s.cpu.mask = UINT64_MAX >> 31;
	s.ev.sample.nr = 0;
	check("a pc of 0", look(&s, 0)->nr == 1);
	scene_close(&s);
	scene_open(&s, "alpha", NULL, 0);
	check("a machine that is not known", look(&s, s.text + LEAF)->nr == 1);
	scene_close(&s);
}

/* The stack of an allocation is found in the same way. */
static void test_alloc(void)
{
	struct scene s;

	scene_open(&s, "aarch64", NULL, 0);
	put_frames(&s, &layouts[2]);
	s.pc = s.text + LEAF + 0x20;
	s.ev = (struct event){ .kind = EVENT_ALLOC };
	s.ev.alloc = (struct event_alloc){
		.ips = &s.pc, .nr = 1, .context = IP_KERNEL, .state = &s.cpu
	};
	unwind_event(&s.unwind, &s.ev);
	check("an allocation", s.ev.alloc.nr == 4 && s.ev.alloc.ips[3] == s.text + ROOT + 0x10);
	scene_close(&s);
}

int main(void)
{
	static const char *const archs[] = { "x86_64", "i386",	  "aarch64",
					     "arm",    "riscv64", "riscv32" };

	test_frame_pointers();
	test_leaf();
	test_recursion();
	test_data("x86_64", &layouts[0]);
	test_data("aarch64", &layouts[2]);
	test_data("arm", &layouts[3]);
	test_first_function("x86_64", &layouts[0], ROOT, OUTER);
	test_first_function("i386", &layouts[1], ROOT, OUTER);
	test_first_function("aarch64", &layouts[2], OUTER, ROOT);
	test_next_function();
	test_nested_exceptions();
	test_alloc();
	test_arm64_trap(304, false);
	test_arm64_trap(296, true);
	test_riscv_call();
	test_riscv_trap("riscv64");
	test_riscv_trap("riscv32");
	test_pushed("x86_64", 7, 6);
	test_pushed("i386", 4, 5);
	for (enum version v = OLD; v <= NEW; v++) {
		test_orc_version(v, true);
		test_orc_version(v, false);
	}
	for (size_t i = 0; i < sizeof(archs) / sizeof(*archs); i++) {
		for (enum unwind_method m = UNWIND_AUTO; m <= UNWIND_ORC; m++)
			test_random(archs[i], m);
	}
	test_nothing_known();
	return test_result();
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Traps: finds the code that an interrupt, an exception or a system call interrupted. The assembly
 * in between has no rules, so we recognize its frame by its contents: the words that an x86
 * processor pushes, and the registers that Linux saves where its frame pointers lead to them.
 */
#include "unwind/walk.h"

/* ---- what x86 pushes: ip, cs, flags, and mostly sp, ss ---- */

#define FLAGS_ALWAYS 0x2
#define FLAGS_NEVER UINT64_C(0xffffffffffc08028)
#define SELECTOR_MAX 0x400

/* A selector of the GDT: bit 2 would mean the LDT. */
static bool is_selector(uint64_t value, unsigned level)
{
	return value < SELECTOR_MAX && (value & 7) == level;
}

struct pushed {
	uint64_t ip, cs, flags, sp, ss;
	unsigned words;
};

static bool read_pushed(const struct walk *w, uint64_t at, struct pushed *p)
{
	unsigned word = w->machine->word;

	if (!walk_word(w, at, &p->ip) || !walk_word(w, at + word, &p->cs) ||
	    !walk_word(w, at + 2 * word, &p->flags))
		return false;
	if (p->cs < 8 || !(is_selector(p->cs, 0) || is_selector(p->cs, 3)) ||
	    !(p->flags & FLAGS_ALWAYS) || (p->flags & FLAGS_NEVER))
		return false;
	p->words = 3;
	if (word == 4 && !(p->cs & 3)) { /* no stack switch: sp and ss are not pushed */
		p->sp = at + 3 * word;
		return true;
	}
	p->words = 5;
	return walk_word(w, at + 3 * word, &p->sp) && walk_word(w, at + 4 * word, &p->ss) &&
	       is_selector(p->ss, p->cs & 3);
}

/* Other data may look the same: the stack pointer and the code must match as well. */
static bool is_pushed(const struct walk *w, uint64_t at, const struct pushed *p)
{
	uint64_t end = at + p->words * w->machine->word;

	if (p->cs & 3)
		return p->ip && !walk_is_code(w, p->ip);
	/* The processor may align the stack before it pushes. */
	return walk_is_code(w, p->ip) && p->sp >= end && p->sp - end < 16;
}

bool trap_is_pushed(const struct walk *w, uint64_t at)
{
	struct pushed p;

	return read_pushed(w, at, &p) && is_pushed(w, at, &p);
}

enum step trap_pushed(const struct walk *w, struct state *s, unsigned words)
{
	unsigned word = w->machine->word;
	struct pushed p;
	uint64_t sp;

	if ((w->machine->kind != X86_64 && w->machine->kind != I386) ||
	    !reg_value(s, w->machine->sp, &sp))
		return STEP_NONE;
	for (unsigned i = 0; i < words; i++) {
		if (!read_pushed(w, sp + i * word, &p) || !is_pushed(w, sp + i * word, &p))
			continue;
		s->pc = p.ip;
		s->cfa = p.sp;
		s->exact = true;
		s->known &= w->machine->kept; /* the assembly in between preserves these */
		reg_set(s, w->machine->sp, p.sp);
		return p.cs & 3 ? STEP_USER : STEP_TRAP;
	}
	return STEP_NONE;
}

#define RCX 2

/* The syscall instruction does not switch the stack, and puts the return address into rcx. */
enum step trap_syscall(const struct walk *w, struct state *s)
{
	uint64_t sp, rcx;

	if (w->machine->kind != X86_64 || !s->exact || !reg_value(s, w->machine->sp, &sp) ||
	    !walk_is_user(w, sp) || !reg_value(s, RCX, &rcx) || !walk_is_user(w, rcx))
		return STEP_NONE;
	s->pc = rcx;
	return STEP_USER;
}

/* ---- struct pt_regs of Linux on x86, found by an encoded frame pointer ---- */

struct regs_layout {
	const uint8_t *order; /* DWARF's register numbers in stack order */
	uint8_t nr;
	uint16_t ip, cs, sp; /* offsets */
};

static const uint8_t order_64[] = { 15, 14, 13, 12, 6, 3, 11, 10, 9, 8, 0, 2, 1, 4, 5 };
static const uint8_t order_32[] = { 3, 1, 2, 6, 7, 5, 0 };
static const struct regs_layout layout_64 = { order_64, sizeof(order_64), 128, 136, 152 };
static const struct regs_layout layout_32 = { order_32, sizeof(order_32), 48, 52, 60 };

static enum step restore(const struct walk *w, struct state *s, uint64_t regs,
			 const struct regs_layout *layout)
{
	struct state before = { .cfa = regs, .exact = true };
	uint64_t cs, sp, value;

	if (!walk_word(w, regs + layout->ip, &before.pc) || !walk_word(w, regs + layout->cs, &cs))
		return STEP_LOST;
	if (cs & 3) {
		*s = before;
		return STEP_USER;
	}
	if (!walk_word(w, regs + layout->sp, &sp))
		return STEP_LOST;
	for (unsigned i = 0; i < layout->nr; i++) {
		if (walk_word(w, regs + i * w->machine->word, &value))
			reg_set(&before, layout->order[i], value);
	}
	reg_set(&before, w->machine->sp, sp);
	*s = before;
	return STEP_TRAP;
}

enum step trap_encoded(const struct walk *w, struct state *s, uint64_t fp)
{
	uint64_t value;

	if (w->context != IP_KERNEL)
		return STEP_NONE;
	/* With CONFIG_FRAME_POINTER: bit 0 is set or, on 32 bits, bit 31 is clear. */
	if (w->machine->kind == X86_64 && fp & 1 && walk_word(w, fp - 1, &value))
		return restore(w, s, fp - 1, &layout_64);
	if (w->machine->kind == I386 && !(fp >> 31) && walk_word(w, fp | 1u << 31, &value))
		return restore(w, s, fp | 1u << 31, &layout_32);
	return STEP_NONE;
}

/* ---- struct pt_regs of Linux on arm64, which ends in a frame record ---- */

#define ARM64_FP 232
#define ARM64_PC 256
#define ARM64_PSTATE 264
#define ARM64_RECORD 304      /* up to 6.12: the interrupted pc, or 0 after user code */
#define ARM64_RECORD_META 296 /* since 6.13: two zeroes, then the type */
#define META_PT_REGS 2

/* The address of the registers that this record belongs to; 0: it is a function's. */
static uint64_t find_registers(const struct walk *w, uint64_t record)
{
	uint64_t next, pc, meta, saved, regs = record - ARM64_RECORD;

	if (!walk_word(w, record, &next) || !walk_word(w, record + 8, &pc))
		return 0;
	if (!next && !pc && walk_word(w, record + 16, &meta) && meta == META_PT_REGS)
		return record - ARM64_RECORD_META;
	if (!walk_word(w, regs + ARM64_PC, &saved) || !saved)
		return 0;
	if (!next && !pc)
		return regs;
	return pc == saved && walk_word(w, regs + ARM64_FP, &saved) && saved == next ? regs : 0;
}

enum step trap_record(const struct walk *w, struct state *s, uint64_t record)
{
	struct state before = { .exact = true };
	uint64_t regs, pstate, value;

	if (w->machine->kind != AARCH64 || w->context != IP_KERNEL)
		return STEP_NONE;
	regs = find_registers(w, record);
	if (!regs || !walk_word(w, regs + ARM64_PC, &before.pc) ||
	    !walk_word(w, regs + ARM64_PSTATE, &pstate) || pstate >> 32)
		return STEP_NONE;
	before.cfa = regs;
	if (!(pstate & 15)) {
		*s = before;
		return STEP_USER;
	}
	for (unsigned i = 0; i <= 31; i++) { /* x0 to x30, sp */
		if (walk_word(w, regs + 8 * i, &value))
			reg_set(&before, i, value);
	}
	*s = before;
	return STEP_TRAP;
}

/* ---- struct pt_regs of Linux on RISC-V: the pc in the place of x0, x1 to x31, status ---- */

#define RISCV_STATUS 32		      /* in words */
#define STATUS_SPP (UINT64_C(1) << 8) /* interrupted the kernel */
#define STATUS_SIE (UINT64_C(1) << 1) /* a trap clears it */
#define STATUS_NEVER UINT64_C(0x7ffffffcfe000000)

/*
 * The assembly that saves the registers then holds the interrupted sp in the frame pointer, where a
 * handler finds and saves it. This is how we recognize the registers.
 */
static bool is_saved(const struct walk *w, const struct state *s, uint64_t regs, uint64_t status)
{
	const struct machine *m = w->machine;
	uint64_t sp, fp, pc, never = m->word == 8 ? STATUS_NEVER : (uint32_t)STATUS_NEVER;

	if (!reg_value(s, m->fp, &fp) || !walk_word(w, regs + m->sp * m->word, &sp) || sp != fp ||
	    !walk_word(w, regs, &pc) || status & (never | STATUS_SIE))
		return false;
	if (status & STATUS_SPP)
		return walk_is_code(w, pc) && sp > regs;
	return walk_is_user(w, pc) && !(pc & 1) && walk_is_user(w, sp);
}

enum step trap_saved(const struct walk *w, struct state *s)
{
	const struct machine *m = w->machine;
	struct state before = { .exact = true };
	uint64_t status, value;

	if ((m->kind != RISCV64 && m->kind != RISCV32) || w->context != IP_KERNEL ||
	    !reg_value(s, m->sp, &before.cfa) ||
	    !walk_word(w, before.cfa + RISCV_STATUS * m->word, &status) ||
	    !is_saved(w, s, before.cfa, status) || !walk_word(w, before.cfa, &before.pc))
		return STEP_NONE;
	for (unsigned i = 1; status & STATUS_SPP && i < m->nr; i++) {
		if (walk_word(w, before.cfa + i * m->word, &value))
			reg_set(&before, i, value);
	}
	*s = before;
	return status & STATUS_SPP ? STEP_TRAP : STEP_USER;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * insn: decodes instructions of x86, Arm and RISC-V as far as the trace needs it: how control leaves a
 * block, by how much the stack pointer moves, and whether the block may switch the stack or the address
 * space.
 */
#ifndef KSCOPE_PLUGIN_INSN_H
#define KSCOPE_PLUGIN_INSN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/trace.h"

/* What an instruction does to the stack pointer. */
enum insn_stack {
	INSN_STACK_MOVES, /* adds words and bytes, which usually are 0 */
	INSN_STACK_UNKNOWN,
	INSN_STACK_REPLACED,
	INSN_STACK_REPLACED_HIGH, /* the next instruction adds the low bits of the new address */
};

/* The mode of an x86 cpu, if an instruction reveals it. */
enum insn_mode { INSN_MODE_ANY, INSN_MODE_32, INSN_MODE_64 };

/* What an instruction does with its source register to the one that masks interrupts. */
enum insn_write { INSN_WRITES_NOTHING, INSN_WRITES, INSN_SETS_BITS, INSN_CLEARS_BITS };

/* How it switches interrupts on or off. */
struct insn_mask {
	uint8_t mask; /* enum wire_mask; UNKNOWN: it depends on a register or on memory */
	/* Then, if the register that masks interrupts cannot be read: */
	uint8_t otherwise; /* enum wire_mask, as far as the instruction alone tells; SAME: as follows */
	uint8_t write;	   /* enum insn_write */
	uint8_t source;	 /* DWARF number; the instruction keeps this register */
	uint8_t on, off; /* these bits of it switch interrupts on; off */
	uint8_t saved;	 /* these switch them on, when an exception returns */
};

struct insn {
	enum wire_flow flow;
	unsigned flags; /* enum wire_block_flag */
	uint64_t target;
	enum insn_stack stack;
	int words;     /* of x86, whose size depends on the mode */
	int64_t bytes; /* in addition to the words */
	enum insn_mode mode;
	struct insn_mask mask;
	bool repeats; /* x86: a string instruction with a rep prefix; its flow is that of QEMU, which jumps back to it */
	unsigned ahead; /* Thumb's it: how many instructions after it are conditional */
};

enum insn_set {
	INSN_OTHER,
	INSN_X86_64,
	INSN_I386,
	INSN_AARCH64,
	INSN_ARM,
	INSN_THUMB,
	INSN_RISCV64,
	INSN_RISCV32
};

enum insn_set insn_set_of(const char *arch); /* arch: as in uname -m */
void insn_decode(enum insn_set set, uint64_t address, const uint8_t *bytes, size_t size,
		 struct insn *insn);
/* The instruction is conditional because an earlier one, Thumb's it, says so. */
void insn_make_conditional(struct insn *insn);

#endif

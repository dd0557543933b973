/* SPDX-License-Identifier: GPL-2.0-or-later */
/* insn: the instructions in code: how long each is, and its text. */
#ifndef KSCOPE_SYM_INSN_H
#define KSCOPE_SYM_INSN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define INSN_MAX 15 /* bytes */
#define INSN_TEXT 224

struct insn_code {
	uint16_t machine; /* e_machine */
	bool wide;	  /* 64 bits: for RISC-V, whose e_machine does not tell */
	bool thumb;	  /* Arm: see symfile_is_thumb() */
	const uint8_t *bytes;
	size_t len;
};

enum insn_syntax { INSN_ATT, INSN_INTEL }; /* of x86 */

/* Whether kscope was built with what tells the instructions of a machine apart. */
bool insn_supports(uint16_t machine);
/* The length of the first instruction, or `len` if only that much of it is given; 0: unknown. */
size_t insn_size(const struct insn_code *code);

enum insn_flow_kind {
	INSN_GOES_ON,
	INSN_CALLS,
	INSN_RETURNS,
	INSN_JUMPS,
	INSN_BRANCHES, /* or goes on */
	INSN_LEAVES,   /* for an unknown target, or to the end of the code */
};

struct insn_flow {
	enum insn_flow_kind kind;
	size_t size;
	uint64_t target; /* of a direct call, jump or branch; else 0 */
	bool moves;	 /* changes the stack pointer; calls do not, as their return undoes it */
	bool down;	 /* by a push, or by a subtraction */
};

/* What the first instruction of x86 code, which is at `address`, does next. False: unknown. */
bool insn_flow(const struct insn_code *code, uint64_t address, struct insn_flow *flow);

enum insn_jump { INSN_JUMP_NONE, INSN_JUMP_ALWAYS, INSN_JUMP_IF };

/* Whether the first instruction, at `address`, is a jump with its target in the instruction, and whether it is conditional. */
enum insn_jump insn_jump(const struct insn_code *code, uint64_t address, uint64_t *target);
/* x86: whether the first instruction is a string instruction, which QEMU repeats if it has a rep prefix. */
bool insn_is_string(const struct insn_code *code);

/*
 * The text of the first instruction, as it is at `address`. If no library can disassemble it: its bytes.
 * Returns its target if it is a direct jump or call, else 0.
 */
uint64_t insn_text(const struct insn_code *code, uint64_t address, enum insn_syntax syntax,
		   char text[INSN_TEXT]);

#endif

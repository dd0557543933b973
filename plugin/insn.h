/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * insn: where an instruction leads, told from its bytes, for x86, Arm and RISC-V. Only what the
 * trace needs: how control leaves a block, and whether the block may have changed the stack, the
 * address space or the level.
 */
#ifndef KSCOPE_PLUGIN_INSN_H
#define KSCOPE_PLUGIN_INSN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How control leaves a block. These numbers are in the trace: wire/README.md. */
enum flow {
	FLOW_ON,       /* into what follows */
	FLOW_JUMP,     /* to `target` */
	FLOW_COND,     /* to `target`, or on */
	FLOW_JUMP_ANY, /* to wherever a register or memory says */
	FLOW_CALL,     /* to `target`, and back some day */
	FLOW_CALL_ANY, /* likewise, of any target */
	FLOW_RETURN,
	FLOW_ENTER, /* a system call, or a trap that is meant */
	FLOW_LEAVE, /* the return from an exception */
	FLOW_WAIT,  /* on, but an interrupt is more likely to be next */
	FLOW_KINDS
};

#define INSN_MAYBE 1 /* the call or return is conditional: control may go on instead */
#define INSN_STATE 2 /* the stack or the address space may be another one afterwards */

struct insn {
	enum flow flow;
	unsigned flags;
	uint64_t target;
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

enum insn_set insn_set_of(const char *arch); /* as uname -m says it */
void insn_decode(enum insn_set set, uint64_t address, const uint8_t *bytes, size_t size,
		 struct insn *insn);

#endif

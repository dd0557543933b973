/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * insn: decodes instructions of x86, Arm and RISC-V as far as the trace needs it: how control leaves a
 * block, and whether the block may switch the stack or the address space.
 */
#ifndef KSCOPE_PLUGIN_INSN_H
#define KSCOPE_PLUGIN_INSN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/trace.h"

struct insn {
	enum wire_flow flow;
	unsigned flags; /* enum wire_block_flag */
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

enum insn_set insn_set_of(const char *arch); /* arch: as in uname -m */
void insn_decode(enum insn_set set, uint64_t address, const uint8_t *bytes, size_t size,
		 struct insn *insn);

#endif

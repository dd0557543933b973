// SPDX-License-Identifier: GPL-2.0-or-later
#include "sym/insn_other.h"

#ifdef HAVE_CAPSTONE
#include <capstone/capstone.h>
#include <elf.h>
#include <stdio.h>

static bool open_for(const struct insn_code *code, csh *handle)
{
	switch (code->machine) {
	case EM_ARM:
		return !cs_open(CS_ARCH_ARM, code->thumb ? CS_MODE_THUMB : CS_MODE_ARM, handle);
	case EM_AARCH64: return !cs_open(CS_ARCH_ARM64, CS_MODE_ARM, handle);
#if CS_API_MAJOR >= 5
	case EM_RISCV:
		return !cs_open(CS_ARCH_RISCV,
				CS_MODE_RISCVC | (code->wide ? CS_MODE_RISCV64 : CS_MODE_RISCV32),
				handle);
#endif
	default: return false;
	}
}

/* The last operand of a branch is its target. */
static uint64_t target_of(csh handle, const struct insn_code *code, const cs_insn *insn)
{
	const cs_arm64 *arm64 = &insn->detail->arm64;
	const cs_arm *arm = &insn->detail->arm;

	if (!cs_insn_group(handle, insn, CS_GRP_JUMP) &&
	    !cs_insn_group(handle, insn, CS_GRP_CALL) &&
	    !cs_insn_group(handle, insn, CS_GRP_BRANCH_RELATIVE))
		return 0;
	if (code->machine == EM_AARCH64 && arm64->op_count &&
	    arm64->operands[arm64->op_count - 1].type == ARM64_OP_IMM)
		return (uint64_t)arm64->operands[arm64->op_count - 1].imm;
	if (code->machine == EM_ARM && arm->op_count &&
	    arm->operands[arm->op_count - 1].type == ARM_OP_IMM)
		return (uint32_t)arm->operands[arm->op_count - 1].imm;
	return 0;
}

bool insn_other_text(const struct insn_code *code, uint64_t address, char text[INSN_TEXT],
		     uint64_t *target)
{
	cs_insn *insn;
	csh handle;
	size_t nr;

	if (!open_for(code, &handle))
		return false;
	cs_option(handle, CS_OPT_DETAIL, CS_OPT_ON);
	nr = cs_disasm(handle, code->bytes, insn_size(code), address, 1, &insn);
	if (nr) {
		snprintf(text, INSN_TEXT, "%s%s%s", insn->mnemonic, insn->op_str[0] ? " " : "",
			 insn->op_str);
		*target = target_of(handle, code, insn);
		cs_free(insn, nr);
	}
	cs_close(&handle);
	return nr > 0;
}
#else
bool insn_other_text(const struct insn_code *code, uint64_t address, char text[INSN_TEXT],
		     uint64_t *target)
{
	(void)code, (void)address, (void)text, (void)target;
	return false;
}
#endif

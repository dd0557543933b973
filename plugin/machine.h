/* SPDX-License-Identifier: GPL-2.0-or-later */
/* machine: the registers of each machine that the plugin knows, and what they mean. */
#ifndef KSCOPE_PLUGIN_MACHINE_H
#define KSCOPE_PLUGIN_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

/* Registers by what they are for. A machine has only some of them. */
enum reg {
	REG_PC,
	REG_FLAGS, /* eflags, cpsr, xpsr */
	REG_CS,
	REG_CR0,
	REG_EFER,
	/* M-profile: */
	REG_CONTROL,
	REG_PRIMASK,
	REG_BASEPRI,
	REG_FAULTMASK,
	REG_PRIVILEGE,
	REG_SPACE,
	REG_STAGE1,	/* SCTLR_EL1: whether EL1's page table is in use */
	REG_STAGE2,	/* the page table that a hypervisor has for its guest */
	REG_HYP_CONFIG, /* HCR_EL2 */
	REG_HYP_SPACE,	/* TTBR0_EL2: the page table of the hypervisor itself */
	/* The return address of an exception, or lr; of the hypervisor and of firmware. */
	REG_LINK,
	REG_LINK_2,
	REG_LINK_3,
	/* The flags that an exception saved, at each level. */
	REG_SAVED,
	REG_SAVED_2,
	REG_SAVED_3,
	/* The stack pointers of the levels; REG_SP_0 of M-profile: the one of threads. */
	REG_SP_0,
	REG_SP_1,
	REG_SP_2,
	/* Where traps lead to. */
	REG_VECTOR,
	REG_VECTOR_2,
	REG_VECTOR_3,
	/* RISC-V: whether interrupts are masked, and the level that the last trap interrupted. */
	REG_STATUS,
	REG_STATUS_3,
	/* RISC-V: the last trap. */
	REG_CAUSE,
	REG_CAUSE_3,
	REG_KINDS
};

struct reg_name {
	const char
		*names; /* QEMU's, separated by bars; the first that exists is used. NULL: none */
	int gdb;	/* number in gdb's core registers, or -1 */
};

enum machine_family { MACHINE_X86, MACHINE_AARCH64, MACHINE_ARM, MACHINE_M_PROFILE, MACHINE_RISCV };

struct machine {
	const char *name; /* QEMU's, of its target */
	enum machine_family family;
	unsigned word, n;
	unsigned sp, fp, result; /* DWARF numbers */
	int link;		 /* register with the return address; -1: on the stack */
	enum reg level;		 /* the register with the privilege level */
	const int8_t *arguments; /* registers, up to -1; the rest is on the stack */
	const struct reg_name *dwarf;
	struct reg_name reg[REG_KINDS];
};

const struct machine *machine_of(const char *name); /* NULL: unknown */
extern const struct machine machine_m_profile;	    /* "arm" for QEMU */
extern const struct reg_name machine_any_pc;	    /* of unknown machines */
extern const int8_t machine_no_arguments[];

/* enum wire_level, by the register with the privilege level. Not for M-profile. */
unsigned machine_level(const struct machine *machine, uint64_t value);

#endif

// SPDX-License-Identifier: GPL-2.0-or-later
#include "machine.h"

#include <stddef.h>
#include <string.h>

#include "wire/wire.h"

static const struct reg_name x86_64_regs[] = {
	{ "rax", 0 },  { "rdx", 3 },  { "rcx", 2 },  { "rbx", 1 },  { "rsi", 4 },  { "rdi", 5 },
	{ "rbp", 6 },  { "rsp", 7 },  { "r8", 8 },   { "r9", 9 },   { "r10", 10 }, { "r11", 11 },
	{ "r12", 12 }, { "r13", 13 }, { "r14", 14 }, { "r15", 15 }, { "rip", 16 },
};
static const struct reg_name i386_regs[] = {
	{ "eax", 0 }, { "ecx", 1 }, { "edx", 2 }, { "ebx", 3 }, { "esp", 4 },
	{ "ebp", 5 }, { "esi", 6 }, { "edi", 7 }, { "eip", 8 },
};
static const struct reg_name aarch64_regs[] = {
	{ "x0", 0 },   { "x1", 1 },   { "x2", 2 },   { "x3", 3 },   { "x4", 4 },   { "x5", 5 },
	{ "x6", 6 },   { "x7", 7 },   { "x8", 8 },   { "x9", 9 },   { "x10", 10 }, { "x11", 11 },
	{ "x12", 12 }, { "x13", 13 }, { "x14", 14 }, { "x15", 15 }, { "x16", 16 }, { "x17", 17 },
	{ "x18", 18 }, { "x19", 19 }, { "x20", 20 }, { "x21", 21 }, { "x22", 22 }, { "x23", 23 },
	{ "x24", 24 }, { "x25", 25 }, { "x26", 26 }, { "x27", 27 }, { "x28", 28 }, { "x29", 29 },
	{ "x30", 30 }, { "sp", 31 },  { "pc", 32 },
};
static const struct reg_name arm_regs[] = {
	{ "r0", 0 },   { "r1", 1 },  { "r2", 2 },  { "r3", 3 },	 { "r4", 4 },	{ "r5", 5 },
	{ "r6", 6 },   { "r7", 7 },  { "r8", 8 },  { "r9", 9 },	 { "r10", 10 }, { "r11", 11 },
	{ "r12", 12 }, { "sp", 13 }, { "lr", 14 }, { "pc", 15 },
};
static const struct reg_name riscv_regs[] = {
	{ "zero", 0 }, { "ra", 1 },  { "sp", 2 },    { "gp", 3 },   { "tp", 4 },  { "t0", 5 },
	{ "t1", 6 },   { "t2", 7 },  { "fp|s0", 8 }, { "s1", 9 },   { "a0", 10 }, { "a1", 11 },
	{ "a2", 12 },  { "a3", 13 }, { "a4", 14 },   { "a5", 15 },  { "a6", 16 }, { "a7", 17 },
	{ "s2", 18 },  { "s3", 19 }, { "s4", 20 },   { "s5", 21 },  { "s6", 22 }, { "s7", 23 },
	{ "s8", 24 },  { "s9", 25 }, { "s10", 26 },  { "s11", 27 }, { "t3", 28 }, { "t4", 29 },
	{ "t5", 30 },  { "t6", 31 },
};

static const int8_t x86_64_arguments[] = { 5, 4, 1, 2, 8, 9, -1 };
static const int8_t aarch64_arguments[] = { 0, 1, 2, 3, 4, 5, 6, 7, -1 };
static const int8_t arm_arguments[] = { 0, 1, 2, 3, -1 };
static const int8_t riscv_arguments[] = { 10, 11, 12, 13, 14, 15, 16, 17, -1 };
const int8_t machine_no_arguments[] = { -1 };

#define RISCV(bits)                                                                           \
	{                                                                                     \
		.name = "riscv" #bits, .family = MACHINE_RISCV, .word = (bits) / 8, .n = 32,  \
		.sp = 2, .fp = 8, .result = 10, .link = 1, .level = REG_PRIVILEGE,            \
		.arguments = riscv_arguments, .dwarf = riscv_regs,                            \
		.reg = {                                                                      \
			[REG_PC] = { "pc", 32 },	  [REG_PRIVILEGE] = { "priv", -1 },   \
			[REG_SPACE] = { "satp", -1 },	  [REG_STAGE2] = { "hgatp", -1 },     \
			[REG_LINK] = { "sepc", -1 },	  [REG_LINK_3] = { "mepc", -1 },      \
			[REG_VECTOR] = { "stvec", -1 },	  [REG_VECTOR_3] = { "mtvec", -1 },   \
			[REG_STATUS] = { "sstatus", -1 }, [REG_STATUS_3] = { "mstatus", -1 }, \
			[REG_CAUSE] = { "scause", -1 },	  [REG_CAUSE_3] = { "mcause", -1 },   \
		},                                                                            \
	}

/* clang-format off */
static const struct machine machines[] = {
	{
		.name = "x86_64", .family = MACHINE_X86, .word = 8, .n = 17,
		.sp = 7, .fp = 6, .result = 0, .link = -1, .level = REG_CS,
		.arguments = x86_64_arguments, .dwarf = x86_64_regs,
		.reg = {
			[REG_PC] = { "rip", 16 }, [REG_FLAGS] = { "eflags", 17 },
			[REG_CS] = { "cs", 18 }, [REG_CR0] = { "cr0", 27 },
			[REG_EFER] = { "efer", 32 }, [REG_SPACE] = { "cr3", 29 },
		},
	},
	{
		.name = "i386", .family = MACHINE_X86, .word = 4, .n = 9,
		.sp = 4, .fp = 5, .result = 0, .link = -1, .level = REG_CS,
		.arguments = machine_no_arguments, .dwarf = i386_regs,
		.reg = {
			[REG_PC] = { "eip", 8 }, [REG_FLAGS] = { "eflags", 9 },
			[REG_CS] = { "cs", 10 }, [REG_CR0] = { "cr0", 19 },
			[REG_SPACE] = { "cr3", 21 },
		},
	},
	{
		.name = "aarch64", .family = MACHINE_AARCH64, .word = 8, .n = 33,
		.sp = 31, .fp = 29, .result = 0, .link = 30, .level = REG_FLAGS,
		.arguments = aarch64_arguments, .dwarf = aarch64_regs,
		.reg = {
			[REG_PC] = { "pc", 32 }, [REG_FLAGS] = { "cpsr", 33 },
			[REG_SPACE] = { "TTBR0_EL1", -1 },
			[REG_STAGE1] = { "SCTLR_EL1|SCTLR", -1 },
			[REG_STAGE2] = { "VTTBR_EL2", -1 },
			[REG_HYP_CONFIG] = { "HCR_EL2", -1 },
			[REG_HYP_SPACE] = { "TTBR0_EL2", -1 },
			[REG_LINK] = { "ELR_EL1", -1 }, [REG_LINK_2] = { "ELR_EL2", -1 },
			[REG_LINK_3] = { "ELR_EL3", -1 },
			[REG_SAVED] = { "SPSR_EL1", -1 },
			[REG_SAVED_2] = { "SPSR_EL2", -1 }, [REG_SAVED_3] = { "SPSR_EL3", -1 },
			[REG_SP_0] = { "SP_EL0", -1 }, [REG_SP_1] = { "SP_EL1", -1 },
			[REG_SP_2] = { "SP_EL2", -1 },
			[REG_VECTOR] = { "VBAR", -1 }, [REG_VECTOR_2] = { "VBAR_EL2", -1 },
			[REG_VECTOR_3] = { "VBAR_EL3", -1 },
		},
	},
	{
		.name = "arm", .family = MACHINE_ARM, .word = 4, .n = 16,
		.sp = 13, .fp = 11, .result = 0, .link = 14, .level = REG_FLAGS,
		.arguments = arm_arguments, .dwarf = arm_regs,
		.reg = {
			[REG_PC] = { "pc", 15 }, [REG_FLAGS] = { "cpsr", 25 },
			[REG_SPACE] = { "TTBR0|TTBR0_EL1|TTBR0_S", -1 },
			[REG_LINK] = { "lr", 14 },
		},
	},
	RISCV(64),
	RISCV(32),
};

const struct machine machine_m_profile = {
	.name = "arm", .family = MACHINE_M_PROFILE, .word = 4, .n = 16,
	.sp = 13, .fp = 7 /* Thumb's */, .result = 0, .link = 14, .level = REG_FLAGS,
	.arguments = arm_arguments, .dwarf = arm_regs,
	.reg = {
		[REG_PC] = { "pc", 15 }, [REG_FLAGS] = { "xpsr", 25 },
		[REG_CONTROL] = { "control", -1 }, [REG_PRIMASK] = { "primask", -1 },
		[REG_BASEPRI] = { "basepri", -1 }, [REG_FAULTMASK] = { "faultmask", -1 },
		[REG_LINK] = { "lr", 14 },
		[REG_SP_0] = { "psp", -1 },
	},
};
/* clang-format on */

const struct reg_name machine_any_pc = { "pc|rpc|nip|pswa|PC", -1 };

const struct machine *machine_of(const char *name)
{
	for (size_t i = 0; i < sizeof(machines) / sizeof(*machines); i++) {
		if (!strcmp(name, machines[i].name))
			return &machines[i];
	}
	return NULL;
}

static unsigned arm_level(uint64_t mode)
{
	switch (mode & 0x1f) {
	case 0x10: return WIRE_LEVEL_USER;
	case 0x16: return WIRE_LEVEL_FIRMWARE;
	case 0x1a: return WIRE_LEVEL_HYPERVISOR;
	default: return WIRE_LEVEL_KERNEL;
	}
}

unsigned machine_level(const struct machine *machine, uint64_t value)
{
	switch (machine->family) {
	case MACHINE_X86: return (value & 3) == 3 ? WIRE_LEVEL_USER : WIRE_LEVEL_KERNEL;
	case MACHINE_AARCH64: return value & 0x10 ? arm_level(value) : value >> 2 & 3;
	case MACHINE_RISCV: return value & 3;
	default: return arm_level(value);
	}
}

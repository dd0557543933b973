// SPDX-License-Identifier: GPL-2.0-or-later
/* Registers of the machines that the unwinder supports. */
#include <string.h>

#include "unwind/walk.h"

static const uint8_t perf_x86_64[] = { 0, 3, 2, 1, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23 };
static const uint8_t perf_arm64[] = { 0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10,
				      11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
				      22, 23, 24, 25, 26, 27, 28, 29, 30, 31 };

static const struct machine machines[] = {
	[X86_64] = { .kind = X86_64,
		     .word = 8,
		     .nr = 16,
		     .sp = 7,
		     .fp = 6,
		     .lr = NO_REG,
		     .pc = 16,
		     .kept = 0xf048, /* rbx rbp r12-r15 */
		     .perf = perf_x86_64,
		     .perf_pc = 8 },
	[I386] = { .kind = I386,
		   .word = 4,
		   .nr = 8,
		   .sp = 4,
		   .fp = 5,
		   .lr = NO_REG,
		   .pc = 8,
		   .kept = 0xe8 }, /* ebx ebp esi edi */
	[AARCH64] = { .kind = AARCH64,
		      .word = 8,
		      .nr = 32,
		      .sp = 31,
		      .fp = 29,
		      .lr = 30,
		      .pc = NO_REG,
		      .kept = 0x3ff80000, /* x19-x29 */
		      .perf = perf_arm64,
		      .perf_pc = 32 },
	[ARM] = { .kind = ARM,
		  .word = 4,
		  .nr = 15,
		  .sp = 13,
		  .fp = 11,
		  .lr = 14,
		  .pc = 15,
		  .kept = 0xff0 }, /* r4-r11 */
	[RISCV64] = { .kind = RISCV64,
		      .word = 8,
		      .nr = 32,
		      .sp = 2,
		      .fp = 8,
		      .lr = 1,
		      .pc = NO_REG,
		      .kept = 0xffc0318 }, /* gp tp s0-s11 */
	[RISCV32] = { .kind = RISCV32,
		      .word = 4,
		      .nr = 32,
		      .sp = 2,
		      .fp = 8,
		      .lr = 1,
		      .pc = NO_REG,
		      .kept = 0xffc0318 },
};

/* i386 to i686, as printed by uname -m */
static bool is_i386(const char *arch)
{
	return arch[0] == 'i' && arch[1] >= '3' && arch[1] <= '6' && !strcmp(arch + 2, "86");
}

const struct machine *machine_by_arch(const char *arch)
{
	if (!strcmp(arch, "x86_64"))
		return &machines[X86_64];
	if (is_i386(arch))
		return &machines[I386];
	if (!strcmp(arch, "aarch64"))
		return &machines[AARCH64];
	if (!strcmp(arch, "arm") || !strncmp(arch, "armv", 4))
		return &machines[ARM];
	if (!strcmp(arch, "riscv64"))
		return &machines[RISCV64];
	if (!strcmp(arch, "riscv32"))
		return &machines[RISCV32];
	return NULL;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * AArch64. At EL1, the kernel and the devices are at their addresses in every space. At EL2, the
 * kernel has no translation, and the user only that of stage 2.
 */
#include "common.h"

#define MEMORY 0x42000000ul
#define TABLE 3
#define VALID 1ul
#define ACCESSED (1ul << 10)
#define SHARED (3ul << 8)
#define NOT_GLOBAL (1ul << 11)
#define NOT_FOR_KERNEL (1ul << 53)
#define NOT_FOR_USER (1ul << 54)
#define USER_WRITES (1ul << 6)
#define DEVICE_MEMORY (1ul << 2)
#define STAGE2_WRITES (3ul << 6)
#define STAGE2_NORMAL (0xful << 2)

static uint64_t tables[SPACES][2][512] __attribute__((aligned(4096)));

#if LEVEL == 2
#define USER_ENTRY (VALID | ACCESSED | SHARED | STAGE2_WRITES | STAGE2_NORMAL)

static void translation_on(void)
{
	/* 39 bits, from level 1, pages of 4 KB, physical addresses of 40 bits */
	__asm__ volatile("msr vtcr_el2, %0" : : "r"(0x80023559ul));
	__asm__ volatile("msr ttbr0_el1, xzr; msr sctlr_el1, %0" : : "r"(0x30d00800ul));
	/* stage 2 on, traps of EL0 and interrupts go to EL2, 64 bits */
	__asm__ volatile("msr hcr_el2, %0; isb" : : "r"(0x88000039ul));
}

void space_use(uint64_t space)
{
	__asm__ volatile("msr vttbr_el2, %0; isb" : : "r"(space) : "memory");
}
#else
#define USER_ENTRY (VALID | ACCESSED | SHARED | USER_WRITES | NOT_FOR_KERNEL | NOT_GLOBAL)

static void translation_on(void)
{
	__asm__ volatile("msr mair_el1, %0" : : "r"(0x04fful));
	/* 39 bits, pages of 4 KB, only the lower half */
	__asm__ volatile("msr tcr_el1, %0" : : "r"(0x100803519ul));
	__asm__ volatile("msr ttbr0_el1, %0; isb" : : "r"(tables[0][0]));
	__asm__ volatile("msr sctlr_el1, %0; isb" : : "r"(0x30d01805ul));
}

void space_use(uint64_t space)
{
	__asm__ volatile("msr ttbr0_el1, %0; isb" : : "r"(space) : "memory");
}
#endif

uint64_t space_make(unsigned number, uint8_t **memory)
{
	uint64_t(*table)[512] = tables[number];
	uint64_t user = MEMORY + number * USER_SIZE;

#if LEVEL == 1
	table[0][0] = VALID | ACCESSED | DEVICE_MEMORY | NOT_FOR_USER | NOT_FOR_KERNEL;
	table[0][1] = 0x40000000 | VALID | ACCESSED | SHARED | NOT_FOR_USER;
#endif
	table[0][USER_BASE >> 30] = (uintptr_t)table[1] | TABLE;
	table[1][0] = user | USER_ENTRY;
	if (number == 0)
		translation_on();
	*memory = (uint8_t *)user;
	return (uintptr_t)table[0] | (number + 1ul) << 48;
}

void user_frame(struct frame *frame, uint64_t sp, uint64_t argument)
{
	*frame = (struct frame){ .pc = USER_BASE, .sp_el0 = sp };
	frame->x[0] = argument;
}

uint64_t user_argument(const struct frame *frame, unsigned nr)
{
	return frame->x[nr];
}

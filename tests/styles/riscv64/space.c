// SPDX-License-Identifier: GPL-2.0-or-later
/* RISC-V: Sv39. The kernel and the devices are at their addresses in every space. */
#include "common.h"

#define MEMORY 0x82000000ul
#define STATUS_USER 0x20 /* SPIE: back to user mode, with interrupts */

enum entry { TABLE = 0x01, DEVICES = 0xc7, KERNEL = 0xcf, USER = 0xdf };

static uint64_t tables[SPACES][2][512] __attribute__((aligned(4096)));

static uint64_t entry(uint64_t address, enum entry kind)
{
	return address >> 12 << 10 | kind;
}

uint64_t space_make(unsigned number, uint8_t **memory)
{
	uint64_t(*table)[512] = tables[number];
	uint64_t user = MEMORY + number * USER_SIZE;

	table[0][0] = entry(0, DEVICES);
	table[0][2] = entry(0x80000000, KERNEL);
	table[0][USER_BASE >> 30] = entry((uintptr_t)table[1], TABLE);
	table[1][0] = entry(user, USER);
	*memory = (uint8_t *)user;
	return 8ul << 60 | (number + 1ul) << 44 | (uintptr_t)table[0] >> 12;
}

void space_use(uint64_t space)
{
	__asm__ volatile("csrw satp, %0; sfence.vma; fence.i" : : "r"(space) : "memory");
}

void user_frame(struct frame *frame, uint64_t sp, uint64_t argument)
{
	*frame = (struct frame){ .status = STATUS_USER };
	frame->x[0] = USER_BASE;
	frame->x[2] = sp;
	frame->x[10] = argument;
}

uint64_t user_argument(const struct frame *frame, unsigned nr)
{
	return frame->x[10 + nr];
}

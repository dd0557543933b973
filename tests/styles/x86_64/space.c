// SPDX-License-Identifier: GPL-2.0-or-later
/* x86-64: the first GB and the local APIC are identity-mapped in every space, for the kernel only. */
#include "common.h"

#define MEMORY 0x2000000ul
#define APIC_PAGE 0xfee00000ul

enum entry { TABLE = 0x07, DEVICES = 0x93, KERNEL = 0x83, USER = 0x87 };

enum selector { USER_DATA = 0x1b, USER_CODE = 0x23, TASK = 0x28 };

struct pointer {
	uint16_t limit;
	uint64_t base;
} __attribute__((packed));

/* onestack.S writes its rsp0, the stack on which the cpu saves the user's registers. */
struct task_state {
	uint32_t unused;
	uint64_t rsp[3], others[9];
	uint16_t more, ports;
} __attribute__((packed)) task_state = { .ports = sizeof(task_state) };

static uint64_t tables[SPACES][3][512] __attribute__((aligned(4096)));
static uint64_t segments[7] = { 0, 0x00af9b000000ffff, 0x00cf93000000ffff, 0x00cff3000000ffff,
				0x00affb000000ffff };

static void segments_init(void)
{
	struct pointer pointer = { sizeof(segments) - 1, (uintptr_t)segments };
	uint64_t at = (uintptr_t)&task_state;

	segments[5] = (sizeof(task_state) - 1) | (at & 0xffffff) << 16 | 0x89ul << 40 |
		      (at >> 24 & 0xff) << 56;
	__asm__ volatile("lgdt %0; ltr %1" : : "m"(pointer), "r"((uint16_t)TASK));
}

uint64_t space_make(unsigned number, uint8_t **memory)
{
	uint64_t(*table)[512] = tables[number];
	uint64_t user = MEMORY + number * USER_SIZE;

	if (number == 0)
		segments_init();
	table[0][0] = (uintptr_t)table[1] | TABLE;
	table[1][0] = KERNEL;
	table[1][USER_BASE >> 30] = (uintptr_t)table[2] | TABLE;
	table[2][0] = user | USER;
	table[2][APIC_PAGE >> 21 & 511] = APIC_PAGE | DEVICES;
	*memory = (uint8_t *)user;
	return (uintptr_t)table[0];
}

void space_use(uint64_t space)
{
	__asm__ volatile("mov %0, %%cr3" : : "r"(space) : "memory");
}

void user_frame(struct frame *frame, uint64_t sp, uint64_t argument)
{
	*frame = (struct frame){ .rdi = argument,
				 .rip = USER_BASE,
				 .cs = USER_CODE,
				 .flags = 0x202,
				 .rsp = sp,
				 .ss = USER_DATA };
}

uint64_t user_argument(const struct frame *frame, unsigned nr)
{
	return nr ? frame->rsi : frame->rdi;
}

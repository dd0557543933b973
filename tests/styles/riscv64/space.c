// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * RISC-V: Sv39. The kernel and the devices are at their addresses in every space. A hypervisor has no
 * translation, and its user only that of stage 2, with four tables at the root.
 */
#include "common.h"

#define MEMORY 0x82000000ul
#define STATUS_USER 0x20 /* SPIE: back to user mode, with interrupts */

enum entry { TABLE = 0x01, DEVICES = 0xc7, KERNEL = 0xcf, USER = 0xdf };

#ifdef HYPERVISOR
#define ROOT_TABLES 4
#define SPACE_REGISTER "0x680"			  /* hgatp */
#define FENCE ".insn r 0x73, 0, 0x31, x0, x0, x0" /* hfence.gvma */
#else
#define ROOT_TABLES 1
#define SPACE_REGISTER "satp"
#define FENCE "sfence.vma"
#endif

static uint64_t tables[SPACES][2 * ROOT_TABLES][512] __attribute__((aligned(ROOT_TABLES * 4096)));

static uint64_t entry(uint64_t address, enum entry kind)
{
	return address >> 12 << 10 | kind;
}

uint64_t space_make(unsigned number, uint8_t **memory)
{
	uint64_t(*table)[512] = tables[number];
	uint64_t user = MEMORY + number * USER_SIZE;

#ifdef HYPERVISOR
	__asm__ volatile("csrs 0x600, %0" : : "r"(1 << 7)); /* hstatus.SPV: return to a guest */
#else
	table[0][0] = entry(0, DEVICES);
	table[0][2] = entry(0x80000000, KERNEL);
#endif
	table[0][USER_BASE >> 30] = entry((uintptr_t)table[ROOT_TABLES], TABLE);
	table[ROOT_TABLES][0] = entry(user, USER);
	*memory = (uint8_t *)user;
	return 8ul << 60 | (number + 1ul) << 44 | (uintptr_t)table[0] >> 12;
}

void space_use(uint64_t space)
{
	__asm__ volatile("csrw " SPACE_REGISTER ", %0; " FENCE "; fence.i"
			 :
			 : "r"(space)
			 : "memory");
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

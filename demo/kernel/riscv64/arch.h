/* SPDX-License-Identifier: GPL-2.0-or-later */
/* RISC-V: the memory layout on QEMU's virt machine, for C, assembly and the linker. */
#pragma once

#define KERNEL_OFFSET 0xffffffc000000000
#define KERNEL_START 0x80200000
#define STACK_SIZE 16384
#define RINGS_SIZE (1 << 20) /* of the profiler */
#define USER_TEXT 0x400000
#define USER_SIZE 0x200000
#define VIRTIO_FIRST 0x10001000
#define VIRTIO_STEP 0x1000
#define VIRTIO_SLOTS 8

/* Bits of sstatus */
#define STATUS_SIE 0x2	   /* interrupts are on */
#define STATUS_SPIE 0x20   /* they were, before the trap */
#define STATUS_SPP 0x100   /* the trap came from the kernel */
#define STATUS_SUM 0x40000 /* the kernel may read the user's memory */

#define FRAME_SIZE 288 /* struct frame */
#define FRAME_PC 0
#define FRAME_STATUS 256
#define FRAME_LINK 272
#define SWITCH_SIZE 112 /* what switch_to saves */

#ifndef __ASSEMBLER__
#include <stdint.h>

#define USER_START "li s0, 0\n .cfi_undefined ra\n call user_main\n ecall\n"

static inline uintptr_t stack_pointer(void)
{
	uintptr_t sp;

	__asm__ volatile("mv %0, sp" : "=r"(sp));
	return sp;
}

static inline void interrupts_off(void)
{
	__asm__ volatile("csrci sstatus, %0" : : "i"(STATUS_SIE) : "memory");
}

static inline void interrupts_on(void)
{
	__asm__ volatile("csrsi sstatus, %0" : : "i"(STATUS_SIE) : "memory");
}
#endif

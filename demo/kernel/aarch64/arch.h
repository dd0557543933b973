/* SPDX-License-Identifier: GPL-2.0-or-later */
/* AArch64: the memory layout on QEMU's virt machine, for C, assembly and the linker. */
#pragma once

#define KERNEL_OFFSET 0xffffff8000000000
#define DEVICE_TREE 0x40000000
#define KERNEL_START 0x40200000
#define STACK_SIZE 16384
#define RINGS_SIZE (1 << 20) /* of the profiler */
#define USER_TEXT 0x400000
#define USER_SIZE 0x200000
#define VIRTIO_FIRST 0x0a000000
#define VIRTIO_STEP 0x200
#define VIRTIO_SLOTS 32

/* The kind of trap, passed by the vectors */
#define TRAP_SYNC 0
#define TRAP_INTERRUPT 1
#define TRAP_OTHER 2

#define FRAME_SIZE 288 /* struct frame */
#define FRAME_ELR 256
#define FRAME_LINK 272

#ifndef __ASSEMBLER__
#include <stdint.h>

#define USER_START "mov x29, xzr\n .cfi_undefined x30\n bl user_main\n svc #0\n"

static inline uintptr_t stack_pointer(void)
{
	uintptr_t sp;

	__asm__ volatile("mov %0, sp" : "=r"(sp));
	return sp;
}

static inline void interrupts_off(void)
{
	__asm__ volatile("msr daifset, #2" ::: "memory");
}

static inline void interrupts_on(void)
{
	__asm__ volatile("msr daifclr, #2" ::: "memory");
}
#endif

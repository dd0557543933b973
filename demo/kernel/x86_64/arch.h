/* SPDX-License-Identifier: GPL-2.0-or-later */
/* x86-64: the memory layout, for C, assembly and the linker. */
#pragma once

#define KERNEL_OFFSET 0xffffffff80000000
#define KERNEL_START 0x200000
#define STACK_SIZE 16384
#define RINGS_SIZE (1 << 20) /* of the profiler */
#define TRAMPOLINE 0x8000
#define USER_TEXT 0x400000
#define USER_SIZE 0x200000

#define KERNEL_CODE 0x08
#define KERNEL_DATA 0x10
#define USER_CODE 0x1b
#define USER_DATA 0x23
#define FIRST_TSS 0x28

#define VECTOR_TIMER 32
#define VECTOR_EXIT 33 /* int $33: a user program exits */
#define VECTOR_SPURIOUS 47
#define VECTORS 48

#ifndef __ASSEMBLER__
#include <stdint.h>

#define USER_START "xor %ebp, %ebp\n .cfi_undefined rip\n call user_main\n int $33\n"

static inline uintptr_t stack_pointer(void)
{
	uintptr_t sp;

	__asm__ volatile("mov %%rsp, %0" : "=r"(sp));
	return sp;
}

static inline void interrupts_off(void)
{
	__asm__ volatile("cli" ::: "memory");
}

static inline void interrupts_on(void)
{
	__asm__ volatile("sti" ::: "memory");
}
#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Cortex-M3: the memory layout on QEMU's mps2-an385, for C, assembly and the linker. */
#pragma once

#define CODE_START 0x00000000 /* the vectors are here */
#define RAM_START 0x20000000
#define PSRAM_START 0x21000000
#define CODE_SIZE 0x400000
#define RAM_SIZE 0x400000
#define PSRAM_SIZE 0x1000000

#define STACK_SIZE 4096
#define HANDLER_STACK_SIZE 8192
#define HANDLERS_NEST	  /* by priority: they run with interrupts on */
#define USER_SIZE 0x10000 /* the programs are linked for PSRAM_START, one after the other */
#define HEAP_SIZE (8 << 20)
#define RINGS_SIZE (512 << 10) /* of the profiler */

#define CONTEXT_SIZE 40 /* struct context */
#define FRAME_SIZE 48	/* struct frame */
#define FRAME_R7 24

#ifndef __ASSEMBLER__
#include <stdint.h>

#define USER_START "mov r7, #0\n .cfi_undefined lr\n bl user_main\n svc #0\n"

extern uintptr_t task_stack;

/* Of the current task, in its stack: handlers have another stack, and so have user programs. */
static inline uintptr_t stack_pointer(void)
{
	return task_stack;
}

static inline void interrupts_off(void)
{
	__asm__ volatile("cpsid i" ::: "memory");
}

static inline void interrupts_on(void)
{
	__asm__ volatile("cpsie i\n isb" ::: "memory");
}
#endif

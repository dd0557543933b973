/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Shared by all guests. A guest is the work of work.c, one style of switching between threads, and
 * the folder of an architecture.
 */
#ifndef STYLES_COMMON_H
#define STYLES_COMMON_H

#ifndef THREADS
#define THREADS 4
#endif
#ifndef STACK_SIZE
#define STACK_SIZE 4096
#endif
#ifndef ROUNDS
#ifdef __thumb__
#define ROUNDS 8000
#else
#define ROUNDS 4000
#endif
#endif
/* Of the style masked. */
#define MASKED_SPIN 0x10000
#define MASKED_ROUNDS 3
#define TICK 30011 /* instructions between two interrupts of the timer */
#define INTERRUPT_STACK_SIZE 2048
#define BOOT_STACK_SIZE 4096
/* For assembly: the ends of two members of struct stacks. */
#define INTERRUPT_STACK_END (stacks + INTERRUPT_STACK_SIZE)
#define BOOT_STACK_END (stacks + INTERRUPT_STACK_SIZE + THREADS * STACK_SIZE + BOOT_STACK_SIZE)

#ifndef __ASSEMBLER__
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shapes.h"

/* ---- work.c ---- */

struct worker {
	const char *name;
	void (*main)(void); /* returns when the work is done and checked */
};
#define WORKERS 8
extern const struct worker workers[WORKERS];
extern unsigned rounds; /* of each worker */

/* ---- common.c ---- */

/*
 * A copy of the stack that starts in the interrupt stack reaches the stacks of all threads. The
 * stacks of threads have no gaps.
 */
extern struct stacks {
	uint8_t interrupt[INTERRUPT_STACK_SIZE];
	uint8_t thread[THREADS][STACK_SIZE];
	uint8_t boot[BOOT_STACK_SIZE];
} stacks;

void guest_main(void);
_Noreturn void guest_end(void); /* for styles whose style_run() does not return */
void print(const char *text);
_Noreturn void fail(const char *what, const char *who);
/* To check at the end that no stack has overflowed. */
void mark_stacks(void);
void check_stacks(void);

/* ---- the architecture: cpu.c ---- */

struct frame; /* the registers of interrupted code */
enum trap { TRAP_TIMER, TRAP_CALL, TRAP_SOFT };

void cpu_init(void); /* interrupts stay off */
void put_char(char c);
_Noreturn void power_off(bool good);
void interrupts_on(void);
void interrupts_off(void);
void trap_call(void);	   /* an instruction that traps with TRAP_CALL */
void soft_interrupt(void); /* requests an interrupt TRAP_SOFT */
/* The frame of a thread that will begin in `start`. */
struct frame *first_frame(void *stack_top, void (*start)(void));

/* The stack pointer of a thread that will begin when switch_to() returns to `start`, see switch.S. */
void *first_switch(void *stack_top, void (*start)(void));
extern const uint8_t frame_start[]; /* where first_frame() begins, see trap.S */

/* ---- the style ---- */

void style_run(void); /* runs all threads to their end */
void yield(void);     /* a thread lets others run */
void schedule(void);  /* the same with interrupts off, in the styles of call.c */
/* Returns the frame to continue; only styles that switch in traps return another one. */
struct frame *style_trap(struct frame *frame, enum trap why);

/* ---- address spaces: space.c ---- */

#define USER_BASE 0xc0000000 /* where a user program is in every space */
#define USER_SIZE 0x200000
#define SPACES 3

/* Makes a space in which the user's memory is at USER_BASE; returns what space_use() takes. */
uint64_t space_make(unsigned number, uint8_t **memory);
void space_use(uint64_t space);
/* The state of a thread at USER_BASE. */
void user_frame(struct frame *frame, uint64_t sp, uint64_t argument);
/* What a system call passes in its first registers. */
uint64_t user_argument(const struct frame *frame, unsigned nr);

#endif
#endif

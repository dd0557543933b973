// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A small kernel with several cpus, tasks and address spaces, whose work is known: README.md.
 * Interfaces between its parts; arch.h has the machine's constants.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arch.h"

#define MAX_CPUS 8
#define MAX_TASKS 16
#define NOINLINE __attribute__((noinline))
#define INLINE inline __attribute__((always_inline))

/* Work comes in units of 32 * ROUNDS rounds of mix(), whatever the functions are called. */
#define ROUNDS 1000

/*
 * All work consists of this, so that equal work takes equal time. It has no debug information: it
 * counts as part of the function around it, at that function's line.
 */
static inline __attribute__((always_inline, nodebug)) uint64_t mix(uint64_t seed, uint64_t rounds)
{
	do {
		seed ^= seed << 13;
		seed ^= seed >> 7;
		seed ^= seed << 17;
	} while (--rounds);
	return seed;
}

/* What a unit does: the calls of a function, and the rounds it does itself. */
struct truth {
	const char *function;
	unsigned calls;
	unsigned rounds; /* in thousands: times ROUNDS */
};

struct work {
	const char *name;
	void (*unit)(void);		      /* in the kernel, or */
	const uint8_t *program, *program_end; /* a user program */
	struct truth truth[8];
	struct truth inlined[2]; /* is not called, although the source does */
};

/* Lies at the bottom of the task's stack. */
struct task {
	void *sp;		 /* while it is not running */
	struct task *next;	 /* on the same cpu */
	const struct work *work; /* NULL: the idle task */
	uint64_t space;
	unsigned units;
	unsigned cpu;
	bool done;
};

union stack {
	struct task task;
	uint8_t bytes[STACK_SIZE];
};

/* main.c */
void kernel_main(uintptr_t boot_info);
_Noreturn void panic(const char *why, uintptr_t where);

/* sched.c: the stacks of the idle tasks come first, one for each cpu */
extern union stack stacks[MAX_CPUS + MAX_TASKS];
extern unsigned ticks[MAX_CPUS];
struct task *current(void);
void *stack_top(struct task *task);
void idle_create(unsigned cpu);
void task_create(const struct work *work, unsigned cpu, unsigned units);
bool tasks_done(void);
void task_run(void);
_Noreturn void task_exit(void);
void tick(void);
void schedule(void);

/* work.c */
extern const struct work compress, checksum, route, cache, dice, knit;

/* heap.c */
void *kmalloc(size_t size);
void kfree(void *memory);

/* print.c: supports %s, %u and %x (always 64 bits) */
void print(const char *format, ...);

/* The machine: x86_64/, aarch64/ */
void put_char(char c);
const char *command_line(uintptr_t boot_info);
unsigned count_cpus(void);
void cpu_init(unsigned cpu);
void cpu_start(unsigned cpu, void *stack);
void cpu_idle(void);
_Noreturn void power_off(void);
void switch_to(void **from_sp, void *to_sp);
void use_space(uint64_t space, void *kernel_stack);
uint64_t kernel_space(void);
uint64_t user_space(unsigned number, uint8_t *memory);
void *kernel_context(void *stack);
void *user_context(void *stack, uint64_t argument);

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
	const char *binary;		      /* its file */
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

static inline struct task *current(void)
{
	return (struct task *)(stack_pointer() & ~(uintptr_t)(STACK_SIZE - 1));
}

/* main.c */
unsigned option(const char *line, const char *name, unsigned otherwise); /* name=123 */
void kernel_main(uintptr_t boot_info);
void idle_wait(void);
_Noreturn void panic(const char *why, uintptr_t where);

/* sched.c: the stacks of the idle tasks come first, one for each cpu */
extern union stack stacks[MAX_CPUS + MAX_TASKS];
extern unsigned ticks[MAX_CPUS];
void *stack_top(const struct task *task);
bool in_stack(uintptr_t address, size_t below);
void idle_create(unsigned cpu);
void task_create(const struct work *work, unsigned cpu, unsigned units);
unsigned tasks_unfinished(void);
void task_run(void);
_Noreturn void task_exit(void);
void tick(void);
bool schedule(void);

/* work.c */
extern const struct work compress, checksum, route, cache, dice, knit;

/* heap.c */
void *kmalloc(size_t size);
void kfree(void *memory);

/* print.c: supports %s, %u and %x (always 64 bits) */
void print(const char *format, ...);

/* What an interrupt interrupted. link: the link register; on x86, the word on top of the stack. */
struct interrupted {
	uintptr_t pc, fp, sp, link;
	bool user;
};

/* profile.c: `options` is the command line; the first cpu comes first, before the others start */
void profile_init(const char *options, unsigned cpus);
void profile_cpu(void);	 /* on each cpu: it can set its timer now */
void profile_tick(void); /* on each cpu, at each tick */
void profile_end(void);	 /* when the work is done */
/* Of a function of the allocator: it has a frame pointer, and its caller is what counts. */
#define PROFILE_ALLOC(free, memory, size)                                         \
	profile_alloc(free, memory, size, (uintptr_t)__builtin_return_address(0), \
		      __builtin_frame_address(0))
void profile_alloc(bool free, void *memory, size_t size, uintptr_t caller, const void *frame);
/* The machine calls these in interrupts, with interrupts off. */
void sample_timer_fired(
	const struct interrupted *at);	      /* it calls sample_timer() for the next one */
void pmu_fired(const struct interrupted *at); /* a counter of the PMU has overflowed */

/* check.c: takes the place of the profiler, to check what the machine does for it */
void check_init(const char *options);
void check_cpu(void);
void check_fired(const struct interrupted *at);
void check_end(void);

/*
 * The machine, for the profiler. The line is a second serial port, or one of virtio: it never
 * waits, and only one cpu may use it at a time. line_put() returns how many bytes it took;
 * line_get() returns a byte, or -1 if there is none.
 */
bool line_init(void); /* false: the machine has none */
size_t line_put(const void *bytes, size_t size);
int line_get(void);
uint64_t time_ns(void);		/* since the boot; the same on all cpus */
void sample_timer(uint64_t ns); /* this cpu: one interrupt after this time; 0: none */
/* Copies memory, or returns false: never faults. user: of the current address space, as the user may read it. */
bool read_checked(void *to, uintptr_t from, size_t size, bool user);
/* Where user code of this task was when it entered the kernel. False: it is not in a trap from user code. */
bool user_interrupted(const struct task *task, struct interrupted *at);
/* In the entry of traps: where their handler returns to. */
extern const uint8_t trap_back[];
/* Likewise, in the trap of this task that `back` returns to, and whose frame is at `fp`. False: that is no trap. */
bool trap_interrupted(uintptr_t back, uintptr_t fp, struct interrupted *at);

/* shared/one_timer.c, for machines with timer_set() */
#define TICK_NS 10000000
void timer_set(uint64_t ns); /* this cpu: one interrupt after this time */
void tick_start(unsigned cpu);
void timer_fired(const struct interrupted *at);

/* kernel.lds.S: everything that is linked */
extern const uint8_t kernel_start[], kernel_end[];

/* The machine: x86_64/, aarch64/, riscv64/, cortex_m/ */
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

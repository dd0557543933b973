// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * context: swtch() saves the registers that a function preserves, the stack pointer and the return
 * address in a struct. The scheduler has a context of its own, on the boot stack; a thread always
 * switches to the scheduler.
 */
#include "common.h"
#include "context.h"

enum state { UNUSED, RUNNABLE, RUNNING };

struct thread {
	struct context context;
	enum state state;
};

/* swtch.S */
void swtch(struct context *from, struct context *to);
void thread_start(void);
void thread_run(void); /* thread_start calls it */

static struct context scheduler_context;
static struct thread threads[THREADS];
static struct thread *current;

NOINLINE static void sched(void)
{
	swtch(&current->context, &scheduler_context);
}

NOINLINE void yield(void)
{
	interrupts_off();
	current->state = RUNNABLE;
	sched();
	interrupts_on();
}

/* Interrupts are off in a trap, and remain off until it returns. */
struct frame *style_trap(struct frame *frame, enum trap why)
{
	if (why != TRAP_TIMER)
		fail("unexpected trap", "context");
	if (current) {
		current->state = RUNNABLE;
		sched();
	}
	return frame;
}

void thread_run(void)
{
	interrupts_on();
	workers[current - threads].main();
	interrupts_off();
	current->state = UNUSED;
	sched();
	fail("a thread runs after its end", "context");
}

static bool scheduler_turn(void)
{
	bool any = false;

	for (unsigned i = 0; i < THREADS; i++) {
		if (threads[i].state != RUNNABLE)
			continue;
		any = true;
		current = &threads[i];
		current->state = RUNNING;
		swtch(&scheduler_context, &current->context);
		current = NULL;
	}
	return any;
}

NOINLINE static void scheduler(void)
{
	while (scheduler_turn())
		;
}

void style_run(void)
{
	for (unsigned i = 0; i < THREADS; i++) {
		first_context(&threads[i].context, stacks.thread[i] + STACK_SIZE, thread_start);
		threads[i].state = RUNNABLE;
	}
	scheduler();
}

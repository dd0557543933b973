// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * call: a thread calls switch_to(), which pushes the registers that a function preserves, exchanges
 * the stack pointer, and returns in another thread. Preemption calls it inside the interrupt.
 */
#include "common.h"

struct thread {
	void *sp;
	bool live;
};

/* switch.S */
void switch_to(void **from_sp, void *to_sp);
void thread_start(void);
void thread_run(void); /* thread_start calls it */

static struct thread threads[THREADS + 1]; /* the last one is the boot thread */
static struct thread *current = &threads[THREADS];

/* The boot thread runs again when all others have ended. */
static struct thread *next_live(const struct thread *from)
{
	unsigned at = (unsigned)(from - threads);

	for (unsigned i = 1; i <= THREADS + 1; i++) {
		struct thread *to = &threads[(at + i) % (THREADS + 1)];

		if (to->live && to != &threads[THREADS])
			return to;
	}
	return &threads[THREADS];
}

NOINLINE static void schedule(void)
{
	struct thread *from = current;
	struct thread *to = next_live(from);

	if (to == from)
		return;
	current = to;
	switch_to(&from->sp, to->sp);
}

NOINLINE void yield(void)
{
	interrupts_off();
	schedule();
	interrupts_on();
}

struct frame *style_trap(struct frame *frame, enum trap why)
{
	if (why != TRAP_TIMER)
		fail("unexpected trap", "call");
	schedule();
	return frame;
}

void thread_run(void)
{
	interrupts_on();
	workers[current - threads].main();
	interrupts_off();
	current->live = false;
	schedule();
	fail("a thread runs after its end", "call");
}

void style_run(void)
{
	rounds = ROUNDS * 4 / THREADS;
	for (unsigned i = 0; i < THREADS; i++) {
		threads[i].sp = first_switch(stacks.thread[i] + STACK_SIZE, thread_start);
		threads[i].live = true;
	}
	schedule();
}

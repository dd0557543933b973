// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * call, small-call, ended, nested: a thread calls switch_to(), which pushes the registers that a function
 * preserves, exchanges the stack pointer, and returns in another thread. Preemption calls it inside the
 * interrupt.
 *
 * ended: when a thread has ended, a new one with another worker begins on its stack.
 */
#include "common.h"

#ifndef LIVES
#define LIVES THREADS
#endif

struct thread {
	void *sp;
	unsigned worker;
	bool live;
};

/* switch.S */
void switch_to(void **from_sp, void *to_sp);
void thread_start(void);
void thread_run(void); /* thread_start calls it */

static struct thread threads[THREADS + 1]; /* the last one is the boot thread */
static struct thread *current = &threads[THREADS];
static unsigned lives; /* threads that have begun */

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

static void begin(struct thread *thread)
{
	thread->sp = first_switch(stacks.thread[thread - threads] + STACK_SIZE, thread_start);
	thread->worker = lives++ % WORKERS;
	thread->live = true;
}

/* The stacks of threads that have ended are free, except the one in use. */
static void reuse_stacks(void)
{
	for (unsigned i = 0; i < THREADS && lives < LIVES; i++) {
		if (!threads[i].live && &threads[i] != current)
			begin(&threads[i]);
	}
}

NOINLINE void schedule(void)
{
	struct thread *from = current;
	struct thread *to;

	reuse_stacks();
	to = next_live(from);
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

void thread_run(void)
{
	interrupts_on();
	workers[current->worker].main();
	interrupts_off();
	current->live = false;
	schedule();
	fail("a thread runs after its end", workers[current->worker].name);
}

void style_run(void)
{
	rounds = ROUNDS * 4 / LIVES;
	schedule();
	if (lives != LIVES)
		fail("not all threads lived", "");
}

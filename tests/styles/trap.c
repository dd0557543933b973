// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * trap, trap-direct, small: all switches are in traps, which save the registers on the stack of the
 * interrupted thread and load those of the next one from its stack. A thread that yields traps, too.
 */
#include "common.h"

struct thread {
	struct frame *frame;
	bool live;
};

static struct thread threads[THREADS + 1]; /* the last one is the boot thread */
static struct thread *current = &threads[THREADS];

static void thread_run(void)
{
	workers[current - threads].main();
	current->live = false;
	yield();
	fail("a thread runs after its end", "trap");
}

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

NOINLINE static struct frame *next_frame(struct frame *frame)
{
	current->frame = frame;
	current = next_live(current);
	return current->frame;
}

struct frame *style_trap(struct frame *frame, enum trap why)
{
	if (why == TRAP_SOFT)
		fail("unexpected trap", "trap");
	return next_frame(frame);
}

NOINLINE void yield(void)
{
	trap_call();
}

void style_run(void)
{
	rounds = ROUNDS * 4 / THREADS;
	for (unsigned i = 0; i < THREADS; i++) {
		threads[i].frame = first_frame(stacks.thread[i] + STACK_SIZE, thread_run);
		threads[i].live = true;
	}
	yield();
}

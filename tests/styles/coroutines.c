// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * coroutines: they switch by a setjmp() and a longjmp(), here named jump_set() and jump(). One of them
 * also jumps out of a deep recursion on its own stack. The timer interrupts them, but does not switch.
 */
#include "common.h"
#include "context.h"

struct coroutine {
	struct context context;
	bool live;
};

/* jump.S */
__attribute__((returns_twice)) int jump_set(struct context *here);
_Noreturn void jump(struct context *to, int value);
void thread_start(void);
void thread_run(void); /* thread_start calls it */

static struct coroutine coroutines[THREADS + 1]; /* the last one is the boot stack */
static struct coroutine *current = &coroutines[THREADS];
static volatile unsigned ticks;

/* The boot stack continues when all others have ended. */
static struct coroutine *next_live(const struct coroutine *from)
{
	unsigned at = (unsigned)(from - coroutines);

	for (unsigned i = 1; i <= THREADS + 1; i++) {
		struct coroutine *to = &coroutines[(at + i) % (THREADS + 1)];

		if (to->live && to != &coroutines[THREADS])
			return to;
	}
	return &coroutines[THREADS];
}

NOINLINE void yield(void)
{
	struct coroutine *me = current;

	current = next_live(me);
	if (!jump_set(&me->context))
		jump(&current->context, 1);
}

/* ---- a jump out of a recursion ---- */

#define ESCAPE 17
static struct context escape_place;

NOINLINE static uint32_t escape_leaf(uint32_t x)
{
	MIX(x, 20);
	return x;
}

NOINLINE static uint32_t escape_down(uint32_t x, unsigned levels)
{
	x = escape_leaf(x);
	if (!levels)
		jump(&escape_place, ESCAPE);
	return escape_down(x + levels, levels - 1) + x;
}

NOINLINE static unsigned escape_work(void)
{
	int value = jump_set(&escape_place);

	if (!value)
		escape_down(1, 12);
	return escape_leaf(1) ? (unsigned)value : 0;
}

NOINLINE static void escape_main(void)
{
	for (unsigned i = 0; i < rounds; i++) {
		if (escape_work() != ESCAPE)
			fail("wrong jump in", "escape");
		if (i % 4 == 0)
			yield();
	}
}

/* ---- the style ---- */

struct frame *style_trap(struct frame *frame, enum trap why)
{
	ticks += why == TRAP_TIMER;
	return frame;
}

void thread_run(void)
{
	unsigned worker = (unsigned)(current - coroutines);

	if (worker == THREADS - 1)
		escape_main();
	else
		workers[worker].main();
	current->live = false;
	yield();
	fail("a coroutine runs after its end", workers[worker].name);
}

void style_run(void)
{
	for (unsigned i = 0; i < THREADS; i++) {
		first_context(&coroutines[i].context, stacks.thread[i] + STACK_SIZE, thread_start);
		coroutines[i].live = true;
	}
	interrupts_on();
	yield();
	interrupts_off();
	if (!ticks)
		fail("no interrupts", "");
}

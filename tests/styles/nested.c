// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * nested: handlers run on the interrupt stack. The timer's handler allows interrupts and requests one,
 * which nests on the same stack. The outermost interrupt switches threads, on the interrupted stack.
 */
#include "common.h"

void call_on_interrupt_stack(void (*function)(void)); /* interrupt_stack.S */

static unsigned depth; /* interrupts that began and have not ended */
static volatile unsigned softs;

NOINLINE static uint32_t soft_leaf(uint32_t x)
{
	MIX(x, 100);
	return x;
}

NOINLINE static void soft_handler(void)
{
	softs += soft_leaf(softs) | 1;
}

NOINLINE static uint32_t timer_leaf(uint32_t x)
{
	MIX(x, 100);
	return x;
}

NOINLINE static void timer_handler(void)
{
	unsigned before = softs;
	uint32_t x;

	soft_interrupt();
	interrupts_on();
	x = timer_leaf(before);
	interrupts_off();
	if (softs == before || timer_leaf(before) != x)
		fail("the interrupt did not nest", "");
}

struct frame *style_trap(struct frame *frame, enum trap why)
{
	void (*handler)(void) = why == TRAP_TIMER ? timer_handler : soft_handler;

	if (depth++)
		handler();
	else
		call_on_interrupt_stack(handler);
	if (!--depth)
		schedule();
	return frame;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/* The timer switches threads, on the stack of the interrupted thread. */
#include "common.h"

struct frame *style_trap(struct frame *frame, enum trap why)
{
	if (why != TRAP_TIMER)
		fail("unexpected trap", "preempt");
	schedule();
	return frame;
}

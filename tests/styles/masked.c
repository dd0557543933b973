// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * masked: one thread switches interrupts off in several ways. In masked.S, it executes a known number of
 * instructions with interrupts off.
 */
#include "common.h"

/* masked.S */
void masked_begin(void); /* calls masked_end(), which switches them on */
void masked_restore(void);

struct frame *style_trap(struct frame *frame, enum trap why)
{
	(void)why;
	return frame;
}

void yield(void)
{
}

#ifndef __thumb__ /* where an instruction that traps is an error while interrupts are off */
NOINLINE static void masked_trap(void)
{
	interrupts_off();
	trap_call();
	interrupts_on();
}
#endif

#ifndef __x86_64__ /* which would wait forever */
NOINLINE static void masked_wait(void)
{
	interrupts_off();
	__asm__ volatile("wfi" ::: "memory");
	interrupts_on();
}
#endif

void style_run(void)
{
#ifdef NEVER_ON
	return;
#endif
	interrupts_on();
	for (unsigned i = 0; i < MASKED_ROUNDS; i++) {
		masked_begin();
		masked_restore();
#ifndef __thumb__
		masked_trap();
#endif
#ifndef __x86_64__
		masked_wait();
#endif
	}
	interrupts_off();
}

// SPDX-License-Identifier: MIT
/*
 * clock_arm: the time, from the generic timer of Arm. The kernel has to let user code read it, as those of most boards
 * in the SDK do.
 */
#include <sel4/config.h>

#include "domain.h"

#ifndef CONFIG_EXPORT_PCNT_USER
#error "this kernel does not let user code read the counter of the generic timer: CONFIG_EXPORT_PCNT_USER"
#endif

#define SECOND 1000000000ull

static uint64_t ticks(void)
{
	uint64_t value;

	/* Or the processor reads it early. */
	__asm__ volatile("isb\n\tmrs %0, cntpct_el0" : "=r"(value)::"memory");
	return value;
}

static uint64_t frequency(void)
{
	uint64_t value;

	__asm__("mrs %0, cntfrq_el0" : "=r"(value));
	return value;
}

uint64_t clock_now(void)
{
	uint64_t now = ticks(), per_second = frequency();

	return now / per_second * SECOND + now % per_second * SECOND / per_second;
}

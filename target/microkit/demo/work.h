/* SPDX-License-Identifier: MIT */
/*
 * work.h: work whose amount is known: each unit executes the same number of instructions. The programs count their
 * units in a region of their own at a known address, where a test can read them.
 */
#ifndef DEMO_WORK_H
#define DEMO_WORK_H

#include <stdint.h>

/* Never inlined, so that the profile shows it, and never a jump instead of a call. */
#define FUNCTION __attribute__((noinline))

uint64_t *demo_counts; /* the system description sets it */

/* A loop of two instructions, inside of the function that calls this. */
static inline __attribute__((always_inline)) void work(unsigned counter, uint64_t units)
{
	uint64_t rounds = units * 10000;

	demo_counts[counter] += units;
	__asm__ volatile("1:	subs	%0, %0, #1\n\tb.ne	1b" : "+r"(rounds)::"cc");
}

#endif

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The smallest guest that can be profiled: three quarters of its loops are in hot(), the rest is in
 * cold(). Every vCPU that comes here does the same work.
 */
#ifndef ROUNDS
#define ROUNDS 20000
#endif

void guest_main(unsigned cpu);

static volatile unsigned long sinks[64][16];

__attribute__((noinline)) static void hot(volatile unsigned long *sink)
{
	for (unsigned i = 0; i < 3000; i++)
		*sink += i;
}

__attribute__((noinline)) static void cold(volatile unsigned long *sink)
{
	for (unsigned i = 0; i < 1000; i++)
		*sink += i;
}

__attribute__((noinline)) static void work(unsigned cpu)
{
	for (unsigned i = 0; i < ROUNDS; i++) {
		hot(sinks[cpu % 64]);
		cold(sinks[cpu % 64]);
	}
}

void guest_main(unsigned cpu)
{
	work(cpu);
}

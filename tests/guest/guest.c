// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The smallest guest that can be profiled: three quarters of its loops are in hot(), the rest is in
 * cold(). Every vCPU that comes here does the same work.
 *
 * A turn of a loop is long, and each step needs the one before: how fast QEMU's code runs from turn
 * to turn, through memory, depends on where it happens to lie and may differ by half from one loop
 * to the next.
 */
#ifndef ROUNDS
#define ROUNDS 20000
#endif

#define STEP(x) (x ^= x << 13, x ^= x >> 7)
#define FOUR(x) (STEP(x), STEP(x), STEP(x), STEP(x))
#define TURN(x) (FOUR(x), FOUR(x), FOUR(x), FOUR(x))

void guest_main(unsigned cpu);

static volatile unsigned long sinks[64][16];

__attribute__((noinline)) static void hot(volatile unsigned long *sink)
{
	unsigned long x = *sink + 1;

	for (unsigned i = 0; i < 300; i++)
		TURN(x);
	*sink = x;
}

__attribute__((noinline)) static void cold(volatile unsigned long *sink)
{
	unsigned long x = *sink + 1;

	for (unsigned i = 0; i < 100; i++)
		TURN(x);
	*sink = x;
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

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A guest that tries target/timer_cortex_m.h on QEMU's mps2-an385: SysTick for some times, whose length it measures
 * with a timer of the board; and the cycle counter, which QEMU does not have. Each line is
 *
 *	timer NS TICKS_OF_25_MHZ INTERRUPTS
 */
#include "target/timer_cortex_m.h"

#define TIMER0_CONTROL KSCOPE_CORTEX_M_REGISTER(0x40000000)
#define TIMER0_VALUE KSCOPE_CORTEX_M_REGISTER(0x40000004)
#define TIMER0_RELOAD KSCOPE_CORTEX_M_REGISTER(0x40000008)
#define HERTZ 25000000

void reset(void);
void on_tick(void);
void on_fault(void);

static uint32_t stack[1024] __attribute__((aligned(8)));
static struct kscope_systick systick;
static volatile unsigned interrupts, is_over;

__attribute__((section(".vectors"), used)) static void *const vectors[16] = {
	stack + 1024, reset,	on_fault, on_fault, on_fault, on_fault, on_fault, on_fault,
	on_fault,     on_fault, on_fault, on_fault, on_fault, on_fault, on_fault, on_tick,
};

static void semihost(unsigned operation, const void *argument)
{
	register unsigned r0 __asm__("r0") = operation;
	register const void *r1 __asm__("r1") = argument;

	__asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
}

static void number(uint64_t n)
{
	char digits[22];
	unsigned i = sizeof(digits) - 1;

	digits[i] = '\0';
	do {
		uint64_t tens = kscope_quotient(n, 10);

		digits[--i] = (char)('0' + (n - 10 * tens));
		n = tens;
	} while (n);
	digits[--i] = ' ';
	semihost(4, digits + i);
}

static void finish(void)
{
	semihost(0x18, (const void *)0x20026);
	for (;;)
		;
}

void on_fault(void)
{
	semihost(4, "fault\n");
	finish();
}

void on_tick(void)
{
	interrupts++;
	is_over += kscope_systick_fired(&systick);
}

static void test(uint64_t ns)
{
	interrupts = is_over = 0;
	TIMER0_VALUE = UINT32_MAX;
	kscope_systick_set(&systick, ns);
	while (!is_over)
		__asm__ volatile("wfi");
	semihost(4, "timer");
	number(ns);
	number(UINT32_MAX - TIMER0_VALUE);
	number(interrupts);
	semihost(4, "\n");
}

void reset(void)
{
	struct kscope_cycles cycles = { .hertz = HERTZ };

	systick.hertz = HERTZ;
	TIMER0_RELOAD = UINT32_MAX;
	TIMER0_CONTROL = 1;
	test(1000);
	test(1000000);
	test(500000000);
	test(10000000000);
	test(60000000000);
	semihost(4, kscope_cycles_init(&cycles) ? "cycles\n" : "no cycles\n");
	finish();
}

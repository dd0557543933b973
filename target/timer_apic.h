/* SPDX-License-Identifier: MIT */
/*
 * timer_apic: the local APIC of x86 for port->timer, for kernels that do not use its timer otherwise; and its entry for
 * the interrupt of counters (pmu_x86.c). A structure for each cpu:
 *
 *	kscope_apic_timer_init(apic, vector);
 *	apic->hertz = kscope_apic_calibrate(apic, port_time, NULL, 10000000);
 *
 *	static void port_timer(void *data, uint64_t ns) { kscope_apic_timer_set(this_cpu_apic(), ns); }
 *	void timer_interrupt(...)
 *	{
 *		if (kscope_apic_timer_fired(this_cpu_apic()))
 *			kscope_timer(&k, cpu, &at);
 *		... end of interrupt
 *	}
 */
#ifndef KSCOPE_TIMER_APIC_H
#define KSCOPE_TIMER_APIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "divide.h"

/* Registers */
#define KSCOPE_APIC_TIMER 0x320
#define KSCOPE_APIC_COUNTERS 0x340
#define KSCOPE_APIC_TIMER_START 0x380
#define KSCOPE_APIC_TIMER_NOW 0x390
#define KSCOPE_APIC_TIMER_DIVIDE 0x3e0
#define KSCOPE_APIC_BY_1 0xb
#define KSCOPE_APIC_MASKED 0x10000
#define KSCOPE_APIC_NMI 0x400 /* instead of a vector */
#define KSCOPE_X2APIC 0x800   /* the first MSR */

struct kscope_apic {
	volatile uint32_t *base; /* where it is mapped; NULL: it is in x2APIC mode */
	uint64_t hertz;		 /* of the timer */
	uint64_t left;		 /* ticks after the next interrupt: the timer has 32 bits */
};

static inline void kscope_apic_write(const struct kscope_apic *apic, unsigned what, uint32_t value)
{
	if (apic->base)
		apic->base[what / 4] = value;
	else
		__asm__ volatile("wrmsr"
				 :
				 : "c"(KSCOPE_X2APIC + what / 16), "a"(value), "d"(0)
				 : "memory");
}

static inline uint32_t kscope_apic_read(const struct kscope_apic *apic, unsigned what)
{
	uint32_t low, high;

	if (apic->base)
		return apic->base[what / 4];
	__asm__ volatile("rdmsr" : "=a"(low), "=d"(high) : "c"(KSCOPE_X2APIC + what / 16));
	return low;
}

/* The interrupt of counters: on each cpu, and again after each interrupt, because that masks it. */
static inline void kscope_apic_counters(const struct kscope_apic *apic, uint32_t vector)
{
	kscope_apic_write(apic, KSCOPE_APIC_COUNTERS, vector);
}

static inline void kscope_apic_timer_init(const struct kscope_apic *apic, uint8_t vector)
{
	kscope_apic_write(apic, KSCOPE_APIC_TIMER_START, 0);
	kscope_apic_write(apic, KSCOPE_APIC_TIMER_DIVIDE, KSCOPE_APIC_BY_1);
	kscope_apic_write(apic, KSCOPE_APIC_TIMER, vector); /* once */
}

/* Counts for at least `ns` of a clock that is right. Returns ticks per second. */
static inline uint64_t kscope_apic_calibrate(const struct kscope_apic *apic,
					     uint64_t (*time)(void *data), void *data, uint64_t ns)
{
	uint32_t entry = kscope_apic_read(apic, KSCOPE_APIC_TIMER), ticks;
	uint64_t begin, took;

	kscope_apic_write(apic, KSCOPE_APIC_TIMER, entry | KSCOPE_APIC_MASKED);
	begin = time(data);
	kscope_apic_write(apic, KSCOPE_APIC_TIMER_START, UINT32_MAX);
	do {
		took = time(data) - begin;
	} while (took < ns);
	ticks = UINT32_MAX - kscope_apic_read(apic, KSCOPE_APIC_TIMER_NOW);
	kscope_apic_write(apic, KSCOPE_APIC_TIMER_START, 0);
	kscope_apic_write(apic, KSCOPE_APIC_TIMER, entry);
	return kscope_scale(ticks, 1000000000, took);
}

static inline void kscope_apic_timer_go(struct kscope_apic *apic, uint64_t ticks)
{
	uint32_t now = ticks > UINT32_MAX ? UINT32_MAX : (uint32_t)ticks;

	apic->left = ticks - now;
	kscope_apic_write(apic, KSCOPE_APIC_TIMER_START, now ? now : 1);
}

/* One interrupt after this time; 0: none. */
static inline void kscope_apic_timer_set(struct kscope_apic *apic, uint64_t ns)
{
	apic->left = 0;
	if (ns)
		kscope_apic_timer_go(apic, kscope_scale(ns, apic->hertz, 1000000000));
	else
		kscope_apic_write(apic, KSCOPE_APIC_TIMER_START, 0);
}

/* In the handler: whether the time is over. */
static inline bool kscope_apic_timer_fired(struct kscope_apic *apic)
{
	if (!apic->left)
		return true;
	kscope_apic_timer_go(apic, apic->left);
	return false;
}

#endif

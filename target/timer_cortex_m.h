/* SPDX-License-Identifier: MIT */
/*
 * timer_cortex_m: SysTick for port->timer and the cycle counter for port->time, for kernels that do not use them
 * otherwise.
 *
 *	static struct kscope_systick systick = { .hertz = 168000000 };
 *	static struct kscope_cycles cycles = { .hertz = 168000000 };
 *
 *	static void port_timer(void *data, uint64_t ns) { kscope_systick_set(&systick, ns); }
 *	static uint64_t port_time(void *data) { return kscope_cycles_ns(&cycles); }
 *	void systick_handler(...)
 *	{
 *		if (kscope_systick_fired(&systick))
 *			kscope_timer(&k, 0, &at);
 *	}
 */
#ifndef KSCOPE_TIMER_CORTEX_M_H
#define KSCOPE_TIMER_CORTEX_M_H

#include <stdbool.h>
#include <stdint.h>

#include "divide.h"

/* Tests have their own. */
#ifndef KSCOPE_CORTEX_M_REGISTER
#define KSCOPE_CORTEX_M_REGISTER(address) (*(volatile uint32_t *)(address))

static inline uint32_t kscope_mask_interrupts(void)
{
	uint32_t before;

	__asm__ volatile("mrs %0, primask\n\tcpsid i" : "=r"(before) : : "memory");
	return before;
}

static inline void kscope_unmask_interrupts(uint32_t before)
{
	__asm__ volatile("msr primask, %0" : : "r"(before) : "memory");
}
#endif

/* ---- SysTick: 24 bits, so a long time takes several interrupts ---- */

#define KSCOPE_SYSTICK_CONTROL KSCOPE_CORTEX_M_REGISTER(0xe000e010)
#define KSCOPE_SYSTICK_RELOAD KSCOPE_CORTEX_M_REGISTER(0xe000e014)
#define KSCOPE_SYSTICK_VALUE KSCOPE_CORTEX_M_REGISTER(0xe000e018)
#define KSCOPE_SYSTICK_MOST 0x1000000u
#define KSCOPE_SYSTICK_ON 7 /* the processor's clock, interrupt, enable */

struct kscope_systick {
	uint32_t hertz; /* of the processor */
	uint64_t left;	/* ticks after the next interrupt */
};

/* It counts from one less than the ticks to 0. One tick is too few: 0 switches it off. */
static inline void kscope_systick_go(struct kscope_systick *timer, uint64_t ticks)
{
	uint32_t now = ticks > KSCOPE_SYSTICK_MOST ? KSCOPE_SYSTICK_MOST : (uint32_t)ticks;

	timer->left = ticks - now;
	KSCOPE_SYSTICK_RELOAD = now > 2 ? now - 1 : 1;
	KSCOPE_SYSTICK_VALUE = 0;
	KSCOPE_SYSTICK_CONTROL = KSCOPE_SYSTICK_ON;
}

/* One interrupt after this time; 0: none. */
static inline void kscope_systick_set(struct kscope_systick *timer, uint64_t ns)
{
	KSCOPE_SYSTICK_CONTROL = 0;
	timer->left = 0;
	if (ns)
		kscope_systick_go(timer, kscope_scale(ns, timer->hertz, 1000000000));
}

/* In the handler: whether the time is over. */
static inline bool kscope_systick_fired(struct kscope_systick *timer)
{
	KSCOPE_SYSTICK_CONTROL = 0;
	if (!timer->left)
		return true;
	kscope_systick_go(timer, timer->left);
	return false;
}

/* ---- the cycle counter of the DWT unit: not in Cortex-M0, and not in QEMU ---- */

#define KSCOPE_DEBUG_CONTROL KSCOPE_CORTEX_M_REGISTER(0xe000edfc)
#define KSCOPE_DEBUG_TRACE (1u << 24)
#define KSCOPE_DWT_CONTROL KSCOPE_CORTEX_M_REGISTER(0xe0001000)
#define KSCOPE_DWT_CYCLES KSCOPE_CORTEX_M_REGISTER(0xe0001004)
#define KSCOPE_DWT_LOCK KSCOPE_CORTEX_M_REGISTER(0xe0001fb0)
#define KSCOPE_DWT_KEY 0xc5acce55
#define KSCOPE_DWT_HAS_NONE (1u << 25)

/* 64 bits of a counter that has 32: somebody must ask at least every 2^32 cycles, for example the kernel's tick. */
struct kscope_cycles {
	uint32_t hertz;
	uint32_t last;
	uint64_t high;
};

/* False: there is none. */
static inline bool kscope_cycles_init(struct kscope_cycles *cycles)
{
	KSCOPE_DEBUG_CONTROL |= KSCOPE_DEBUG_TRACE;
	KSCOPE_DWT_LOCK = KSCOPE_DWT_KEY; /* Cortex-M7 */
	if (KSCOPE_DWT_CONTROL & KSCOPE_DWT_HAS_NONE)
		return false;
	KSCOPE_DWT_CONTROL |= 1;
	cycles->last = KSCOPE_DWT_CYCLES;
	for (unsigned i = 0; i < 100; i++) {
		if (KSCOPE_DWT_CYCLES != cycles->last)
			return true;
	}
	return false;
}

/* Not for handlers of faults and NMIs, which no mask keeps from coming in between. */
static inline uint64_t kscope_cycles_now(struct kscope_cycles *cycles)
{
	uint32_t before = kscope_mask_interrupts(), now = KSCOPE_DWT_CYCLES;
	uint64_t result;

	if (now < cycles->last)
		cycles->high += (uint64_t)1 << 32;
	cycles->last = now;
	result = cycles->high | now;
	kscope_unmask_interrupts(before);
	return result;
}

static inline uint64_t kscope_cycles_ns(struct kscope_cycles *cycles)
{
	return kscope_scale(kscope_cycles_now(cycles), 1000000000, cycles->hertz);
}

#endif

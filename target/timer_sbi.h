/* SPDX-License-Identifier: MIT */
/*
 * timer_sbi: the timer of RISC-V's firmware for port->timer, for kernels in S-mode that do not use it otherwise, and
 * the time. The kernel enables the interrupt, bit 5 of sie. The handler calls kscope_timer(), which sets the timer again;
 * if it does not, it calls kscope_sbi_timer(0, ...): that ends the interrupt.
 *
 *	static void port_timer(void *data, uint64_t ns) { kscope_sbi_timer(ns, timebase_frequency); }
 *	static uint64_t port_time(void *data) { return kscope_sbi_ns(timebase_frequency); }
 */
#ifndef KSCOPE_TIMER_SBI_H
#define KSCOPE_TIMER_SBI_H

#include <stdint.h>

#include "divide.h"

#define KSCOPE_SBI_TIME 0x54494d45

static inline uint64_t kscope_sbi_now(void)
{
#if defined(__riscv_xlen) && __riscv_xlen == 32
	uint32_t high, low, again;

	do {
		__asm__ volatile("rdtimeh %0\n\trdtime %1\n\trdtimeh %2"
				 : "=&r"(high), "=&r"(low), "=&r"(again));
	} while (high != again);
	return (uint64_t)high << 32 | low;
#else
	uint64_t time;

	__asm__ volatile("rdtime %0" : "=r"(time));
	return time;
#endif
}

static inline uint64_t kscope_sbi_ns(uint64_t hertz)
{
	return kscope_scale(kscope_sbi_now(), 1000000000, hertz);
}

/* One interrupt after this time; 0: none. hertz: timebase-frequency of the device tree. */
static inline void kscope_sbi_timer(uint64_t ns, uint64_t hertz)
{
	uint64_t due = ns ? kscope_sbi_now() + kscope_scale(ns, hertz, 1000000000) : UINT64_MAX;
	register unsigned long a0 __asm__("a0") = (unsigned long)due;
#if defined(__riscv_xlen) && __riscv_xlen == 32
	register unsigned long a1 __asm__("a1") = (unsigned long)(due >> 32);
#else
	register unsigned long a1 __asm__("a1") = 0;
#endif
	register unsigned long a6 __asm__("a6") = 0;
	register unsigned long a7 __asm__("a7") = KSCOPE_SBI_TIME;

	__asm__ volatile("ecall" : "+r"(a0), "+r"(a1) : "r"(a6), "r"(a7) : "memory");
}

#endif

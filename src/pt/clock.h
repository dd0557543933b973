/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * clock: the time of a trace, in ticks of the TSC. TSC packets have it; in between, MTC packets count the
 * ticks of a slower clock, and CYC packets the cycles of the core. It never runs backwards.
 */
#ifndef KSCOPE_PT_CLOCK_H
#define KSCOPE_PT_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/wide.h"

struct ipt_clock_info {
	uint32_t
		tsc_per_ctc[2]; /* numerator and denominator; 0: unknown, MTC packets are ignored */
	uint8_t mtc_shift;	/* an MTC packet comes every 2^n ticks of the slower clock */
	uint32_t base_ratio;	/* of the TSC and the bus clock; 0: unknown */
};

struct ipt_clock {
	const struct ipt_clock_info *info;
	uint64_t now;
	uint64_t base;	  /* the last time that is exact */
	uint64_t cycles;  /* since then */
	double per_cycle; /* ticks of the TSC in a cycle; 0: unknown */
	/* Of the slower clock: the time at which its lowest bits were 0, and its count since then. */
	uint64_t ctc_base, ctc;
	uint8_t mtc; /* the last MTC packet */
	bool has_ctc;
	bool mtc_of_tma; /* `mtc` is from a TMA packet, which has only 16 bits of the count */
};

struct ipt_ns { /* how perf makes ns of ticks of the TSC */
	uint64_t shift, mult, zero;
	bool known; /* else, the ticks are taken as ns */
};

static inline uint64_t ipt_ns_of(const struct ipt_ns *ns, uint64_t tsc)
{
	uint64_t rest;

	if (!ns->known)
		return tsc;
	rest = tsc & (((uint64_t)1 << ns->shift) - 1);
	return ns->zero + (tsc >> ns->shift) * ns->mult +
	       wide_right(wide_product(rest, ns->mult), (unsigned)ns->shift);
}

/* 0: NO_TIME, or before all. */
uint64_t ipt_ns_to_tsc(const struct ipt_ns *ns, uint64_t time);

#define IPT_MAX_TICKS 0x1p56 /* since an exact time: a TSC packet has 56 bits */

void ipt_clock_tsc(struct ipt_clock *clock, uint64_t tsc);
void ipt_clock_tma(struct ipt_clock *clock, uint16_t ctc, uint16_t fast);
void ipt_clock_mtc(struct ipt_clock *clock, uint8_t mtc);
void ipt_clock_cbr(struct ipt_clock *clock, uint8_t ratio);

static inline void ipt_clock_cyc(struct ipt_clock *clock, uint64_t cycles)
{
	double ticks;

	clock->cycles += cycles;
	ticks = (double)clock->cycles * clock->per_cycle;
	if (ticks < IPT_MAX_TICKS && clock->base + (uint64_t)ticks > clock->now)
		clock->now = clock->base + (uint64_t)ticks;
}

#endif

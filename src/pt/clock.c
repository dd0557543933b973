// SPDX-License-Identifier: GPL-2.0-or-later
#include "pt/clock.h"

#include "model/event.h"

#define CTC_BITS 16 /* of the slower clock, in a TMA packet */
#define MTC_BITS 8  /* likewise, in an MTC packet */

static uint64_t ctc_ticks(const struct ipt_clock_info *info, uint64_t ctc)
{
	uint64_t n = info->tsc_per_ctc[0], d = info->tsc_per_ctc[1];

	return ctc / d * n + ctc % d * n / d;
}

static void set_base(struct ipt_clock *clock, uint64_t time)
{
	clock->base = time;
	clock->cycles = 0;
	if (time > clock->now)
		clock->now = time;
}

void ipt_clock_tsc(struct ipt_clock *clock, uint64_t tsc)
{
	set_base(clock, tsc);
	clock->has_ctc = false;
}

/* Comes right after a TSC packet: `fast` is the number of ticks since the slower clock's. */
void ipt_clock_tma(struct ipt_clock *clock, uint16_t ctc, uint16_t fast)
{
	const struct ipt_clock_info *info = clock->info;
	uint64_t rest;

	if (!info->tsc_per_ctc[0] || !info->tsc_per_ctc[1])
		return;
	rest = ctc & (((uint64_t)1 << info->mtc_shift) - 1);
	clock->ctc_base = clock->base - fast - ctc_ticks(info, rest);
	clock->ctc = 0;
	clock->mtc = (uint8_t)(ctc >> info->mtc_shift);
	clock->has_ctc = true;
	clock->mtc_of_tma = true;
}

/* With the upper bits that a TMA packet does not have, such that `next` is the first one after it. */
static uint8_t complete_mtc(uint8_t mtc, uint8_t next, uint8_t missing)
{
	mtc |= next & ~(missing - 1);
	return mtc < next ? mtc : (uint8_t)(mtc - missing);
}

void ipt_clock_mtc(struct ipt_clock *clock, uint8_t mtc)
{
	unsigned shift = clock->info->mtc_shift;

	if (!clock->has_ctc)
		return;
	if (clock->mtc_of_tma && shift > CTC_BITS - MTC_BITS)
		clock->mtc = complete_mtc(clock->mtc, mtc, (uint8_t)(1u << (CTC_BITS - shift)));
	clock->mtc_of_tma = false;
	clock->ctc += (uint64_t)(uint8_t)(mtc - clock->mtc) << shift;
	clock->mtc = mtc;
	set_base(clock, clock->ctc_base + ctc_ticks(clock->info, clock->ctc));
}

void ipt_clock_cbr(struct ipt_clock *clock, uint8_t ratio)
{
	/* Cycles before the change had another length. */
	set_base(clock, clock->now);
	clock->per_cycle = ratio ? (double)clock->info->base_ratio / ratio : 0;
}

uint64_t ipt_ns_to_tsc(const struct ipt_ns *ns, uint64_t time)
{
	if (!ns->known || time == NO_TIME || time < ns->zero)
		return 0;
	time -= ns->zero;
	return wide_quotient(wide_left(time, (unsigned)ns->shift), ns->mult);
}

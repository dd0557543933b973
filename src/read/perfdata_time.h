/* SPDX-License-Identifier: GPL-2.0-or-later */
/* perfdata_time: ticks of the TSC, as Intel PT has them, and perf's time in ns. */
#ifndef KSCOPE_READ_PERFDATA_TIME_H
#define KSCOPE_READ_PERFDATA_TIME_H

#include <stdbool.h>
#include <stdint.h>

#include "model/event.h"

struct pt_time {
	uint64_t shift, mult, zero;
	bool known;
};

static inline uint64_t ns_of(const struct pt_time *time, uint64_t tsc)
{
	uint64_t rest;

	if (!time->known)
		return tsc;
	rest = tsc & (((uint64_t)1 << time->shift) - 1);
	return time->zero + (tsc >> time->shift) * time->mult +
	       (uint64_t)((unsigned __int128)rest * time->mult >> time->shift);
}

static inline uint64_t tsc_of(const struct pt_time *time, uint64_t ns)
{
	if (!time->known || ns == NO_TIME || ns < time->zero)
		return 0;
	ns -= time->zero;
	return (uint64_t)(((unsigned __int128)ns << time->shift) / time->mult);
}

#endif

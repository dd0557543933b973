// SPDX-License-Identifier: MIT
/*
 * alarm_sddf: alarms from the timer driver of sDDF, which other clients use, too. The driver needs a higher priority than
 * the profiler, because the profiler calls it.
 */
#include <microkit.h>

#include "domain.h"

/* The protocol of sDDF's timers: a client has one timeout, in ns from now, and is notified. */
#define SET_TIMEOUT 1
#define NEVER (1ull << 62)

void alarm_set(unsigned channel, uint64_t ns)
{
	microkit_mr_set(0, ns ? ns : NEVER);
	microkit_ppcall(channel, microkit_msginfo_new(SET_TIMEOUT, 1));
}

void alarm_acknowledge(unsigned channel)
{
	(void)channel;
}

// SPDX-License-Identifier: MIT
/*
 * alarm_arm: alarms from the physical timer of Arm's generic timer, whose interrupt is number 30. The kernel has to let
 * user code use it, as those of most boards in the SDK do, and no other protection domain may use it: for systems with
 * the timer driver of sDDF there is alarm_sddf.
 */
#include <microkit.h>

#include "domain.h"

#ifndef CONFIG_EXPORT_PTMR_USER
#error "this kernel does not let user code use the physical timer: CONFIG_EXPORT_PTMR_USER"
#endif

#define SECOND 1000000000ull
#define ENABLE 1

void alarm_set(unsigned channel, uint64_t ns)
{
	uint64_t now, per_second, wait;

	(void)channel;
	__asm__ volatile("isb\n\tmrs %0, cntpct_el0" : "=r"(now)::"memory");
	__asm__("mrs %0, cntfrq_el0" : "=r"(per_second));
	wait = ns / SECOND * per_second + ns % SECOND * per_second / SECOND;
	__asm__ volatile("msr cntp_cval_el0, %0\n\tmsr cntp_ctl_el0, %1\n\tisb" ::"r"(
				 ns ? now + wait : UINT64_MAX),
			 "r"(ns ? (uint64_t)ENABLE : 0));
}

void alarm_acknowledge(unsigned channel)
{
	microkit_irq_ack(channel);
}

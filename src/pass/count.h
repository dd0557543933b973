/* SPDX-License-Identifier: GPL-2.0-or-later */
/* count: how many samples reach the writers, and what they add up to. */
#ifndef KSCOPE_PASS_COUNT_H
#define KSCOPE_PASS_COUNT_H

#include <stdbool.h>
#include <stdint.h>

#define COUNT_CPUS 256

struct sample_count {
	uint64_t samples, weight;
	uint64_t by_cpu[COUNT_CPUS]; /* samples; not of cpus with higher numbers */
	bool overflowed;	     /* 64 bits cannot hold the sums; the rest counts for nothing */
};

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* count: counts the samples that reach the writers, and sums up their weights. */
#ifndef KSCOPE_PASS_COUNT_H
#define KSCOPE_PASS_COUNT_H

#include <stdbool.h>
#include <stdint.h>

#define COUNT_CPUS 256

struct sample_count {
	uint64_t samples, weight;
	uint64_t by_cpu[COUNT_CPUS]; /* samples; cpus with higher numbers are omitted */
	bool overflowed;	     /* a sum exceeded 64 bits; the rest is not counted */
};

#endif

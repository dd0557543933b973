/* SPDX-License-Identifier: GPL-2.0-or-later */
/* masked: the longest stretches of time in which a cpu had its interrupts off, from slices. */
#ifndef KSCOPE_PASS_MASKED_H
#define KSCOPE_PASS_MASKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/histogram.h"
#include "model/event.h"

struct masked_stretch {
	uint64_t begin, time; /* in ns */
	uint64_t instructions;
	uint32_t cpu, pid, tid;	    /* the task that switched interrupts off */
	uint32_t from, to;	    /* frames: where they went off, and on again; 0: unknown */
	uint32_t stack;		    /* where they went off */
	bool began_before, goes_on; /* it is only a part */
};

struct masked {
	size_t limit;	   /* how many to keep; 0: all */
	bool instructions; /* the longest are those with the most instructions, not the most time */
	struct masked_stretch *all;
	size_t nr, cap;
	uint64_t count, time; /* of all stretches, not only the longest */
	struct histogram times;
	bool *cut; /* by cpu: whether the open one began before */
	size_t nr_cpus;
};

void masked_release(struct masked *masked);
/* Adds an EVENT_SLICE; ignores those that are not SLICE_MASKED. */
void masked_add(struct masked *masked, const struct event *ev);
/* Sorts the stretches, the longest first, and drops those beyond the limit. */
void masked_sort(struct masked *masked);

#endif

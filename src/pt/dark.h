/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * dark: the times at which a cpu had no trace, and whether a thread ran there then. Its calls are not known after
 * that, wherever it comes back. Times are ticks of the TSC.
 */
#ifndef KSCOPE_PT_DARK_H
#define KSCOPE_PT_DARK_H

#include "pt/history.h"

struct ipt_dark_queue {
	struct ipt_dark_time {
		uint64_t after, until;
	} * times; /* in order; the last one may still go on */
	size_t nr, cap;
	bool is_dark;
};

struct ipt_dark { /* zeroed: empty */
	struct ipt_dark_queue *queues;
	size_t nr_queues;
	bool any;	       /* there is such a time */
	struct hash by_thread; /* the number of a thread + 1 */
	struct ipt_dark_run {
		uint32_t thread, queue;
		uint64_t time;
	} * runs;	     /* by thread and time */
	size_t nr_runs, *at; /* of each thread: its next run */
	size_t nr_threads;
};

/* The history must be complete, and stay. With `at_first`, all cpus have no trace until ipt_dark_end(). */
void ipt_dark_start(struct ipt_dark *dark, const struct ipt_history *h, bool at_first);
void ipt_dark_release(struct ipt_dark *dark);
/* A queue's trace stops; it resumes. */
void ipt_dark_begin(struct ipt_dark *dark, uint32_t queue, uint64_t time);
void ipt_dark_end(struct ipt_dark *dark, uint32_t queue, uint64_t time);
/* Whether a thread ran on a cpu without a trace, up to `until`, since the last call for it. */
bool ipt_dark_ran(struct ipt_dark *dark, uint32_t pid, uint32_t tid, uint64_t until);

#endif

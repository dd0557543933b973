/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * calls: builds call stacks from traced branches, and counts the instructions executed in each.
 *
 * Every task has its own stack of calls. The trace does not say which task runs: if the stack
 * pointer changes to where another task left off, that task continues; a return on a stack that no
 * task used before starts a new task. Instructions are summed up for each path (the return
 * addresses) and leaf, so memory depends on the code, not on the length of the trace. If the tables
 * still get too large, calls_full() returns true, and the caller takes the sums.
 */
#ifndef KSCOPE_PASS_CALLS_H
#define KSCOPE_PASS_CALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"
#include "model/event.h"

struct calls_stats {
	uint64_t branches, instructions;
	uint64_t rooted;	 /* instructions in stacks that begin where their task began */
	uint64_t returns, found; /* found: those with a matching call */
	uint64_t jumps;		 /* returns that are jumps: retpolines */
	uint64_t beyond;	 /* returns to callers from before the trace */
	uint64_t traps, leaves, leaves_found;
	uint64_t switches, tasks;
	uint64_t checks; /* check points */
};

struct calls {
	/*
	 * Optional: returns the start of the function at an address, 0 if unknown. With it,
	 * instructions are counted by function instead of by jump target.
	 */
	uint64_t (*function)(void *data, uint64_t address, uint64_t context, uint32_t pid);
	/*
	 * Optional: returns the handle of the frame at an address, by the current maps. The sums
	 * store it, so that code keeps its name after it is unmapped.
	 */
	uint32_t (*frame)(void *data, uint64_t address, uint64_t context, uint32_t pid,
			  bool is_return);
	void *data;
	uint32_t version; /* of the maps; the caller updates it */

	struct calls_path *paths;
	size_t nr_paths, cap_paths;
	struct calls_counter *counters;
	size_t nr_counters, cap_counters;
	struct hash path_by_key, counter_by_key;
	struct calls_memo *memo;
	struct calls_cpu *cpus;
	size_t nr_cpus;
	struct calls_task **left; /* tasks that are not running */
	size_t nr_left, cap_left;
	struct calls_fork *forks; /* by return address */
	struct calls_stats stats, unselected;
	struct calls_stats *at; /* the one that the current event counts for */
	uint64_t *chain;	/* of the current sample, leaf first */
	uint32_t *frames;	/* handles of the chain's frames, without markers */
	size_t cap_chain, cap_frames, nr_frames;
	uint64_t nr_switches;
	size_t emitted; /* counters that were returned as samples */
};

void calls_init(struct calls *calls);
void calls_release(struct calls *calls); /* also accepts a zeroed struct */
/*
 * Adds an EVENT_BRANCH. Those of one cpu must be in order, those of several in order of time. The
 * instructions of an event that is OUTSIDE_WHEN are not counted.
 */
void calls_add(struct calls *calls, const struct event *ev);
/* An EVENT_CHECK, in order with the branches of its cpu, unwound. */
void calls_check(struct calls *calls, const struct event *ev);
/* The tables are too large: call calls_sample() until it returns false. */
bool calls_full(const struct calls *calls);
/* Fills in the next sum as a sample. Returns false after the last one, and resets the sums. */
bool calls_sample(struct calls *calls, struct event *ev);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * calls: call stacks from traced branches, and how many instructions were spent in each of them.
 *
 * Every task has its own stack of calls. Nobody says which task runs: a switch is a change of the
 * stack pointer to where another task left it, and a new task is a return on a stack that nobody was
 * on before. Instructions are summed up for each pair of a path (the return addresses) and a leaf,
 * so memory follows the code; if even that is too much, calls_full() asks to take the sums away.
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
	uint64_t returns, found; /* that found their call */
	uint64_t jumps;		 /* returns that are jumps: retpolines */
	uint64_t beyond;	 /* returns to callers from before the trace */
	uint64_t traps, leaves, leaves_found;
	uint64_t switches, tasks;
};

struct calls {
	/*
	 * Optional: the first address of the function that an address is in, 0 if that is not known.
	 * Instructions are then counted by function and not by where a jump led to.
	 */
	uint64_t (*function)(void *data, uint64_t address, uint64_t context, uint32_t pid);
	/*
	 * Optional: the handle of the frame at an address, by what is mapped there now. Sums keep
	 * it, so that code which is unmapped later keeps its name.
	 */
	uint32_t (*frame)(void *data, uint64_t address, uint64_t context, uint32_t pid,
			  bool is_return);
	void *data;
	uint32_t version; /* of what is mapped; the caller changes it when that changes */

	struct calls_path *paths;
	size_t nr_paths, cap_paths;
	struct calls_counter *counters;
	size_t nr_counters, cap_counters;
	struct hash path_by_key, counter_by_key;
	struct calls_memo *memo;
	struct calls_cpu *cpus;
	size_t nr_cpus;
	struct calls_task **left; /* tasks that do not run */
	size_t nr_left, cap_left;
	struct calls_fork *forks; /* by where they return to */
	struct calls_stats stats, unselected;
	struct calls_stats *at; /* the one that the event at hand counts for */
	uint64_t *chain;	/* of the sample at hand, leaf first */
	uint32_t *frames;	/* their handles, without the markers */
	size_t cap_chain, cap_frames, nr_frames;
	uint64_t nr_switches;
	size_t emitted; /* counters that were handed out */
};

void calls_init(struct calls *calls);
void calls_release(struct calls *calls); /* harmless on a zeroed one */
/*
 * Takes in an EVENT_BRANCH. Those of one cpu come in order, those of several by time. The
 * instructions of one that is OUTSIDE_WHEN do not count.
 */
void calls_add(struct calls *calls, const struct event *ev);
/* Too much is kept: call calls_sample() until it says false. */
bool calls_full(const struct calls *calls);
/* Fills in the sums as samples, one after the other. False after the last; summing then starts anew. */
bool calls_sample(struct calls *calls, struct event *ev);

#endif

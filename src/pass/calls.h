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

#define CALLS_SOURCE (UINT32_MAX - 1) /* the source's id */

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
	void *data;

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
	struct calls_stats stats;
	uint64_t *chain;
	size_t cap_chain;
	size_t emitted; /* counters that were handed out */
	bool told;
};

void calls_init(struct calls *calls);
void calls_release(struct calls *calls); /* harmless on a zeroed one */
/* The event that stands before the first sample. */
void calls_source(struct calls *calls, struct event *ev);
/* Takes in an EVENT_BRANCH. Those of one cpu come in order, those of several by time. */
void calls_add(struct calls *calls, const struct event *ev);
/* Too much is kept: call calls_sample() until it says false. */
bool calls_full(const struct calls *calls);
/* The sums, one after the other; after the last it is false, and summing begins anew. */
bool calls_sample(struct calls *calls, struct event *ev);

#endif

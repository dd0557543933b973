/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * select: the events that the user wants. Two stages do it: `select` goes by what an event itself
 * says, before anything else happens to it; `pick` goes by names, when they are known. Events that
 * are neither samples, allocations, calls nor branches always pass.
 */
#ifndef KSCOPE_PASS_SELECT_H
#define KSCOPE_PASS_SELECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "model/event.h"

struct id_range {
	uint32_t first, last;
};

struct id_set {
	struct id_range *ranges;
	size_t nr, cap;
};

enum level { LEVEL_ALL, LEVEL_USER, LEVEL_KERNEL };

struct selection {
	bool timed;
	uint64_t from, until; /* ns; until is excluded, unless it is UINT64_MAX: no end */
	enum level level;     /* where the pc was */
	struct id_set cpus, pids, tids;
	const char **comms, **sources; /* any of them; borrowed strings */
	size_t nr_comms, nr_sources, cap_comms, cap_sources;
};

void selection_release(struct selection *sel);
/* "A,B" in seconds, either may be empty. */
int select_time(struct selection *sel, const char *arg, struct err *err);
/* "0,2-4" */
int select_ids(struct id_set *set, const char *what, const char *arg, struct err *err);
void select_comm(struct selection *sel, const char *comm);
void select_source(struct selection *sel, const char *source);

/* Clips a span of time to what is selected; false: nothing is left of it. */
bool select_clip(const struct selection *sel, uint64_t *from, uint64_t *until);

#endif

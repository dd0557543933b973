/* SPDX-License-Identifier: GPL-2.0-or-later */
/* select: which samples the user wants. Everything that is not a sample always passes. */
#ifndef KSCOPE_PASS_SELECT_H
#define KSCOPE_PASS_SELECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "model/event.h"

struct world;

struct id_range {
	uint32_t first, last;
};

struct id_set {
	struct id_range *ranges;
	size_t nr, cap;
};

struct selection {
	bool timed;
	uint64_t from, until; /* ns, both included, as in perf */
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

/* After world_apply(): sources are handles, names are known. */
bool select_keeps(const struct selection *sel, struct world *world, const struct event *ev);

#endif

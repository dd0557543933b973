/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * select: selects events, in two stages. `select` comes first and tests the fields of an event;
 * `pick` tests names, when they are known, and the samples and slices that stages have made. Events
 * that are neither samples, allocations, calls, branches, notes nor slices always pass.
 */
#ifndef KSCOPE_PASS_SELECT_H
#define KSCOPE_PASS_SELECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/option.h"
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
	bool relative;	      /* from and until are relative to the first event */
	uint64_t from, until; /* ns; until is excluded, unless it is UINT64_MAX: no end */
	enum level level;     /* where the pc was */
	struct id_set cpus, pids, tids;
	struct option_list comms, sources; /* any of them */
};

extern const struct option_table select_table, pick_table; /* into struct selection */
extern const char *const select_levels[];		   /* by enum level */

void selection_release(struct selection *sel);
/* Setter for options: parses "0,2-4" into a struct id_set. */
int select_ids(const struct option_row *row, void *field, const char *arg, struct err *err);

struct world;
/* Whether a task, and its name at this moment, is selected; and a source. */
bool select_task(const struct selection *sel, const struct world *world, uint32_t pid,
		 uint32_t tid);
bool select_source(const struct selection *sel, struct world *world, uint32_t source);

/* Before an event is selected: the first one that has a time makes a relative selection absolute. */
void select_begin(struct selection *sel, const struct event *ev);
/* Clips a span of time to the selection; false: none of it is selected. */
bool select_clip(const struct selection *sel, uint64_t *from, uint64_t *until);

#endif

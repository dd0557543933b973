/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * slices: the calls of a control flow trace on a time axis, as EVENT_SLICE. After each branch, it compares
 * the stack of the task that runs with what it was before, and emits the difference.
 *
 * A slice goes on while another task runs. Nothing is emitted outside the selected time and cpus: there,
 * slices are cut.
 */
#ifndef KSCOPE_PASS_SLICES_H
#define KSCOPE_PASS_SLICES_H

#include "model/event.h"
#include "pass/track.h"

struct slices {
	/* The function at a mark of the tracker: its handle and its start. */
	uint32_t (*frame)(void *data, uint32_t mark, uint64_t *start);
	/* A task is about to have its first slice, below this function. Returns 0, or -1 to stop. */
	int (*announce)(void *data, const struct event *ev, uint32_t frame);
	int (*emit)(void *data, struct event *ev); /* likewise */
	void *data;
	uint64_t from, until; /* the selected time; `until` is excluded */

	struct slices_task *tasks;
	struct slices_cpu *cpus;
	size_t nr_cpus;
	uint64_t now;	   /* the time of the current event */
	bool begun, ended; /* the selected time */
	bool failed;
};

/* Call one before, and one after track_add() of the same event. Both return -1 if emit() did. */
int slices_before(struct slices *slices, const struct event *ev);
int slices_after(struct slices *slices, struct track *track, const struct event *ev);
/* A task has ended; `own` is from its view. */
void slices_end_task(struct slices *slices, void *own);
/* The trace is over: ends all slices. */
int slices_finish(struct slices *slices);
void slices_release(struct slices *slices);

#endif

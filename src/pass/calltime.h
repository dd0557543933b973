/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * calltime: entries and exits of functions as samples: what passed between two of them was spent
 * in the stack of that moment. For writers of samples; timelines take the calls themselves.
 *
 * Calls and returns need not match: recordings begin and end in the middle and leave out what is
 * too deep. An exit leaves everything above its function; one that was never entered says nothing.
 */
#ifndef KSCOPE_PASS_CALLTIME_H
#define KSCOPE_PASS_CALLTIME_H

#include "base/hash.h"
#include "model/event.h"

#define CALLTIME_SOURCE UINT32_MAX /* the source's id */

struct calltime_task {
	uint64_t *ips; /* from the root */
	size_t nr, cap;
	uint64_t context, since;
};

struct calltime {
	struct calltime_task *tasks; /* one for each cpu and thread */
	size_t nr, cap;
	struct hash task_by_id;
	uint64_t *chain; /* of the sample at hand, leaf first */
	size_t cap_chain;
	bool told;
};

void calltime_release(struct calltime *ct);
/* The event that stands before the first sample. */
void calltime_source(struct calltime *ct, struct event *ev);
/* Takes in an EVENT_CALL. True: *sample is what ended with it; it borrows from ct. */
bool calltime_next(struct calltime *ct, const struct event *call, struct event *sample);

#endif

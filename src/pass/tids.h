/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tids: the ids of tasks that have ended, for tasks of the same kind that follow them. So a viewer shows
 * short-lived tasks that are the same thing on one track, and the number of ids does not grow with the trace.
 */
#ifndef KSCOPE_PASS_TIDS_H
#define KSCOPE_PASS_TIDS_H

#include <stdbool.h>

#include "base/hash.h"

struct tids { /* zeroed: empty */
	struct tids_kind *kinds;
	size_t nr, cap;
	struct hash by_kind;
};

struct tids_ended {
	uint32_t tid;
	uint64_t last; /* where its last slice ended */
};

void tids_release(struct tids *tids);
/* A task of this process and kind has ended. */
void tids_put(struct tids *tids, uint32_t pid, uint32_t kind, struct tids_ended ended);
/* Takes one whose last slice ended at `place` at the latest. False: there is none. */
bool tids_take(struct tids *tids, uint32_t pid, uint32_t kind, uint64_t place,
	       struct tids_ended *ended);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * verify: checks the results of a run, for --verify.
 *
 *  - Samples and their weights, for each event: all that readers read and stages made reached the writers, or a
 *    stage counted it as left out.
 *  - Sums of instructions: all that calls executed.
 *  - Slices: each one ends, after those inside it.
 *  - Each writer has written what it got. It counts that where it encodes it (struct written in format.h). With
 *    WROTE_CALLS, that is only the slices of functions.
 */
#ifndef KSCOPE_VERIFY_H
#define KSCOPE_VERIFY_H

#include "format.h"

struct verify;

struct verify *verify_new(size_t nr_writers);
void verify_free(struct verify *v); /* may be NULL */

/* Samples, also those of EVENT_CHAIN; other events are ignored. `source` is a handle of the world. */
void verify_came(struct verify *v, const struct event *ev, uint32_t source);
void verify_left_out(struct verify *v, const struct event *ev, uint32_t source, uint64_t samples,
		     uint64_t weight);
/* So much weight all samples like this one must have that a stage makes as sums of other events. Adds up. */
void verify_sum(struct verify *v, const struct event *ev, uint32_t source, uint64_t weight);
/* An event at the end of the chain. */
void verify_reached(struct verify *v, const struct event *ev);
/* An event that a writer gets. */
void verify_put(struct verify *v, size_t writer, const struct event *ev);

/*
 * At the end, with the EVENT_BIT()s that the writers take. Returns 0, or -1 with err set. tell: reports what was
 * verified.
 */
int verify_end(struct verify *v, struct world *world, uint32_t takes, struct writer *const *to,
	       bool tell, struct err *err);

#endif

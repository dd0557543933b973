/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * inlines: which inlined functions straight runs of code pass through. Each run is looked up in DWARF once; after
 * that, it costs one hash lookup.
 */
#ifndef KSCOPE_PASS_INLINES_H
#define KSCOPE_PASS_INLINES_H

#include "base/hash.h"
#include "model/world.h"
#include "pass/track.h"

struct inlined {
	uint32_t
		call; /* of several calls of a function that are inlined, each has its own number */
	uint32_t frame; /* see struct event_slice */
	uint64_t start; /* of its code */
};

struct inlines_part {		  /* of a run, in which the same functions are inlined */
	uint64_t from, to;	  /* addresses, `to` of its last byte */
	uint64_t before;	  /* how much of the run comes before it */
	const struct inlined *in; /* outermost first */
	size_t nr;
};

struct inlines_run {
	const struct inlines_part *parts;
	size_t nr;
	/* Of all its parts. counted: the parts are measured in instructions; else in bytes. */
	uint64_t size;
	bool counted;
};

struct inlines {
	void (*at)(void *data, const struct track_place *place, struct inlines_at *out);
	/* The instructions between two addresses; 0: unknown. */
	uint64_t (*instructions)(void *data, const struct track_place *place, uint64_t end);
	void *data;
	uint32_t version; /* of the maps; the caller updates it */

	struct hash call_by_id;
	struct inlines_known *known; /* runs that were seen before */
	struct inlines_part *parts;  /* of them */
	struct inlined *in;	     /* of the parts */
	size_t nr_parts, nr_in;
};

void inlines_init(struct inlines *inlines);
void inlines_release(struct inlines *inlines); /* also accepts a zeroed struct */
/*
 * A run from a place up to the instruction at `last`, or only that place, if `last` is not a possible end of a
 * straight run. Valid until the next call.
 */
struct inlines_run inlines_run(struct inlines *inlines, const struct track_place *from,
			       uint64_t last);
/* How many of the `nr` instructions of a run come before a part; nr if it was not reached. */
uint64_t inlines_before(const struct inlines_run *run, size_t part, uint64_t nr);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * wire_merge: merges the traces of several cpus in order of time. So a task that migrates leaves the
 * old cpu before it arrives on the new one. wire_ahead decodes them.
 */
#ifndef KSCOPE_READ_WIRE_MERGE_H
#define KSCOPE_READ_WIRE_MERGE_H

#include "read/wire_ahead.h"

struct wire_merge_cpu {
	struct wire_batch *batch; /* NULL: none yet */
	size_t next;		  /* event of the batch */
};

struct wire_merge {		 /* zeroed: ready */
	struct wire_ahead ahead; /* set its `info` before adding the first trace */
	struct wire_merge_cpu *cpus;
	size_t nr;
	struct wire_merge_cpu *current;
	uint64_t limit; /* oldest event of the other cpus, at most `until` */
	uint64_t until; /* all traces up to this time are known */
	uint64_t last;	/* time of the last event */
	/* The first trace that came too late: by how many ns, and its offset. */
	uint64_t late, late_offset;

	/* The damage, after wire_merge_next() returned -1. */
	const char *wrong;
	uint64_t wrong_offset, wrong_bytes;

	/* Of the last EVENT_CHECK: the number of its sample, and the offset after its code. */
	uint64_t place, place_offset;
};

void wire_merge_release(struct wire_merge *merge);
/* Copies the trace of a chunk. time: NO_TIME if it continues; hole: the previous chunk is missing. */
void wire_merge_add(struct wire_merge *merge, uint32_t cpu, const uint8_t *data, size_t len,
		    uint64_t time, bool hole, uint64_t offset);
/* No trace that is added later is older. UINT64_MAX: there are no more. */
void wire_merge_until(struct wire_merge *merge, uint64_t time);
/* 1: *ev is filled; 0: needs more input; -1: damage, call again. */
int wire_merge_next(struct wire_merge *merge, struct event *ev);
/*
 * Sets *events to at most `max` branches that wire_merge_next() would return next, all of one cpu, and
 * returns their number. They are valid until the next call. 0: call wire_merge_next().
 */
size_t wire_merge_peek(struct wire_merge *merge, size_t max, struct event **events);
/* Consumes the first `nr` of them. */
void wire_merge_take(struct wire_merge *merge, size_t nr);

#endif

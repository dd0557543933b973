/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * wire_merge: decodes the traces of several cpus and merges them in order of time. So a task that
 * migrates leaves the old cpu before it arrives on the new one.
 */
#ifndef KSCOPE_READ_WIRE_MERGE_H
#define KSCOPE_READ_WIRE_MERGE_H

#include "read/wire_trace.h"

struct wire_piece { /* the trace of a chunk; owned */
	uint8_t *data;
	size_t len;
	uint64_t time, offset;
	bool hole;
};

struct wire_merge_cpu {
	struct wire_trace trace;
	struct wire_piece *pieces; /* to decode after `piece` */
	size_t nr, cap, next;
	struct wire_piece piece; /* being decoded */
	struct event event;
	bool has_event;
};

struct wire_merge {		     /* zeroed: ready */
	struct wire_trace_info info; /* set this before adding the first trace */
	struct wire_merge_cpu **cpus;
	size_t nr;
	struct wire_merge_cpu *current;
	uint64_t limit; /* time of the oldest event of the other cpus */
	uint64_t until; /* all traces up to this time are known */
	uint64_t last;	/* time of the last event */
	/* The first trace that came when later events had been passed on: ns, and where it is. */
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

#endif

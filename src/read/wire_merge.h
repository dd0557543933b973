/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * wire_merge: the traces of several cpus, decoded and put in the order of time, so that a task which
 * goes from one cpu to another is seen to leave before it is seen to come.
 */
#ifndef KSCOPE_READ_WIRE_MERGE_H
#define KSCOPE_READ_WIRE_MERGE_H

#include "read/wire_trace.h"

struct wire_piece { /* of a trace; owned */
	uint8_t *data;
	size_t len;
	uint64_t time, offset;
	bool hole;
};

struct wire_merge_cpu {
	struct wire_trace trace;
	struct wire_piece *pieces; /* that were not decoded yet, after the one at hand */
	size_t nr, cap, next;
	struct wire_piece piece; /* at hand */
	struct event event;
	bool has_event;
};

struct wire_merge { /* zeroed: ready */
	struct wire_merge_cpu **cpus;
	size_t nr;
	struct wire_merge_cpu *current;
	uint64_t limit; /* until which it is the current one's turn */
	uint64_t until; /* up to here nothing can be missing */

	/* Where wire_merge_next() found damage. */
	const char *wrong;
	uint64_t wrong_offset, wrong_bytes;
};

void wire_merge_release(struct wire_merge *merge);
/* The trace of a chunk, copied. time: NO_TIME if it goes on; hole: a chunk before it is missing. */
void wire_merge_add(struct wire_merge *merge, uint32_t cpu, const uint8_t *data, size_t len,
		    uint64_t time, bool hole, uint64_t offset);
/* Nothing that is added from now on is older. UINT64_MAX: there is nothing more. */
void wire_merge_until(struct wire_merge *merge, uint64_t time);
/* 1: *ev is filled, 0: more is needed first, -1: damage; ask again. */
int wire_merge_next(struct wire_merge *merge, struct event *ev);

#endif

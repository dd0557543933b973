/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * wire_trace: the trace of a cpu, as the QEMU plugin writes it (wire/README.md), as branch events.
 * One decoder a cpu; it learns with the trace what usually follows what. Bytes that were fed are
 * borrowed until wire_trace_next() says 0 or less.
 */
#ifndef KSCOPE_READ_WIRE_TRACE_H
#define KSCOPE_READ_WIRE_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "model/event.h"
#include "wire/trace.h"

struct wire_trace_block {
	struct wire_block wire; /* first: the functions of wire/trace.h return pointers to it */
	uint64_t last;		/* address of the last instruction */
	uint64_t target;
};

struct wire_trace {
	uint32_t cpu;
	const uint8_t *data, *at, *end;
	bool synced;	   /* the dictionary is good */
	bool lost;	   /* something is missing before the next beginning */
	const char *wrong; /* why wire_trace_next() said -1 */

	/* Blocks by id. They stay where they are, in the arena, and are used again. */
	struct wire_trace_block **blocks;
	size_t nr, nr_made, cap;
	struct arena arena;
	struct wire_trace_block *cur; /* NULL: not tracing */
	struct wire_calls calls;
	uint64_t defined; /* where the block that was defined last ends */

	/* Steps still to be taken, the first in bit 0; then words that follow. */
	uint64_t steps;
	unsigned nr_steps, nr_words;

	uint64_t time, sp, space, shift;
	unsigned level, trap_level; /* of the next block, of what a trap interrupted */

	/* What was said of the next step. */
	bool trap, has_state, moved, begins;
	unsigned begin_flags, skip;
	uint64_t begin_total, resume; /* resume 0: not known */
	int64_t ran;		      /* -1: all */

	uint64_t pending; /* instructions since the last event */
	uint64_t total;	  /* all that were traced, and those that are known to be lost */
	uint64_t missing; /* of which these are lost */
	struct event queued;
	bool has_queued;

	uint64_t nr_events, nr_steps_taken;
};

void wire_trace_init(struct wire_trace *trace, uint32_t cpu);
void wire_trace_release(struct wire_trace *trace);
/* The trace bytes of a chunk. time: its trace_time, if it has one; else NO_TIME: it goes on. */
void wire_trace_feed(struct wire_trace *trace, const uint8_t *data, size_t len, uint64_t time);
/* A chunk is missing: what follows means nothing until one that has a time. */
void wire_trace_hole(struct wire_trace *trace);
/* 1: *ev is filled, 0: more has to be fed, -1: damage at trace->at, see trace->wrong; feed on. */
int wire_trace_next(struct wire_trace *trace, struct event *ev);
/* How many bytes of what was fed are not used yet: after damage, what is lost. */
size_t wire_trace_left(const struct wire_trace *trace);

#endif

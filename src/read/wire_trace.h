/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * wire_trace: decodes the trace of one cpu into branch events, an EVENT_MASK where interrupts are switched on
 * or off, and an EVENT_CHECK at the place of each sample, which the caller has. wire/README.md specifies the trace, wire/trace.h has its codes and
 * rules. The bytes passed to wire_trace_feed() are borrowed until wire_trace_run() returns 0 or less.
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
	uint64_t target;
	/*
	 * The change of the stack pointer. If the block replaces the stack pointer, `move` is the
	 * change before that, and `after` the change after it. WIRE_STACK_UNKNOWN: unknown.
	 */
	int32_t move, after;
	uint32_t last; /* size of the last instruction */
	bool replaces;
	bool loses_sp;		/* the stack pointer is not known after it */
	bool maybe;		/* control may go on instead of taking the branch */
	uint8_t kind;		/* enum branch_kind, of the branch at its end */
} __attribute__((aligned(64))); /* one line of the cache: there are too many for the cache */

/* What the recording says about its traces. Zeroed: nothing. */
struct wire_trace_info {
	bool has_moves;	     /* moves of the stack pointer: since version 2 */
	bool has_waits;	     /* the time before and after each wait: since version 3 */
	bool thumb;	     /* there may be Thumb code */
	uint8_t pushed;	     /* by a call: the size of the return address */
	uint8_t guest_shift; /* of the number of a guest in an address space; 0: it has none */
};

#define WIRE_TRACE_LEVELS 4
#define WIRE_TRACE_QUEUE 10 /* more than the events of one step */

struct wire_since { /* since the last event */
	uint64_t instructions;
	int64_t move; /* of the stack pointer */
	bool move_unknown;
};

struct wire_trace {
	uint32_t cpu;
	struct wire_trace_info info;
	const uint8_t *data, *at, *end;
	bool synced;	   /* the blocks are valid */
	bool lost;	   /* something is missing before the next begin */
	const char *wrong; /* why wire_trace_run() returned -1 */

	/* Blocks by id: nr of nr_made. They live in the arena, do not move, and are reused. */
	struct wire_trace_block **blocks;
	size_t nr, nr_made, cap;
	struct arena arena;
	struct wire_trace_block *cur; /* NULL: not tracing */
	struct wire_calls calls;
	uint64_t defined; /* end of the last definition */

	/* Steps to decode, the first in bit 0, and the number of words after them. */
	uint64_t steps;
	unsigned nr_steps, nr_words;

	uint64_t time, sp, space, shift;
	uint64_t old_sp, old_space; /* those before the last state */
	uint16_t guest;		    /* in `space` */
	unsigned level, trap_level; /* trap_level: the interrupted one */
	unsigned old_level;	    /* before the last state */

	/* Whether interrupts are on (enum wire_mask), for each level, and what the last event said. */
	uint8_t masks[WIRE_TRACE_LEVELS], shown_mask;
	bool waits; /* the cpu waits for an interrupt, with interrupts off */

	/* What short, trap, leave, state and begin say about the next step. */
	bool trap, leave, has_state, moved, begins;
	bool told;				  /* one of them may have come */
	uint8_t state_mask, trap_mask, step_mask; /* enum wire_mask: of state, trap and mask */
	bool has_step_mask;
	uint64_t left; /* the interrupted stack pointer; 0: unknown */
	unsigned begin_flags, skip;
	uint64_t begin_total, resume; /* resume 0: unknown */
	int64_t ran;		      /* instructions of the current block; -1: all */

	struct wire_since since;
	uint64_t total;			      /* traced instructions, including lost ones */
	uint64_t missing;		      /* lost instructions */
	struct event queue[WIRE_TRACE_QUEUE]; /* events to return next */
	unsigned nr_queued, next_queued;

	uint64_t place; /* of the last EVENT_CHECK */
	uint64_t nr_events, nr_steps_taken;
};

/* version and arch: of the recording's Info; 0 and NULL: unknown. */
struct wire_trace_info wire_trace_info(uint64_t version, const char *arch);
void wire_trace_init(struct wire_trace *trace, uint32_t cpu, struct wire_trace_info info);
void wire_trace_release(struct wire_trace *trace);
/* Passes the trace of a chunk. time: its trace_time, or NO_TIME if it has none. */
void wire_trace_feed(struct wire_trace *trace, const uint8_t *data, size_t len, uint64_t time);
/* A chunk is missing: the decoder skips all bytes up to a chunk with a time. */
void wire_trace_hole(struct wire_trace *trace);
/*
 * Fills at most max events, and stops after an EVENT_CHECK, and when trace->time changes. 1: call again;
 * 0: needs the next chunk; -1: damage, see trace->wrong; pass the next chunk. The *nr events come before
 * that.
 */
int wire_trace_run(struct wire_trace *trace, struct event *events, size_t max, size_t *nr);
/* The same for one event. 1: *ev is filled. */
int wire_trace_next(struct wire_trace *trace, struct event *ev);
/* The number of bytes not yet decoded; after damage, of those that are lost. */
size_t wire_trace_left(const struct wire_trace *trace);

#endif

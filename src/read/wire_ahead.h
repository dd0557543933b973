/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * wire_ahead: decodes the traces of all cpus, in batches. If there is much to decode and more than one
 * cpu to run on, a thread decodes ahead of the caller; else each batch is decoded when it is needed. The
 * batches of a cpu are the same either way, and come in the same order.
 *
 * The thread owns a cpu's decoder and its free batches; the caller owns the oldest batch from
 * wire_ahead_first() to wire_ahead_drop(). A lock protects everything else.
 *
 * A trace has the time only now and then. The events in between get times by their instructions: a batch
 * is ready when the next time is known.
 */
#ifndef KSCOPE_READ_WIRE_AHEAD_H
#define KSCOPE_READ_WIRE_AHEAD_H

#include <pthread.h>

#include "read/wire_trace.h"

#define WIRE_BATCH 128	/* events of a batch */
#define WIRE_READY 64	/* batches of a cpu that are ready; fewer if there are many cpus */
#define WIRE_UNTIMED 64 /* batches that wait for the next time */
#define WIRE_BATCHES (WIRE_READY + WIRE_UNTIMED)

struct wire_batch {
	struct event events[WIRE_BATCH];
	size_t nr;
	/* The time before the first event, and how long an instruction took, in ns. */
	uint64_t time;
	double pace;
	uint64_t until;	       /* the time after them */
	uint64_t instructions; /* of the events before it since `time` */
	uint64_t first;	       /* of the first branch since `time` */
	uint64_t offset;       /* in the input, of the trace that they are from */
	const char *wrong;     /* damage after the last event, and where; NULL: none */
	uint64_t wrong_offset, wrong_bytes;
	/* If the last event is an EVENT_CHECK: the number of its sample, the offset after its code. */
	uint64_t place, place_offset;
};

struct wire_piece { /* the trace of a chunk; owned */
	uint8_t *data;
	size_t len;
	uint64_t time, offset;
	bool hole;
};

struct wire_ahead_cpu {
	struct wire_trace trace;
	struct wire_piece piece;   /* being decoded; data NULL: none */
	struct wire_piece *pieces; /* to decode after it: from `next` to `nr` */
	size_t nr, cap, next;
	struct wire_batch *batches[WIRE_BATCHES]; /* a ring; NULL: not allocated yet */
	size_t decoded, filled,
		dropped;       /* the number of batches so far; filled: their times are known */
	uint64_t instructions; /* of the batches that are decoded and not filled */
	uint64_t first;	       /* of the first branch in them */
	bool begun;	       /* there is one */
};

struct wire_ahead {		      /* zeroed: ready */
	struct wire_trace_info info;  /* set this before adding the first trace */
	struct wire_ahead_cpu **cpus; /* by number; NULL: has no trace */
	size_t nr;
	size_t nr_used; /* of them, those with a trace */
	size_t room;	/* how many batches of a cpu are decoded ahead */
	uint64_t bytes; /* of traces so far */

	pthread_t thread;
	bool tried, threaded; /* tried to start it; it runs */
	bool stop;
	pthread_mutex_t lock;
	pthread_cond_t work, ready;    /* for the thread, and for the caller */
	bool idle;		       /* the thread waits */
	struct wire_ahead_cpu *wanted; /* the caller waits for this one; NULL: it does not */
	size_t turn;		       /* of the cpu to decode next */
};

/* Copies the trace of a chunk, see wire_merge_add(). */
void wire_ahead_add(struct wire_ahead *ahead, uint32_t cpu, const uint8_t *data, size_t len,
		    uint64_t time, bool hole, uint64_t offset);
/* The cpu's oldest batch. NULL: all of its traces are decoded. */
struct wire_batch *wire_ahead_first(struct wire_ahead *ahead, struct wire_ahead_cpu *cpu);
void wire_ahead_drop(struct wire_ahead *ahead, struct wire_ahead_cpu *cpu);
void wire_ahead_release(struct wire_ahead *ahead);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ahead: decodes traces piece by piece, on all cpus, ahead of the caller. A piece begins and ends with a PSB
 * packet, so it needs nothing of the pieces before it. What the pieces are does not depend on the number of
 * threads, and the caller gets them in order.
 *
 * The number of pieces that are decoded ahead is bounded, and so is the number of branches of a piece that
 * the caller has not taken.
 */
#ifndef KSCOPE_PT_AHEAD_H
#define KSCOPE_PT_AHEAD_H

#include <pthread.h>

#include "pt/flow.h"

#define IPT_PIECE ((uint64_t)16 << 10)

struct ipt_span { /* of a queue, without holes */
	uint64_t begin, end;
};

struct ipt_queue {
	struct ipt_span *spans;
	size_t nr, cap;
	/* Of the next piece to decode: */
	size_t span;
	uint64_t position;
	struct ipt_piece *first, *last; /* pieces in order; the first one is the caller's next */
	size_t nr_pieces;
};

struct ipt_piece {
	struct ipt_piece *next; /* in its queue */
	uint32_t queue;
	struct ipt_span span;
	uint64_t begin, end; /* its first PSB packet is in this range */
	bool first_of_span;
	enum { PIECE_WAITS, PIECE_RUNS, PIECE_READY } state;
	bool done;	      /* else, there is more when its branches are taken */
	uint64_t position;    /* where to go on, once it has begun */
	uint64_t limit;	      /* the PSB packet at its end; 0: not known yet */
	struct ipt_flow flow; /* has the branches */
	uint8_t *window;
};

struct ipt_ahead {
	const struct ipt_world *world;
	const struct ipt_clock_info *clock;
	/* Reads bytes of a queue, which are there. Called by several threads at a time. False: error. */
	bool (*read)(const void *data, uint32_t queue, uint64_t position, uint8_t *to, size_t len);
	const void *data;
	bool all;	/* see struct ipt_flow */
	uint64_t piece; /* bytes, up to the next PSB packet; 0: IPT_PIECE */

	struct ipt_queue *queues;
	size_t nr_queues, cap_queues;
	size_t active;		/* queues whose pieces the caller takes by turns; 0 counts as 1 */
	struct ipt_piece *idle; /* to be used again */

	pthread_t *threads;
	size_t nr_threads;
	pthread_mutex_t lock;
	pthread_cond_t work, ready;
	struct ipt_piece **waiting; /* a ring: the next to decode */
	size_t waiting_first, nr_waiting, cap_waiting;
	bool stop;
};

/* A zeroed struct, with what is above the queues set. */
void ipt_ahead_init(struct ipt_ahead *ahead);
/* Adds bytes to a queue. If they do not follow those before, part of the trace is missing. */
void ipt_ahead_add(struct ipt_ahead *ahead, uint32_t queue, uint64_t begin, uint64_t end);
/* All bytes are added. threads: how many decode besides the caller. */
void ipt_ahead_start(struct ipt_ahead *ahead, size_t threads);
/*
 * The queue's next piece with branches in piece->flow, or a part of it. NULL: there is none. The caller
 * takes the branches, and then calls ipt_ahead_took().
 */
struct ipt_piece *ipt_ahead_next(struct ipt_ahead *ahead, uint32_t queue);
/* False: the piece has more, see ipt_ahead_next(). */
bool ipt_ahead_took(struct ipt_ahead *ahead, uint32_t queue);
void ipt_ahead_release(struct ipt_ahead *ahead);

#endif

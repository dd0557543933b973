// SPDX-License-Identifier: GPL-2.0-or-later
#include "pt/ahead.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/worker.h"
#include "pt/packet.h"

#define WINDOW ((size_t)64 << 10)
#define PSB_PLUS 512 /* bytes in which to look for the address after a PSB packet */
#define AHEAD 12     /* pieces, even for one thread: it takes long to wake it up */

void ipt_ahead_init(struct ipt_ahead *ahead)
{
	pthread_mutex_init(&ahead->lock, NULL);
	pthread_cond_init(&ahead->work, NULL);
	pthread_cond_init(&ahead->ready, NULL);
}

void ipt_ahead_add(struct ipt_ahead *ahead, uint32_t queue, uint64_t begin, uint64_t end)
{
	struct ipt_queue *q;

	while (ahead->nr_queues <= queue) {
		GROW(ahead->queues, ahead->nr_queues + 1, ahead->cap_queues);
		ahead->queues[ahead->nr_queues++] = (struct ipt_queue){ 0 };
	}
	q = &ahead->queues[queue];
	if (begin >= end)
		return;
	if (q->nr && q->spans[q->nr - 1].end == begin) {
		q->spans[q->nr - 1].end = end;
		return;
	}
	GROW(q->spans, q->nr + 1, q->cap);
	q->spans[q->nr++] = (struct ipt_span){ begin, end };
}

/* Pieces */

/* Fills the window from a position on, within the span. Returns the number of bytes. */
static size_t look(const struct ipt_ahead *ahead, struct ipt_piece *piece, uint64_t position)
{
	uint64_t left = piece->span.end - position;
	size_t len = left < WINDOW ? (size_t)left : WINDOW;

	if (!ahead->read(ahead->data, piece->queue, position, piece->window, len))
		return 0;
	return len;
}

/* The first PSB packet from a position on; the span's end if there is none before `before`. */
static uint64_t find_psb(const struct ipt_ahead *ahead, struct ipt_piece *piece, uint64_t position,
			 uint64_t before)
{
	while (position < before) {
		size_t len = look(ahead, piece, position);
		const uint8_t *psb = ipt_packet_find_psb(piece->window, piece->window + len);

		if (psb)
			return position + (uint64_t)(psb - piece->window);
		if (len < WINDOW)
			break;
		position += len - IPT_PSB_SIZE + 1;
	}
	return piece->span.end;
}

static void begin_piece(const struct ipt_ahead *ahead, struct ipt_piece *piece)
{
	piece->position = find_psb(ahead, piece, piece->begin, piece->end);
	piece->flow.world = ahead->world;
	piece->flow.queue = piece->queue;
	piece->flow.all = ahead->all;
	piece->flow.clock.info = ahead->clock;
	ipt_flow_begin(&piece->flow);
	piece->done = piece->position >= piece->end;
}

/* The bytes of the window that belong to the piece and can be decoded now; *last: to its end. */
static size_t usable(struct ipt_piece *piece, size_t len, bool *last)
{
	uint64_t at = piece->position, from = piece->end > at ? piece->end - at : 0;
	const uint8_t *psb = NULL;

	if (from < len)
		psb = ipt_packet_find_psb(piece->window + from, piece->window + len);
	if (psb)
		piece->limit = at + (uint64_t)(psb - piece->window);
	else if (at + len == piece->span.end)
		piece->limit = piece->span.end;
	*last = piece->limit;
	if (piece->limit)
		return (size_t)(piece->limit - at);
	return len - IPT_PSB_SIZE; /* one may begin in the rest */
}

static void end_piece(const struct ipt_ahead *ahead, struct ipt_piece *piece)
{
	uint8_t psb[PSB_PLUS];
	uint64_t left = piece->span.end - piece->limit;
	size_t len = left < PSB_PLUS ? (size_t)left : PSB_PLUS;

	piece->done = true;
	if (len && ahead->read(ahead->data, piece->queue, piece->limit, psb, len))
		ipt_flow_end(&piece->flow, ipt_flow_psb_ip(psb, len), piece->limit);
}

/* Decodes a piece, until it ends or has enough branches. */
static void run_piece(const struct ipt_ahead *ahead, struct ipt_piece *piece)
{
	if (!piece->flow.world)
		begin_piece(ahead, piece);
	while (!piece->done && piece->flow.nr < IPT_ENOUGH) {
		size_t len = look(ahead, piece, piece->position), took;
		bool last;

		if (!len) {
			piece->done = true;
			break;
		}
		len = usable(piece, len, &last);
		took = ipt_flow_run(&piece->flow, piece->window, len, piece->position, last);
		piece->position += took;
		if (last && took == len)
			end_piece(ahead, piece);
	}
}

/* Queues */

static struct ipt_piece *new_piece(struct ipt_ahead *ahead)
{
	struct ipt_piece *piece = ahead->idle;
	struct ipt_branch *branches;
	uint8_t *window;
	size_t cap;

	if (!piece) {
		piece = xcalloc(1, sizeof(*piece));
		piece->window = xmalloc(WINDOW);
		return piece;
	}
	ahead->idle = piece->next;
	window = piece->window;
	branches = piece->flow.branches;
	cap = piece->flow.cap;
	memset(piece, 0, sizeof(*piece));
	piece->window = window;
	piece->flow.branches = branches;
	piece->flow.cap = cap;
	return piece;
}

static void wait_in_line(struct ipt_ahead *ahead, struct ipt_piece *piece)
{
	if (ahead->nr_waiting == ahead->cap_waiting) {
		size_t cap = ahead->cap_waiting ? ahead->cap_waiting * 2 : 16;
		struct ipt_piece **ring = xcalloc(cap, sizeof(*ring));

		for (size_t i = 0; i < ahead->nr_waiting; i++)
			ring[i] = ahead->waiting[(ahead->waiting_first + i) % ahead->cap_waiting];
		free(ahead->waiting);
		ahead->waiting = ring;
		ahead->cap_waiting = cap;
		ahead->waiting_first = 0;
	}
	ahead->waiting[(ahead->waiting_first + ahead->nr_waiting++) % ahead->cap_waiting] = piece;
	piece->state = PIECE_WAITS;
	pthread_cond_signal(&ahead->work);
}

/* Takes a piece out of the line, or with NULL the first one. Returns NULL if the line is empty. */
static struct ipt_piece *take_from_line(struct ipt_ahead *ahead, struct ipt_piece *piece)
{
	struct ipt_piece *taken = NULL;
	size_t nr = 0;

	for (size_t i = 0; i < ahead->nr_waiting; i++) {
		size_t from = (ahead->waiting_first + i) % ahead->cap_waiting;
		struct ipt_piece *each = ahead->waiting[from];

		if (!taken && (!piece || each == piece)) {
			taken = each;
			continue;
		}
		ahead->waiting[(ahead->waiting_first + nr++) % ahead->cap_waiting] = each;
	}
	ahead->nr_waiting = nr;
	if (taken)
		taken->state = PIECE_RUNS;
	return taken;
}

/* The next piece of a queue; false: there is none. */
static bool add_piece(struct ipt_ahead *ahead, uint32_t number)
{
	struct ipt_queue *q = &ahead->queues[number];
	const struct ipt_span *span;
	uint64_t size = ahead->piece ? ahead->piece : IPT_PIECE;
	struct ipt_piece *piece;

	if (q->span == q->nr)
		return false;
	span = &q->spans[q->span];
	piece = new_piece(ahead);
	piece->queue = number;
	piece->span = *span;
	piece->first_of_span = q->position <= span->begin;
	piece->begin = piece->first_of_span ? span->begin : q->position;
	piece->end = span->end - piece->begin > size ? piece->begin + size : span->end;
	q->position = piece->end;
	if (piece->end == span->end) {
		q->span++;
		q->position = 0;
	}
	if (q->last)
		q->last->next = piece;
	else
		q->first = piece;
	q->last = piece;
	q->nr_pieces++;
	wait_in_line(ahead, piece);
	return true;
}

static void *work(void *arg)
{
	struct ipt_ahead *ahead = arg;

	pthread_mutex_lock(&ahead->lock);
	while (!ahead->stop) {
		struct ipt_piece *piece = take_from_line(ahead, NULL);

		if (!piece) {
			pthread_cond_wait(&ahead->work, &ahead->lock);
			continue;
		}
		pthread_mutex_unlock(&ahead->lock);
		run_piece(ahead, piece);
		pthread_mutex_lock(&ahead->lock);
		piece->state = PIECE_READY;
		pthread_cond_signal(&ahead->ready);
	}
	pthread_mutex_unlock(&ahead->lock);
	return NULL;
}

void ipt_ahead_start(struct ipt_ahead *ahead, size_t threads)
{
	if (!threads)
		return;
	ahead->threads = xcalloc(threads, sizeof(*ahead->threads));
	while (ahead->nr_threads < threads &&
	       worker_start(&ahead->threads[ahead->nr_threads], work, ahead))
		ahead->nr_threads++;
}

/* The first piece of a queue is decoded by the caller, unless a thread does it already. */
static void finish_first(struct ipt_ahead *ahead, struct ipt_piece *piece)
{
	while (piece->state != PIECE_READY) {
		if (take_from_line(ahead, piece)) {
			pthread_mutex_unlock(&ahead->lock);
			run_piece(ahead, piece);
			pthread_mutex_lock(&ahead->lock);
			piece->state = PIECE_READY;
		} else {
			pthread_cond_wait(&ahead->ready, &ahead->lock);
		}
	}
}

/* How many pieces of a queue to decode ahead, with the one that the caller takes. */
static size_t room_of(const struct ipt_ahead *ahead)
{
	size_t active = ahead->active ? ahead->active : 1;

	return ahead->nr_threads ? 1 + (AHEAD + 2 * ahead->nr_threads + active - 1) / active : 1;
}

struct ipt_piece *ipt_ahead_next(struct ipt_ahead *ahead, uint32_t queue)
{
	struct ipt_queue *q = &ahead->queues[queue];
	size_t room = room_of(ahead);

	pthread_mutex_lock(&ahead->lock);
	/* Many at a time, so that the threads do not go to sleep after each. */
	if (q->nr_pieces <= room / 2) {
		while (q->nr_pieces < room && add_piece(ahead, queue))
			;
	}
	if (q->first)
		finish_first(ahead, q->first);
	pthread_mutex_unlock(&ahead->lock);
	return q->first;
}

bool ipt_ahead_took(struct ipt_ahead *ahead, uint32_t queue)
{
	struct ipt_queue *q = &ahead->queues[queue];
	struct ipt_piece *piece = q->first;
	bool done = piece->done;

	pthread_mutex_lock(&ahead->lock);
	piece->flow.nr = 0;
	if (done) {
		q->first = piece->next;
		if (!q->first)
			q->last = NULL;
		q->nr_pieces--;
		piece->next = ahead->idle;
		ahead->idle = piece;
	} else {
		wait_in_line(ahead, piece);
	}
	pthread_mutex_unlock(&ahead->lock);
	return done;
}

static void free_pieces(struct ipt_piece *piece)
{
	while (piece) {
		struct ipt_piece *next = piece->next;

		ipt_flow_release(&piece->flow);
		free(piece->window);
		free(piece);
		piece = next;
	}
}

void ipt_ahead_release(struct ipt_ahead *ahead)
{
	pthread_mutex_lock(&ahead->lock);
	ahead->stop = true;
	pthread_cond_broadcast(&ahead->work);
	pthread_mutex_unlock(&ahead->lock);
	for (size_t i = 0; i < ahead->nr_threads; i++)
		pthread_join(ahead->threads[i], NULL);
	for (size_t i = 0; i < ahead->nr_queues; i++) {
		free_pieces(ahead->queues[i].first);
		free(ahead->queues[i].spans);
	}
	free_pieces(ahead->idle);
	free(ahead->queues);
	free(ahead->threads);
	free(ahead->waiting);
	pthread_mutex_destroy(&ahead->lock);
	pthread_cond_destroy(&ahead->work);
	pthread_cond_destroy(&ahead->ready);
}

// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/order.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define CHUNK ((size_t)512 << 10)
#define FEW 1024 /* up to this many entries are always sorted */
#define SHARE 16 /* more are sorted only if one in SHARE is new */

struct order_chunk {
	struct order_chunk *next; /* in the idle list */
	size_t used, live;	  /* bytes in use, items not given back */
	bool large;		  /* for a single item that exceeds CHUNK */
	uint64_t data[];
};

/* Returns a chunk with room for at least `size` bytes. */
static struct order_chunk *new_chunk(struct order *order, size_t size)
{
	bool large = size > CHUNK - sizeof(struct order_chunk);
	struct order_chunk *chunk = large ? NULL : order->idle;

	if (chunk)
		order->idle = chunk->next;
	else
		chunk = xmalloc(large ? sizeof(*chunk) + size : CHUNK);
	chunk->next = NULL;
	chunk->large = large;
	chunk->used = sizeof(*chunk);
	chunk->live = 0;
	return chunk;
}

static void put_idle(struct order *order, struct order_chunk *chunk)
{
	if (chunk->large) {
		free(chunk);
		return;
	}
	chunk->next = order->idle;
	order->idle = chunk;
}

static struct order_item *new_item(struct order *order, size_t len)
{
	size_t size = (sizeof(struct order_item) + len + 7) & ~(size_t)7;
	struct order_item *item;

	if (!order->current || order->current->used + size > CHUNK) {
		if (order->current && !order->current->live)
			put_idle(order, order->current);
		order->current = new_chunk(order, size);
	}
	item = (struct order_item *)((uint8_t *)order->current + order->current->used);
	item->chunk = order->current;
	item->len = len;
	order->current->used += size;
	order->current->live++;
	order->bytes += size;
	return item;
}

static void give_back(struct order *order, struct order_item *item)
{
	struct order_chunk *chunk = item->chunk;

	order->bytes -= (sizeof(*item) + item->len + 7) & ~(size_t)7;
	if (--chunk->live == 0 && chunk != order->current)
		put_idle(order, chunk);
}

static bool goes_first(const struct order_entry *a, const struct order_entry *b)
{
	return a->time != b->time ? a->time < b->time : a->rank <= b->rank;
}

/* Returns the end of the sorted run that starts at `from`. */
static size_t run_end(const struct order_entry *at, size_t from, size_t nr)
{
	size_t i = from + 1;

	while (i < nr && goes_first(&at[i - 1], &at[i]))
		i++;
	return i < nr ? i : nr;
}

static void merge_runs(struct order_entry *to, const struct order_entry *a, size_t nr_a,
		       const struct order_entry *b, size_t nr_b)
{
	while (nr_a && nr_b) {
		if (goes_first(a, b)) {
			*to++ = *a++;
			nr_a--;
		} else {
			*to++ = *b++;
			nr_b--;
		}
	}
	memcpy(to, a, nr_a * sizeof(*a));
	memcpy(to + nr_a, b, nr_b * sizeof(*b));
}

/* Sorting costs time for all waiting entries, so a stream of empty rounds must not trigger it. */
static bool worth_sorting(const struct order *order)
{
	size_t waiting = order->nr - order->at;

	return waiting <= FEW || order->fresh >= waiting / SHARE;
}

/* Merges adjacent runs until one is left. The records of each cpu already form a run. */
static void sort(struct order *order)
{
	order->fresh = 0;
	while (run_end(order->entries, 0, order->nr) < order->nr) {
		struct order_entry *from = order->entries, *to;
		size_t at = 0, cap = order->cap;

		GROW(order->scratch, order->nr, order->cap_scratch);
		to = order->scratch;
		while (at < order->nr) {
			size_t middle = run_end(from, at, order->nr);
			size_t end = middle < order->nr ? run_end(from, middle, order->nr) : middle;

			merge_runs(to + at, from + at, middle - at, from + middle, end - middle);
			at = end;
		}
		order->entries = to;
		order->scratch = from;
		order->cap = order->cap_scratch;
		order->cap_scratch = cap;
	}
}

static void drop_taken(struct order *order)
{
	if (!order->at)
		return;
	order->nr -= order->at;
	memmove(order->entries, order->entries + order->at, order->nr * sizeof(*order->entries));
	order->ready -= order->at;
	order->at = 0;
}

static void release_until(struct order *order, uint64_t until)
{
	size_t low, high;

	drop_taken(order);
	if (order->nr)
		sort(order);
	low = 0;
	high = order->nr;
	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (order->entries[mid].time <= until)
			low = mid + 1;
		else
			high = mid;
	}
	order->ready = low;
}

static void release_half(struct order *order)
{
	drop_taken(order);
	sort(order);
	order->ready = (order->nr + 1) / 2;
}

void order_put(struct order *order, uint64_t time, uint32_t rank, uint64_t offset, const void *data,
	       size_t len)
{
	struct order_item *item = new_item(order, len);

	item->offset = offset;
	memcpy(item->data, data, len);
	drop_taken(order);
	GROW(order->entries, order->nr + 1, order->cap);
	order->entries[order->nr++] = (struct order_entry){ time, rank, item };
	order->fresh++;
	if (time > order->newest)
		order->newest = time;
	if (order->bytes > ORDER_MAX && worth_sorting(order))
		release_half(order);
}

void order_round(struct order *order)
{
	if (worth_sorting(order))
		release_until(order, order->newest_before);
	order->newest_before = order->newest;
}

void order_until(struct order *order, uint64_t time)
{
	if (time && worth_sorting(order))
		release_until(order, time - 1);
}

void order_finish(struct order *order)
{
	release_until(order, UINT64_MAX);
}

const struct order_item *order_next(struct order *order)
{
	if (order->lent)
		give_back(order, order->lent);
	order->lent = order->at < order->ready ? order->entries[order->at++].item : NULL;
	return order->lent;
}

static void free_chunks(struct order_chunk *chunk)
{
	while (chunk) {
		struct order_chunk *next = chunk->next;

		free(chunk);
		chunk = next;
	}
}

void order_release(struct order *order)
{
	/* After all items are given back, every chunk except the current one is idle. */
	order_finish(order);
	while (order_next(order))
		;
	free_chunks(order->idle);
	free(order->current);
	free(order->entries);
	free(order->scratch);
	memset(order, 0, sizeof(*order));
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * order: sorts records that arrive nearly in time order. perf reads the buffers of all cpus, one after
 * the other, and then writes a mark: the end of a round. No later record can be older than the newest
 * record of the previous round, so order_round() releases all records up to that time.
 *
 * Memory is bounded: if ORDER_MAX bytes are waiting, because rounds are missing or too long, the older
 * half is released. A record that arrives too late after that keeps its place in the file. Time is
 * bounded, too: a round with few new records is not sorted until a later round.
 *
 * Records of equal time are sorted by rank, and records of equal rank keep their order. With the cpu
 * number as rank, the result does not depend on how perf emptied the buffers.
 */
#ifndef KSCOPE_BASE_ORDER_H
#define KSCOPE_BASE_ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ORDER_MAX ((size_t)48 << 20)

struct order_chunk;

struct order_item {
	struct order_chunk *chunk;
	uint64_t offset; /* from order_put() */
	size_t len;
	uint64_t data[]; /* aligned */
};

struct order_entry {
	uint64_t time;
	uint32_t rank;
	struct order_item *item;
};

struct order { /* zeroed: valid and empty */
	struct order_entry *entries, *scratch;
	size_t nr, cap, cap_scratch;
	size_t fresh;			/* number of entries since the last sort */
	size_t at, ready;		/* entries[at..ready) are released */
	uint64_t newest, newest_before; /* newest time so far and up to the last round */
	struct order_chunk *current, *idle;
	struct order_item *lent;
	size_t bytes;
};

void order_put(struct order *order, uint64_t time, uint32_t rank, uint64_t offset, const void *data,
	       size_t len);
void order_round(struct order *order); /* a round has ended */
/* No record older than `time` will follow. Releases more than order_round(). */
void order_until(struct order *order, uint64_t time);
void order_finish(struct order *order); /* no more records will follow */
/*
 * Returns the next released item, valid until the next call, or NULL. Call it until it returns NULL
 * before putting more records.
 */
const struct order_item *order_next(struct order *order);
/* Whether there are records that order_next() has not returned. */
static inline bool order_waits(const struct order *order)
{
	return order->at < order->nr;
}
void order_release(struct order *order);

#endif

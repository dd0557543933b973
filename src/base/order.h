/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * order: records that come nearly in the order of time, put into it. perf writes what it found in
 * the buffer of each cpu, one after the other, and then a mark: the end of a round. What is older
 * than all that was seen before the round can no longer be overtaken, and goes.
 *
 * Memory is bounded: data without rounds, or with very long ones, goes by halves, the older first,
 * once ORDER_MAX bytes wait. A record that comes later than that keeps its place in the file.
 * Time is bounded, too: what ends a round waits for the next one if there is little new to sort.
 *
 * Records of the same time go by their rank, those of the same rank as they came. With the number of
 * the cpu as the rank the order does not depend on how the buffers happened to be emptied.
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
	uint64_t offset; /* the caller's */
	size_t len;
	uint64_t data[]; /* the bytes, aligned */
};

struct order_entry {
	uint64_t time;
	uint32_t rank;
	struct order_item *item;
};

struct order { /* zeroed: empty */
	struct order_entry *entries, *scratch;
	size_t nr, cap, cap_scratch;
	size_t fresh;			/* entries that came since the others were sorted */
	size_t at, ready;		/* entries[at..ready) may go */
	uint64_t newest, newest_before; /* time, now and at the end of the last round */
	struct order_chunk *current, *idle;
	struct order_item *lent;
	size_t bytes;
};

void order_put(struct order *order, uint64_t time, uint32_t rank, uint64_t offset, const void *data,
	       size_t len);
void order_round(struct order *order);		      /* a round has ended */
void order_until(struct order *order, uint64_t time); /* nothing older will come: a better round */
void order_finish(struct order *order);		      /* nothing more will come */
/* NULL: nothing may go yet. Valid until the next call; take all there is before putting more. */
const struct order_item *order_next(struct order *order);
void order_release(struct order *order);

#endif

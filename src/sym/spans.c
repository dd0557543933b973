// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Cuts overlapping ranges into pieces with one owner each, so that a lookup is one binary search
 * however ranges nest. Ranges need not nest properly, so broken input does no harm.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "sym/internal.h"

static int by_start(const void *a, const void *b)
{
	const struct interval *x = a, *y = b;

	if (x->lo != y->lo)
		return x->lo < y->lo ? -1 : 1;
	return (x->id > y->id) - (x->id < y->id);
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static bool beats(const struct interval *x, const struct interval *y)
{
	return x->rank != y->rank ? x->rank > y->rank : x->id > y->id;
}

/* A heap of the intervals that have begun; ended ones are removed when they reach the top. */
struct begun {
	const struct interval **at;
	size_t nr;
};

static void begun_push(struct begun *heap, const struct interval *new)
{
	size_t i = heap->nr++;

	for (; i && beats(new, heap->at[(i - 1) / 2]); i = (i - 1) / 2)
		heap->at[i] = heap->at[(i - 1) / 2];
	heap->at[i] = new;
}

static void begun_pop(struct begun *heap)
{
	const struct interval *last = heap->at[--heap->nr];
	size_t i = 0, child;

	while ((child = 2 * i + 1) < heap->nr) {
		if (child + 1 < heap->nr && beats(heap->at[child + 1], heap->at[child]))
			child++;
		if (!beats(heap->at[child], last))
			break;
		heap->at[i] = heap->at[child];
		i = child;
	}
	heap->at[i] = last;
}

static void add_span(struct spans *spans, uint64_t lo, uint32_t id)
{
	struct span *last = spans->nr ? &spans->at[spans->nr - 1] : NULL;

	if (last && last->id == id)
		return;
	spans->at[spans->nr++] = (struct span){ lo, id };
}

/* Every place where an owner may change, in order. */
static uint64_t *edges(const struct interval *intervals, size_t nr)
{
	uint64_t *at = xmalloc(2 * nr * sizeof(*at));

	for (size_t i = 0; i < nr; i++) {
		at[2 * i] = intervals[i].lo;
		at[2 * i + 1] = intervals[i].hi;
	}
	qsort(at, 2 * nr, sizeof(*at), by_value);
	return at;
}

void spans_build(struct spans *spans, struct interval *intervals, size_t nr)
{
	struct begun heap = { 0 };
	uint64_t *edge;
	size_t next = 0;

	memset(spans, 0, sizeof(*spans));
	if (!nr)
		return;
	qsort(intervals, nr, sizeof(*intervals), by_start);
	edge = edges(intervals, nr);
	heap.at = xmalloc(nr * sizeof(*heap.at));
	spans->at = xmalloc(2 * nr * sizeof(*spans->at));
	for (size_t i = 0; i < 2 * nr; i++) {
		if (i && edge[i] == edge[i - 1])
			continue;
		for (; next < nr && intervals[next].lo == edge[i]; next++) {
			if (intervals[next].lo < intervals[next].hi)
				begun_push(&heap, &intervals[next]);
		}
		while (heap.nr && heap.at[0]->hi <= edge[i])
			begun_pop(&heap);
		add_span(spans, edge[i], heap.nr ? heap.at[0]->id : 0);
	}
	free(heap.at);
	free(edge);
	spans->at = xrealloc(spans->at, spans->nr, sizeof(*spans->at));
}

/* The number of spans that start at or before addr. */
static size_t spans_upto(const struct spans *spans, uint64_t addr)
{
	size_t lo = 0, hi = spans->nr;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (spans->at[mid].lo <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

uint32_t spans_find(const struct spans *spans, uint64_t addr)
{
	size_t n = spans_upto(spans, addr);

	return n ? spans->at[n - 1].id : 0;
}

uint32_t spans_piece(const struct spans *spans, uint64_t addr, uint64_t *lo, uint64_t *hi)
{
	size_t n = spans_upto(spans, addr);

	if (!n || !spans->at[n - 1].id)
		return 0;
	*lo = spans->at[n - 1].lo;
	/* The last span is always a hole, so there is a next one. */
	*hi = n < spans->nr ? spans->at[n].lo : *lo;
	return spans->at[n - 1].id;
}

uint64_t spans_next(const struct spans *spans, uint64_t addr)
{
	size_t n = spans_upto(spans, addr);

	return n < spans->nr ? spans->at[n].lo : UINT64_MAX;
}

void spans_release(struct spans *spans)
{
	free(spans->at);
	memset(spans, 0, sizeof(*spans));
}

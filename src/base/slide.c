// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/slide.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"

#define PAIRS_MAX ((uint64_t)4 << 20)
#define HITS_MIN 4

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

size_t sort_unique(uint64_t *values, size_t nr)
{
	size_t left = 0;

	if (!nr)
		return 0;
	qsort(values, nr, sizeof(*values), by_value);
	for (size_t i = 0; i < nr; i++) {
		if (!i || values[i] != values[i - 1])
			values[left++] = values[i];
	}
	return left;
}

/* Starts that are equal modulo the step are candidates for the same addresses. */
struct classes {
	const uint64_t *starts;
	uint64_t mask;
	uint32_t *order; /* indices of the starts, sorted modulo the step */
	size_t nr;
};

static int by_class(const void *a, const void *b, void *arg)
{
	const struct classes *classes = arg;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	uint64_t p = classes->starts[x] & classes->mask, q = classes->starts[y] & classes->mask;

	if (p != q)
		return p < q ? -1 : 1;
	return (x > y) - (x < y);
}

static void classes_init(struct classes *classes, const uint64_t *starts, size_t nr, uint64_t step)
{
	*classes = (struct classes){ .starts = starts, .mask = step - 1, .nr = nr };
	classes->order = xmalloc((nr ? nr : 1) * sizeof(*classes->order));
	for (size_t i = 0; i < nr; i++)
		classes->order[i] = (uint32_t)i;
	qsort_r(classes->order, nr, sizeof(*classes->order), by_class, classes);
}

/* Index in `order` of the first start that is at least `place` modulo the step. */
static size_t first_at(const struct classes *classes, uint64_t place)
{
	size_t lo = 0, hi = classes->nr;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		uint64_t start = classes->starts[classes->order[mid]];

		if ((start & classes->mask) < place)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static uint64_t count_pairs(const struct classes *classes, const uint64_t *seen, size_t nr)
{
	uint64_t pairs = 0;

	for (size_t i = 0; i < nr; i++) {
		uint64_t place = seen[i] & classes->mask;

		pairs += first_at(classes, place + 1) - first_at(classes, place);
	}
	return pairs;
}

static void vote(const struct classes *classes, uint64_t seen, struct hash *votes)
{
	uint64_t place = seen & classes->mask;
	size_t end = first_at(classes, place + 1);

	for (size_t k = first_at(classes, place); k < end; k++) {
		uint64_t by = seen - classes->starts[classes->order[k]];

		++*hash_at(votes, (struct hash_key){ by, 0 });
	}
}

/* The smallest distance wins a tie, so that the result does not depend on the hash order. */
static void pick(const struct hash *votes, struct slide *slide)
{
	for (size_t i = 0; votes->slots && i <= votes->mask; i++) {
		const struct hash_entry *entry = &votes->slots[i];

		if (!entry->value)
			continue;
		if (entry->value > slide->hits ||
		    (entry->value == slide->hits && entry->key.a < slide->by)) {
			slide->runner_up = slide->hits;
			slide->hits = entry->value;
			slide->by = entry->key.a;
		} else if (entry->value > slide->runner_up) {
			slide->runner_up = entry->value;
		}
	}
}

bool slide_find(const uint64_t *starts, size_t nr_starts, const uint64_t *seen, size_t nr_seen,
		uint64_t step, struct slide *slide)
{
	struct classes classes;
	struct hash votes = { 0 };
	uint64_t pairs;
	size_t stride;

	memset(slide, 0, sizeof(*slide));
	if (nr_starts >= UINT32_MAX)
		return false;
	classes_init(&classes, starts, nr_starts, step);
	pairs = count_pairs(&classes, seen, nr_seen);
	stride = (size_t)(pairs / PAIRS_MAX) + 1;
	for (size_t i = 0; i < nr_seen; i += stride)
		vote(&classes, seen[i], &votes);
	pick(&votes, slide);
	hash_release(&votes);
	free(classes.order);
	return slide->hits >= HITS_MIN && slide->hits > 2 * slide->runner_up;
}

// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/histogram.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define STEP_BITS 6
#define STEPS ((uint64_t)1 << STEP_BITS)

static unsigned highest_bit(uint64_t value)
{
	return value ? 63 - (unsigned)__builtin_clzll(value) : 0;
}

static unsigned octave_of(uint64_t value)
{
	return value < STEPS ? 0 : highest_bit(value) - STEP_BITS + 1;
}

/* log2 of the width of its steps. */
static unsigned step_width(unsigned octave)
{
	return octave ? octave - 1 : 0;
}

static void count(struct histogram *h, uint64_t value)
{
	unsigned octave = octave_of(value);

	if (!h->octaves[octave])
		h->octaves[octave] = xcalloc(STEPS, sizeof(*h->octaves[octave]));
	h->octaves[octave][value >> step_width(octave) & (STEPS - 1)]++;
}

/* There are too many to keep them. */
static void count_values(struct histogram *h)
{
	for (size_t i = 0; i < h->count; i++)
		count(h, h->values[i]);
	free(h->values);
	h->values = NULL;
}

void histogram_add(struct histogram *h, uint64_t value)
{
	if (!h->count || value < h->min)
		h->min = value;
	if (value > h->max)
		h->max = value;
	if (h->count == HISTOGRAM_EXACT)
		count_values(h);
	if (h->count < HISTOGRAM_EXACT) {
		GROW(h->values, h->count + 1, h->cap);
		h->values[h->count] = value;
	} else {
		count(h, value);
	}
	h->count++;
}

static int by_value(const void *va, const void *vb)
{
	uint64_t a = *(const uint64_t *)va, b = *(const uint64_t *)vb;

	return a < b ? -1 : a > b;
}

static uint64_t middle(const struct histogram *h, unsigned octave, uint64_t step)
{
	uint64_t width = (uint64_t)1 << step_width(octave);
	uint64_t value = (octave ? STEPS + step : step) * width + width / 2;

	return value < h->min ? h->min : value > h->max ? h->max : value;
}

/* The nth smallest, from 1 on. */
static uint64_t nth(const struct histogram *h, uint64_t n)
{
	for (unsigned octave = 0; octave < HISTOGRAM_OCTAVES; octave++) {
		const uint64_t *steps = h->octaves[octave];

		for (uint64_t step = 0; steps && step < STEPS; step++) {
			if (n <= steps[step])
				return middle(h, octave, step);
			n -= steps[step];
		}
	}
	return h->max;
}

uint64_t histogram_quantile(const struct histogram *h, unsigned per_mille)
{
	/* Rounded up; split so that the products fit. */
	uint64_t rank = h->count / 1000 * per_mille + (h->count % 1000 * per_mille + 999) / 1000;
	uint64_t sorted[HISTOGRAM_EXACT];

	if (!h->count)
		return 0;
	rank = rank ? rank : 1;
	if (!h->values)
		return nth(h, rank);
	memcpy(sorted, h->values, h->count * sizeof(*sorted));
	qsort(sorted, h->count, sizeof(*sorted), by_value);
	return sorted[rank - 1];
}

void histogram_powers(const struct histogram *h, uint64_t counts[HISTOGRAM_BITS])
{
	memset(counts, 0, HISTOGRAM_BITS * sizeof(*counts));
	for (size_t i = 0; h->values && i < h->count; i++)
		counts[highest_bit(h->values[i])]++;
	for (unsigned octave = 0; octave < HISTOGRAM_OCTAVES; octave++) {
		const uint64_t *steps = h->octaves[octave];

		for (uint64_t step = 0; steps && step < STEPS; step++)
			counts[octave ? octave + STEP_BITS - 1 : highest_bit(step)] += steps[step];
	}
}

void histogram_release(struct histogram *h)
{
	free(h->values);
	for (unsigned i = 0; i < HISTOGRAM_OCTAVES; i++)
		free(h->octaves[i]);
	memset(h, 0, sizeof(*h));
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * histogram: how numbers are distributed, in memory that does not depend on how many there are. It keeps
 * the first few as they are. If there are more, it counts them in steps: 64 equal ones from each power of
 * two to the next. Then a quantile is off by at most 1/128, less than 0.8 %.
 */
#ifndef KSCOPE_BASE_HISTOGRAM_H
#define KSCOPE_BASE_HISTOGRAM_H

#include <stddef.h>
#include <stdint.h>

#define HISTOGRAM_EXACT 64   /* up to this many numbers are kept */
#define HISTOGRAM_OCTAVES 59 /* the first has the numbers below 64, each other one a power of two */
#define HISTOGRAM_BITS 64

struct histogram { /* zeroed: empty */
	uint64_t count, min, max;
	uint64_t *values; /* all of them; NULL: none, or too many */
	size_t cap;
	uint64_t *octaves[HISTOGRAM_OCTAVES]; /* counts; NULL: 0 */
};

void histogram_add(struct histogram *histogram, uint64_t value);
/* The smallest number that at least this many per mille do not exceed; 0 if there is none. */
uint64_t histogram_quantile(const struct histogram *histogram, unsigned per_mille);
/* How many are from 2^bit up to 2^(bit + 1), for each bit; 0 counts as 1. This is exact. */
void histogram_powers(const struct histogram *histogram, uint64_t counts[HISTOGRAM_BITS]);
void histogram_release(struct histogram *histogram);

#endif

// SPDX-License-Identifier: GPL-2.0-or-later
/* base/histogram: quantiles are those of the sorted numbers, within the error that its header states. */
#include <stdlib.h>
#include <string.h>

#include "base/histogram.h"
#include "test.h"

#define MANY 20000

static uint64_t numbers[MANY];

static int by_value(const void *va, const void *vb)
{
	uint64_t a = *(const uint64_t *)va, b = *(const uint64_t *)vb;

	return a < b ? -1 : a > b;
}

static bool is_near(uint64_t got, uint64_t want)
{
	uint64_t off = got > want ? got - want : want - got;

	return off <= want / 128;
}

/* Compares all quantiles of the first numbers with the sorted ones. */
static void test_quantiles(const char *name, size_t nr, bool exact)
{
	struct histogram h = { 0 };
	bool good = true;

	for (size_t i = 0; i < nr; i++)
		histogram_add(&h, numbers[i]);
	qsort(numbers, nr, sizeof(*numbers), by_value);
	for (unsigned q = 0; q <= 1000; q++) {
		size_t rank = (nr * q + 999) / 1000;
		uint64_t want = numbers[rank ? rank - 1 : 0], got = histogram_quantile(&h, q);

		good &= exact ? got == want : is_near(got, want);
		good &= got >= h.min && got <= h.max;
	}
	good &= h.count == nr && h.min == numbers[0] && h.max == numbers[nr - 1];
	check(name, good);
	histogram_release(&h);
}

static void test_powers(const char *name, size_t nr)
{
	struct histogram h = { 0 };
	uint64_t counts[HISTOGRAM_BITS], want[HISTOGRAM_BITS] = { 0 };

	for (size_t i = 0; i < nr; i++) {
		unsigned bit = 0;

		while (numbers[i] >> bit > 1)
			bit++;
		want[bit]++;
		histogram_add(&h, numbers[i]);
	}
	histogram_powers(&h, counts);
	check(name, !memcmp(counts, want, sizeof(counts)));
	histogram_release(&h);
}

/* Numbers of all sizes, many small ones and the extremes among them. */
static void make_numbers(void)
{
	uint64_t state = 1;

	for (size_t i = 0; i < MANY; i++) {
		uint64_t high = next_random(&state), low = next_random(&state);

		numbers[i] = (high << 32 | low) >> next_random(&state) % 64;
	}
	numbers[7] = 0;
	numbers[70] = UINT64_MAX;
	for (unsigned bit = 0; bit < 64; bit++) {
		numbers[1000 + 2 * bit] = (uint64_t)1 << bit;
		numbers[1001 + 2 * bit] = ((uint64_t)1 << bit) - 1;
	}
}

static void test_memory(void)
{
	struct histogram h = { 0 };
	size_t octaves = 0;

	for (unsigned i = 0; i < 1000000; i++)
		histogram_add(&h, 1000 + i % 3000);
	for (unsigned i = 0; i < HISTOGRAM_OCTAVES; i++)
		octaves += h.octaves[i] != NULL;
	check("histogram: memory for the powers of two that occur", octaves == 3 && !h.values);
	histogram_release(&h);
	check("histogram: released", !h.count && !h.octaves[4]);
}

static void test_few(void)
{
	struct histogram h = { 0 };

	check("histogram: empty", histogram_quantile(&h, 500) == 0);
	histogram_add(&h, 12345);
	check("histogram: one number is every quantile",
	      histogram_quantile(&h, 0) == 12345 && histogram_quantile(&h, 500) == 12345 &&
		      histogram_quantile(&h, 1000) == 12345);
	histogram_add(&h, 5);
	check("histogram: the median of two is the smaller", histogram_quantile(&h, 500) == 5);
	check("histogram: the 99th percentile is the larger", histogram_quantile(&h, 990) == 12345);
	histogram_release(&h);
}

int main(void)
{
	make_numbers();
	test_few();
	test_quantiles("histogram: exact while there are few", HISTOGRAM_EXACT, true);
	make_numbers();
	test_quantiles("histogram: one more", HISTOGRAM_EXACT + 1, false);
	make_numbers();
	test_quantiles("histogram: many", MANY, false);
	for (size_t i = 0; i < MANY; i++)
		numbers[i] = i % 128;
	test_quantiles("histogram: small numbers are exact", MANY, true);
	make_numbers();
	test_powers("histogram: powers of two, few", HISTOGRAM_EXACT);
	test_powers("histogram: powers of two, many", MANY);
	test_memory();
	return test_result();
}

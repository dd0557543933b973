// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/stats.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/mem.h"

/* ---- Student's t ---- */

#define TINY 1e-300
#define PRECISION 1e-16
#define MAX_STEPS 10000

/* A denominator of a continued fraction. */
static double not_zero(double x)
{
	return fabs(x) < TINY ? TINY : x;
}

/* The continued fraction of the incomplete beta function, evaluated from its front (Lentz's method). */
static double beta_fraction(double x, double a, double b)
{
	double c = 1, d = 1 / not_zero(1 - (a + b) * x / (a + 1)), value = d;

	for (int m = 1; m < MAX_STEPS; m++) {
		double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
		double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));

		d = 1 / not_zero(1 + even * d);
		c = not_zero(1 + even / c);
		value *= d * c;
		d = 1 / not_zero(1 + odd * d);
		c = not_zero(1 + odd / c);
		value *= d * c;
		if (fabs(d * c - 1) < PRECISION)
			break;
	}
	return value;
}

/* The regularized incomplete beta function of x. y is 1 - x, without the rounding of that difference. */
static double beta_share(double x, double y, double a, double b)
{
	double front;

	if (x <= 0 || y <= 0)
		return x <= 0 ? 0 : 1;
	front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log(y));
	if (x < (a + 1) / (a + b + 2))
		return front * beta_fraction(x, a, b) / a;
	return 1 - front * beta_fraction(y, b, a) / b;
}

double stats_student(double t, double df)
{
	double all = df + t * t;

	if (isnan(t) || !(df > 0))
		return 1;
	if (isinf(all))
		return 0;
	return beta_share(df / all, t * t / all, df / 2, 0.5);
}

/* ---- counts ---- */

/* More samples would not change the result, and sums would be less exact. */
#define MOST 1e9
/* With a larger variance, the normal distribution is as good as the sum. */
#define MANY 1e6

static double log_choose(double n, double k)
{
	return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1);
}

static void limit_counts(double to[2], const double counts[2])
{
	double sum = counts[0] + counts[1], by = sum > MOST ? MOST / sum : 1;

	to[0] = round(counts[0] * by);
	to[1] = round(counts[1] * by);
}

static double normal_tails(double distance, double variance)
{
	double z = fmax(fabs(distance) - 0.5, 0) / sqrt(variance);

	return erfc(z / M_SQRT2);
}

/* How many of all hits are on the first side: each is by the same odds, or it takes the place of a miss. */
struct urn {
	double hits;
	bool replaces;
	double odds;
	double first, misses; /* if replaces: hits and misses of the first side, misses of both */
};

/* The probability of k + 1 hits, divided by that of k. */
static double more_likely(const struct urn *urn, double k)
{
	if (!urn->replaces)
		return (urn->hits - k) / (k + 1) * urn->odds;
	return (urn->hits - k) * (urn->first - k) / ((k + 1) * (urn->misses - urn->first + k + 1));
}

/* The sum of the probabilities from k, which is `at`, up (by: 1) or down (-1). */
static double tail(const struct urn *urn, double k, double at, int by)
{
	double sum = at;

	while (at > sum * PRECISION) {
		at = by > 0 ? at * more_likely(urn, k) : at / more_likely(urn, k - 1);
		k += by;
		if (!isfinite(at))
			break;
		sum += at;
	}
	return sum;
}

/* Sums up only the tail away from the mean, whose terms become smaller from the first on. */
static double two_tails(const struct urn *urn, double k, double at, double mean)
{
	return fmin(2 * tail(urn, k, at, k > mean ? 1 : -1), 1);
}

double stats_fisher(const double hits[2], const double misses[2])
{
	struct urn urn = { .replaces = true };
	double hit[2], miss[2], all, mean, variance, at;

	limit_counts(hit, hits);
	limit_counts(miss, misses);
	urn.hits = hit[0] + hit[1];
	urn.misses = miss[0] + miss[1];
	urn.first = hit[0] + miss[0];
	all = urn.hits + urn.misses;
	if (!(urn.hits > 0 && urn.misses > 0 && urn.first > 0 && urn.first < all))
		return 1;
	mean = urn.hits * urn.first / all;
	variance = mean * (urn.misses / all) * (all - urn.first) / (all - 1);
	if (variance > MANY)
		return normal_tails(hit[0] - mean, variance);
	at = exp(log_choose(urn.hits, hit[0]) + log_choose(urn.misses, miss[0]) -
		 log_choose(all, urn.first));
	return two_tails(&urn, hit[0], at, mean);
}

double stats_binomial(const double hits[2], double expected)
{
	struct urn urn = { .odds = expected / (1 - expected) };
	double hit[2], mean, variance, at;

	limit_counts(hit, hits);
	urn.hits = hit[0] + hit[1];
	if (!(urn.hits > 0 && expected > 0 && expected < 1))
		return 1;
	mean = urn.hits * expected;
	variance = mean * (1 - expected);
	if (variance > MANY)
		return normal_tails(hit[0] - mean, variance);
	at = exp(log_choose(urn.hits, hit[0]) + hit[0] * log(expected) + hit[1] * log1p(-expected));
	return two_tails(&urn, hit[0], at, mean);
}

/* ---- many tests ---- */

static int by_p(const void *va, const void *vb)
{
	const struct stats_test *a = *(struct stats_test *const *)va;
	const struct stats_test *b = *(struct stats_test *const *)vb;

	return a->p < b->p ? -1 : a->p > b->p;
}

void stats_holm(struct stats_test *const *tests, size_t nr)
{
	struct stats_test **sorted = xcalloc(nr + 1, sizeof(*sorted));
	double largest = 0;

	for (size_t i = 0; i < nr; i++)
		sorted[i] = tests[i];
	qsort(sorted, nr, sizeof(*sorted), by_p);
	for (size_t i = 0; i < nr; i++) {
		largest = fmax(largest, sorted[i]->p * (double)(nr - i));
		sorted[i]->adjusted = fmin(largest, 1);
	}
	free(sorted);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * stats: the probability that a difference is due to chance. All p-values are two-sided: the probability of a difference
 * at least as large as the observed one if there is no real difference. They are 1 if there is nothing to compare.
 */
#ifndef KSCOPE_BASE_STATS_H
#define KSCOPE_BASE_STATS_H

#include <stddef.h>

/* Student's t with `df` degrees of freedom, which may be a fraction. */
double stats_student(double t, double df);
/*
 * Fisher's exact test: hits[0] of hits[0] + misses[0] samples, against hits[1] of hits[1] + misses[1]. Counts are
 * rounded. Twice the smaller tail.
 */
double stats_fisher(const double hits[2], const double misses[2]);
/*
 * The exact binomial test: whether hits[0] is more or less than the share `expected` of both hits. Counts are rounded.
 * Twice the smaller tail.
 */
double stats_binomial(const double hits[2], double expected);

struct stats_test {
	double p;
	double adjusted; /* set by stats_holm() */
};

/*
 * Holm's correction for many tests: the probability of a false alarm anywhere among the tests with adjusted <= x is at
 * most x, however the tests depend on each other.
 */
void stats_holm(struct stats_test *const *tests, size_t nr);

#endif

// SPDX-License-Identifier: GPL-2.0-or-later
#include "pass/compare_parts.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"

/* With fewer samples, or a shorter time, blocks are no measure of noise. */
#define MIN_SAMPLES (4 * COMPARE_BLOCKS)
#define MIN_BLOCKS (BLOCKS_MAX / 2)

static double number(const struct compare *c, const struct compare_sums *sums)
{
	return (double)(c->total ? sums->total : sums->self);
}

static double value_in(const struct compare *c, const struct compare_event *event, size_t row,
		       size_t run)
{
	double value = number(c, compare_cell(c, event, row, run));

	return c->absolute ? value : value / (double)event->runs[run].sums.self;
}

/* The p-value if each sample is independent of the others. */
static double test_counts(const struct compare *c, const struct compare_event *event, size_t row,
			  double *samples)
{
	/* In samples of mean weight. */
	double hits[2] = { 0 }, all[2] = { 0 }, rate[2] = { 0 }, misses[2];
	double squares = 0, all_squares = 0, size, other_size;

	for (size_t r = 0; r < c->nr_runs; r++) {
		const struct compare_sums *run = &event->runs[r].sums;
		const struct compare_sums *sums = compare_cell(c, event, row, r);
		double weight = (double)run->self / (double)run->samples;
		bool after = compare_is_after(c, r);

		if (!run->self)
			continue;
		hits[after] += number(c, sums) / weight;
		all[after] += (double)run->samples;
		rate[after] += 1 / weight;
		squares += sums->squares / weight / weight;
		all_squares += run->squares / weight / weight;
	}
	/* If weights differ: the number of equally weighted samples that would vary as much. */
	size = squares / (hits[0] + hits[1]);
	other_size = (all_squares - squares) / (all[0] + all[1] - hits[0] - hits[1]);
	for (int side = 0; side < 2; side++) {
		misses[side] = fmax(all[side] - hits[side], 0) / (other_size > 0 ? other_size : 1);
		hits[side] /= size > 0 ? size : 1;
	}
	*samples = hits[0] + hits[1];
	if (c->absolute)
		return stats_binomial(hits, rate[0] / (rate[0] + rate[1]));
	return stats_fisher(hits, misses);
}

static double test_t(double difference, double variance, double df)
{
	if (!(variance > 0))
		return difference == 0 ? 1 : 0;
	return stats_student(difference / sqrt(variance), df);
}

/* In parts of the recording. */
static double length_of_block(const struct compare_run *run, size_t block)
{
	size_t nr = run->nr_blocks, of = COMPARE_BLOCKS;
	size_t first = (block * nr + of - 1) / of, end = ((block + 1) * nr + of - 1) / of;

	return (double)(end - first) / (double)nr;
}

/* The block's difference from its expected part of the whole, divided by the whole. */
static double off_in_block(const struct compare *c, const struct compare_event *event, size_t row,
			   size_t run, size_t block)
{
	const struct compare_run *all = &event->runs[run];
	double value = event->blocks[row * 2 + run][block];

	if (c->absolute)
		return value -
		       number(c, compare_cell(c, event, row, run)) * length_of_block(all, block);
	return (value - value_in(c, event, row, run) * all->blocks[block]) / (double)all->sums.self;
}

static double test_blocks(const struct compare *c, const struct compare_event *event, size_t row)
{
	double sum = 0;

	for (size_t b = 0; b < COMPARE_BLOCKS; b++) {
		double off = off_in_block(c, event, row, 1, b) - off_in_block(c, event, row, 0, b);

		sum += off * off;
	}
	return test_t(event->rows[row].value[AFTER] - event->rows[row].value[BEFORE],
		      sum * COMPARE_BLOCKS / (COMPARE_BLOCKS - 1), COMPARE_BLOCKS - 1);
}

static bool all_exact(const struct compare *c, const struct compare_event *event)
{
	for (size_t r = 0; r < c->nr_runs; r++) {
		if (event->runs[r].sums.self && !event->runs[r].exact)
			return false;
	}
	return true;
}

/* The smallest variance that this number of samples allows. */
static double least_variance(const struct compare *c, const struct compare_event *event, size_t row,
			     size_t run)
{
	const struct compare_run *all = &event->runs[run];
	double squares = compare_cell(c, event, row, run)->squares, weight = (double)all->sums.self;
	double share = number(c, compare_cell(c, event, row, run)) / weight;

	if (all->exact)
		return 0;
	if (c->absolute)
		return squares;
	return (squares * (1 - 2 * share) + share * share * all->sums.squares) / weight / weight;
}

static double test_runs(const struct compare *c, const struct compare_event *event, size_t row)
{
	const struct compare_row *found = &event->rows[row];
	double n[2] = { (double)event->nr_runs[0], (double)event->nr_runs[1] },
	       df = n[0] + n[1] - 2;
	double squares[2] = { 0 }, least = 0, part[2], sum;

	for (size_t r = 0; r < c->nr_runs; r++) {
		bool side = compare_is_after(c, r);
		double off;

		if (!event->runs[r].sums.self)
			continue;
		off = value_in(c, event, row, r) - found->value[side];
		squares[side] += off * off;
		least += least_variance(c, event, row, r) / n[side] / n[side];
	}
	if (n[0] == 1 || n[1] == 1) { /* its runs may vary as those of the other side */
		sum = (squares[0] + squares[1]) / df * (1 / n[0] + 1 / n[1]);
	} else {
		part[0] = squares[0] / (n[0] - 1) / n[0];
		part[1] = squares[1] / (n[1] - 1) / n[1];
		sum = part[0] + part[1];
		if (sum > 0)
			df = sum * sum /
			     (part[0] * part[0] / (n[0] - 1) + part[1] * part[1] / (n[1] - 1));
	}
	return test_t(found->value[AFTER] - found->value[BEFORE], fmax(sum, least), df);
}

static bool has_blocks(const struct compare *c, const struct compare_event *event)
{
	for (size_t r = 0; r < c->nr_runs; r++) {
		const struct compare_run *run = &event->runs[r];

		if (run->untimed || run->sums.samples < MIN_SAMPLES || run->nr_blocks < MIN_BLOCKS)
			return false;
	}
	return compare_keeps_blocks(c);
}

static enum compare_method method_of(const struct compare *c, const struct compare_event *event)
{
	if (event->nr_runs[BEFORE] + event->nr_runs[AFTER] > 2)
		return METHOD_RUNS;
	if (all_exact(c, event))
		return METHOD_EXACT;
	return has_blocks(c, event) ? METHOD_BLOCKS : METHOD_COUNTS;
}

static void test_row(const struct compare *c, struct compare_event *event, size_t nr)
{
	struct compare_row *row = &event->rows[nr];
	double counted = 1, samples = 0;

	row->test.p = row->test.adjusted = 1;
	if (event->method == METHOD_EXACT) {
		row->test.p = row->test.adjusted = row->change == CHANGE_NONE;
		return;
	}
	row->tested = true;
	if (!all_exact(c, event)) {
		counted = test_counts(c, event, nr, &samples);
		row->tested = samples >= COMPARE_FEW - 0.5;
	}
	if (!row->tested)
		return;
	row->test.p = all_exact(c, event) ? 0 : counted;
	if (event->method == METHOD_RUNS)
		row->test.p = fmax(row->test.p, test_runs(c, event, nr));
	if (event->method == METHOD_BLOCKS)
		row->test.p = fmax(row->test.p, test_blocks(c, event, nr));
}

static void sum_up_row(const struct compare *c, const struct compare_event *event, size_t nr)
{
	struct compare_row *row = &event->rows[nr];
	double difference;

	for (size_t r = 0; r < c->nr_runs; r++) {
		const struct compare_sums *sums = compare_cell(c, event, nr, r);
		double all = (double)event->runs[r].sums.self;
		bool side = compare_is_after(c, r);
		double n = (double)event->nr_runs[side];

		if (all <= 0)
			continue;
		row->sums[side].self += sums->self;
		row->sums[side].total += sums->total;
		row->sums[side].samples += sums->samples;
		row->self[side] += (double)sums->self / all / n;
		row->total[side] += (double)sums->total / all / n;
		row->value[side] += value_in(c, event, nr, r) / n;
	}
	difference = row->value[AFTER] - row->value[BEFORE];
	/* Quotients and means of equal numbers may differ in their last bits. */
	row->change = fabs(difference) <= 1e-12 * fmax(row->value[AFTER], row->value[BEFORE])
			      ? CHANGE_NONE
			      : CHANGE_NOISE;
}

static void finish_event(const struct compare *c, struct compare_event *event)
{
	for (size_t r = 0; r < c->nr_runs; r++)
		event->nr_runs[compare_is_after(c, r)] += event->runs[r].sums.self > 0;
	event->has[BEFORE] = event->nr_runs[BEFORE];
	event->has[AFTER] = event->nr_runs[AFTER];
	if (!event->has[BEFORE] || !event->has[AFTER])
		return;
	event->method = method_of(c, event);
	for (size_t i = 0; i < event->nr; i++) {
		sum_up_row(c, event, i);
		test_row(c, event, i);
		event->tested += event->rows[i].tested;
	}
}

static void adjust(struct compare *c)
{
	struct stats_test **tests;
	size_t nr = 0, cap = 0;

	for (size_t e = 0; e < c->nr; e++)
		cap += c->events[e].tested;
	tests = xcalloc(cap + 1, sizeof(*tests));
	for (size_t e = 0; e < c->nr; e++) {
		struct compare_event *event = &c->events[e];

		for (size_t i = 0; i < event->nr; i++) {
			if (event->rows[i].tested)
				tests[nr++] = &event->rows[i].test;
		}
	}
	stats_holm(tests, nr);
	free(tests);
}

void compare_finish(struct compare *c)
{
	for (size_t e = 0; e < c->nr; e++)
		finish_event(c, &c->events[e]);
	adjust(c);
	for (size_t e = 0; e < c->nr; e++) {
		for (size_t i = 0; i < c->events[e].nr; i++) {
			struct compare_row *row = &c->events[e].rows[i];

			if (row->change == CHANGE_NOISE && row->test.adjusted <= COMPARE_LEVEL)
				row->change = row->value[AFTER] > row->value[BEFORE] ? CHANGE_MORE
										     : CHANGE_LESS;
		}
	}
}

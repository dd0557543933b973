/* SPDX-License-Identifier: GPL-2.0-or-later */
/* compare_parts: what compare.c, which adds up runs, and compare_noise.c, which tests differences, share. */
#ifndef KSCOPE_PASS_COMPARE_PARTS_H
#define KSCOPE_PASS_COMPARE_PARTS_H

#include "pass/compare.h"

/* Blocks are kept only if each side has one run. */
static inline bool compare_keeps_blocks(const struct compare *c)
{
	return c->nr_runs == 2;
}

static inline struct compare_sums *
compare_cell(const struct compare *c, const struct compare_event *event, size_t row, size_t run)
{
	return &event->cells[row * c->nr_runs + run];
}

static inline bool compare_is_after(const struct compare *c, size_t run)
{
	return run >= c->nr_before;
}

#endif

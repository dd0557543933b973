/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * compare: recordings from before and after a change, row by row, and which differences are more than chance. Events are
 * matched by name, functions by name and binary. A function in a binary that only one side has, as vmlinux-6.1, is matched
 * by name if it is the only one.
 *
 * Idle time is left out: how long cpus wait depends on what else the host does, and is in the shares of everything else.
 *
 * What is chance depends on what is known, in this order:
 *  - runs: if there are several recordings, how much they vary (Welch's t; Student's if a side has a single one);
 *  - exact: sums of traces and logs have no chance in them, every difference counts;
 *  - blocks: how much the shares vary over 32 blocks of time, compared block by block, so that phases which both recordings
 *    have are no noise, and samples that come in bursts count as few (a paired t with 31 degrees of freedom);
 *  - counts: without times, or with few samples, as if each sample were independent (Fisher, or binomial).
 * Runs and blocks also have to pass the test of counts: rare samples may seem not to vary. Weights that vary lower the number
 * of samples that counts. The p-values of all rows of all events are adjusted together, by Holm's correction.
 */
#ifndef KSCOPE_PASS_COMPARE_H
#define KSCOPE_PASS_COMPARE_H

#include "base/stats.h"
#include "pass/blocks.h"
#include "pass/flat.h"

#define COMPARE_BLOCKS 32
#define COMPARE_LEVEL 0.05 /* the probability of a false alarm anywhere */
#define COMPARE_FEW 6	   /* with fewer samples, no difference can be significant */

enum compare_side { BEFORE, AFTER };
enum compare_method { METHOD_EXACT, METHOD_RUNS, METHOD_BLOCKS, METHOD_COUNTS };
enum compare_change { CHANGE_NONE, CHANGE_NOISE, CHANGE_LESS, CHANGE_MORE };

struct compare_sums { /* of a row, or of everything, in one run */
	uint64_t self, total, samples;
	double squares; /* of the weights of what is compared: self or total */
};

struct compare_run {		     /* of one event */
	struct compare_sums sums;    /* self is the total */
	uint64_t idle_samples, idle; /* left out of all sums */
	size_t nr_blocks;	     /* of the recording */
	bool exact, untimed;
	uint64_t unused_weight; /* if samples are counted */
	double blocks[COMPARE_BLOCKS];
};

struct compare_row {
	uint32_t name, binary;
	struct compare_sums sums[2];
	double value[2];	  /* that is compared: the mean of the runs */
	double self[2], total[2]; /* shares: likewise */
	struct stats_test test;	  /* p is 1 if there are too few samples */
	bool tested;		  /* counts in the correction for many tests */
	enum compare_change change;
};

struct compare_event {
	uint32_t name;
	const char *unit;
	bool weight;	/* numbers are weights, not samples */
	bool allocated; /* it counts bytes or allocations */
	enum compare_method method;
	bool has[2]; /* samples on that side */
	size_t nr_runs[2];
	size_t tested;
	struct compare_run *runs; /* all of the comparison; without samples: zeroed */
	struct compare_row *rows;
	size_t nr, cap;
	struct compare_sums *cells; /* by row and run */
	size_t cap_cells;
	double (*blocks)[COMPARE_BLOCKS]; /* likewise; only if each side has one run */
	size_t cap_blocks;
	struct hash index; /* (name, binary) to rows */
};

struct compare {
	/* Set before compare_add(). */
	struct strtab *strings; /* borrowed, of all runs */
	struct tally_options options;
	enum flat_by by;
	bool total;    /* compare totals, not self */
	bool absolute; /* compare numbers, not shares */
	bool idle;     /* waiting for an interrupt counts, too */
	size_t nr_before, nr_runs;

	struct compare_event *events; /* in the order of their first samples */
	size_t nr, cap;
};

/* The keys of the tallies that compare_add() needs. */
unsigned compare_tally_by(enum flat_by by);
/* Adds the samples of one source of a run. Runs are added in order, those from before first. */
int compare_add(struct compare *c, size_t run, struct blocks_part *part, struct err *err);
/* What the rows of a run have, for --verify. */
struct written compare_written(const struct compare *c, size_t run);
void compare_finish(struct compare *c);
void compare_release(struct compare *c);

/* In percentage points of everything, or, with absolute numbers, in percent of everything before. */
double compare_points(const struct compare *c, const struct compare_event *event,
		      const struct compare_row *row);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * compare: compares recordings from before and after a change, row by row, and tests which differences are significant. It
 * matches events by name, and functions by name and binary. If only one side has a binary, such as vmlinux-6.1, it matches
 * functions by name alone, where the name is unique.
 *
 * It leaves out idle time: how long cpus wait depends on the load of the host, and would change all other shares.
 *
 * It uses the first test that the data allows:
 *  - runs: several recordings, which show how much runs vary (Welch's t; Student's if a side has a single one);
 *  - exact: sums of traces and logs have no noise, so every difference counts;
 *  - blocks: how much the shares vary over 32 blocks of time, compared block by block, so that phases which both recordings
 *    have are not noise, and bursts of samples count little (a paired t with 31 degrees of freedom);
 *  - counts: without times, or with few samples, each sample is taken as independent (Fisher, or binomial).
 * With runs and blocks, the test of counts must confirm a difference, because rare samples may seem not to vary. Weights that
 * differ lower the effective number of samples. Holm's correction adjusts the p-values of all rows of all events together.
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
	struct hash index;    /* (name, binary) to rows */
	struct hash binaries; /* (binary, run): the run has code of it */
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
	struct hash by_name; /* of the events: index + 1 */
};

/* The keys of the tallies that compare_add() needs. */
unsigned compare_tally_by(enum flat_by by);
/* Adds the samples of one source of a run. Add runs in order, those from before first. */
int compare_add(struct compare *c, size_t run, struct blocks_part *part, struct err *err);
/* The sum over the rows of a run, for --verify. */
struct written compare_written(const struct compare *c, size_t run);
void compare_finish(struct compare *c);
void compare_release(struct compare *c);

/* In percentage points of everything, or, with absolute numbers, in percent of everything before. */
double compare_points(const struct compare *c, const struct compare_event *event,
		      const struct compare_row *row);

#endif

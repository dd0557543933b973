/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * coverage: how often the lines, functions and conditional jumps of the binaries of a trace ran.
 *
 *	coverage	counts the straight runs between the branches of the trace, and the jumps between them
 *	coverage_code	the counts of one binary, by address
 *	coverage_lines	sums them up by line of source, at the end
 *
 * While the trace is read, memory follows the code that ran. Then each binary that ran is read from its first line to
 * its last, and a line that did not run takes a few bytes.
 */
#ifndef KSCOPE_PASS_COVERAGE_H
#define KSCOPE_PASS_COVERAGE_H

#include "model/world.h"
#include "pass/straight.h"

#define COVERAGE_STATES (STRAIGHT_GAP + 1)

enum coverage_kind {
	COVERAGE_RAN,	  /* [a, b); it was interrupted, or the trace does not tell where it went */
	COVERAGE_RAN_OUT, /* [a, b), and a branch is at its end */
	COVERAGE_JUMPED,  /* from a to b; a is 0 if that is another binary */
	COVERAGE_LEFT,	  /* likewise, but what ran at b is not selected */
	COVERAGE_CAME,	  /* likewise, but what ran at a is not selected */
};

struct coverage_count {
	uint64_t a, b; /* addresses in the ELF */
	uint32_t image;
	enum coverage_kind kind;
	uint64_t count;
};

struct coverage_line {
	uint32_t file, line; /* file: handle */
	uint64_t count;
};

struct coverage_function {	   /* with its inlined calls; of all with this name in the file */
	uint32_t file, line, name; /* the first line */
	uint64_t count;		   /* how often it was entered */
};

/* A conditional jump: the sum of its copies, in several functions and inlined calls. */
struct coverage_branch {
	uint32_t file, line;
	uint32_t nth; /* on its line, from 0 */
	bool ran;
	uint64_t goes_on, jumps;
};

struct coverage {
	struct world *world;
	struct straights straights;
	struct coverage_count *counts;
	size_t nr_counts, cap_counts, merged; /* merged: how many there were after the last merge */
	struct coverage_known *known;

	uint64_t branches;		   /* events of the trace, selected or not */
	uint64_t instructions;		   /* that were counted */
	uint64_t unknown[COVERAGE_STATES]; /* instructions that were not, by the reason why */
	uint64_t uncounted;		   /* runs whose number of instructions the input lacks */
	uint64_t gaps;			   /* in the trace */

	/* The results of coverage_sum(): by file, then by line. */
	struct coverage_line *lines;
	struct coverage_function *functions;
	struct coverage_branch *jumps;
	size_t nr_lines, nr_functions, nr_jumps, cap_lines, cap_functions, cap_jumps;
	uint32_t *lineless; /* images that ran and have no lines of source */
	size_t nr_lineless, cap_lineless;
};

void coverage_init(struct coverage *coverage, struct world *world);
void coverage_release(struct coverage *coverage);
/* Takes an EVENT_BRANCH or EVENT_NOTE, even if it is not selected. */
void coverage_add(struct coverage *coverage, const struct event *ev);
/* Sorts the counts by image, kind and address. coverage_sum() calls it. */
void coverage_end(struct coverage *coverage);
/* Call after the last event. Fills in lines, functions and jumps. */
void coverage_sum(struct coverage *coverage);

#endif

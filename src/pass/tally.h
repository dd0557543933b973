/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tally: sums up samples by stack and by the keys in `by`. Writers of aggregated formats and
 * reports keep a tally instead of the events.
 */
#ifndef KSCOPE_PASS_TALLY_H
#define KSCOPE_PASS_TALLY_H

#include "format.h"
#include "model/world.h"
#include "pass/tree.h"

/* What the numbers and frames of folded stacks, flame graphs and reports mean. */
struct tally_options {
	bool no_inline; /* inlined functions are not frames */
	bool lines;	/* file:line in names */
	enum measure { MEASURE_DEFAULT, MEASURE_SAMPLES, MEASURE_WEIGHT } measure;
	enum root { ROOT_COMM, ROOT_PID, ROOT_TID, ROOT_NONE } root; /* the outermost frames */
	bool inverted;						     /* merge by leaf */
};

/* Into struct tally_options: what the numbers and frames mean, and how stacks are put together. */
extern const struct option_table count_table, no_inline_table, tree_table;
/* The part of count_table for tables of sums, which have no lines. */
extern const struct option_table measure_table;
/* All of these, for OPTION_USES(). */
#define TALLY_OPTIONS(owner, member)                                                              \
	{ &count_table, offsetof(owner, member) }, { &no_inline_table, offsetof(owner, member) }, \
	{                                                                                         \
		&tree_table, offsetof(owner, member)                                              \
	}

enum tally_by { BY_SOURCE = 1, BY_COMM = 2, BY_PID = 4, BY_TID = 8, BY_CPU = 16 };

struct tally_entry { /* keys that are not in tally.by are 0 */
	uint32_t stack, source, comm, pid, tid, cpu;
	uint64_t samples, weight;
};

struct tally {
	struct world *world; /* borrowed */
	unsigned by;
	struct tally_entry *entries;
	size_t nr, cap;
	struct hash index;
};

void tally_init(struct tally *tally, struct world *world, unsigned by);
void tally_release(struct tally *tally);
/* Both return the index of the entry. */
size_t tally_add(struct tally *tally, const struct event *sample);
size_t tally_add_entry(struct tally *tally, const struct tally_entry *entry);

/* The keys that the options need, and whether numbers are weights. */
unsigned tally_by_options(const struct tally_options *options);
bool tally_counts_weight(const struct tally *tally, const struct tally_options *options,
			 enum measure otherwise);
/* "samples", "bytes", "cycles"... */
const char *tally_unit(const struct tally *tally, bool weight);

struct tally_view {
	const struct tally_options *options;
	bool weight;  /* the numbers are weights, not samples */
	bool before;  /* they go to the other side of a differential tree */
	uint64_t min; /* omit the children of smaller nodes, keep their value; 0: keep all */
};

/*
 * Adds the stacks to a tree: below their source if there are several, and below their task. Does
 * not call tree_finish().
 */
void tally_tree(struct tally *tally, struct tree *tree, const struct tally_view *view);
/* The sum of all entries. */
uint64_t tally_total(const struct tally *tally, bool weight);

#endif

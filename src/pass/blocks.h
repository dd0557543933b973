/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * blocks: a tally for each of up to BLOCKS_MAX blocks of time, all of the same length. When the samples need more blocks, the
 * length doubles, so that at the end at least half of the blocks are in use, however long the recording is.
 */
#ifndef KSCOPE_PASS_BLOCKS_H
#define KSCOPE_PASS_BLOCKS_H

#include "pass/tally.h"

#define BLOCKS_MAX 128

struct block {
	struct tally tally;
	double *squares; /* by entry: the sum of weight * weight of single samples */
	size_t cap;
};

struct blocks_source {	  /* about all samples of a source */
	bool exact;	  /* they are sums of a trace or of a log, not random samples */
	bool untimed;	  /* one of them has no time */
	bool measured;	  /* there is one */
	size_t first, nr; /* after blocks_sort(): of its entries, in `places` */
};

struct blocks_place { /* of an entry */
	uint32_t block, entry;
};

struct blocks {
	struct block all[BLOCKS_MAX];
	size_t nr;		       /* up to the last one with samples */
	uint64_t start, width;	       /* ns; width 0: no sample has a time */
	struct blocks_source *sources; /* by handle */
	size_t nr_sources, cap_sources;
	struct blocks_place *places; /* by source, then by block */
};

/* The entries of one source, block by block. */
struct blocks_part {
	uint32_t source;
	struct blocks_source facts;
	struct tally all; /* of no block in particular */
	double *squares;
	size_t ends[BLOCKS_MAX]; /* by block: where its entries end */
	size_t nr;		 /* blocks of the recording */
};

void blocks_init(struct blocks *blocks, struct world *world, unsigned by);
void blocks_add(struct blocks *blocks, const struct event *sample);
void blocks_release(struct blocks *blocks);
/* Call it once, after the last sample and before blocks_part(). */
void blocks_sort(struct blocks *blocks);
/* False if the source has no samples. Else the caller releases the part. */
bool blocks_part(const struct blocks *blocks, uint32_t source, struct blocks_part *part);
void blocks_part_release(struct blocks_part *part);

#endif

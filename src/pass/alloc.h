/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * alloc: what allocations and frees add up to: for each allocator, and for each of its sites (the
 * stacks that allocate) what is live, what there was in all, and how it stood when most was live.
 *
 * A block is charged to the stack that allocated it, also after a resize; a reused address is a
 * new block. A resize tells the old pointer only. If the block moved, its free comes under a
 * pointer that nobody announced: such a free is matched with the oldest block that may have moved,
 * and counted as a guess.
 */
#ifndef KSCOPE_PASS_ALLOC_H
#define KSCOPE_PASS_ALLOC_H

#include "base/hash.h"
#include "base/mem.h"
#include "format.h"

#define ALLOC_SERIES 1024
#define ALLOC_MAX_FINDINGS 100 /* kept for each allocator; all are counted */

struct alloc_sum {
	uint64_t allocs, frees, resizes;
	uint64_t total; /* bytes ever asked for; of a resize, what it grew by */
	uint64_t live, live_blocks;
	uint64_t peak, peak_blocks; /* of an allocator; of a site: its part in that */
};

struct alloc_site {
	struct alloc_sum sum;
	uint64_t peak_nr; /* the allocator's peak that sum.peak is of */
	uint32_t allocator, pid, tid;
	uint64_t context;
	const uint64_t *ips;
	uint32_t nr;
};

enum finding_kind {
	FINDING_DOUBLE_FREE,  /* the pointer had been freed */
	FINDING_UNKNOWN_FREE, /* nobody allocated the pointer in this recording */
	FINDING_UNKNOWN_RESIZE,
	FINDING_OVERLAP, /* allocated again while it was live: a free is missing */
	FINDING_KINDS
};

struct alloc_finding {
	enum finding_kind kind;
	uint64_t ptr, offset;
	uint32_t site; /* where it was done */
	uint32_t input;
};

struct alloc_queue { /* blocks that may have moved, oldest first */
	struct {
		uint32_t block;
		uint64_t born;
	} * at;
	size_t first, nr, cap;
};

struct alloc_heap { /* one allocator */
	const char *name;
	struct alloc_sum sum;
	uint64_t peak_nr, peak_event;
	uint64_t found[FINDING_KINDS];
	uint64_t guesses;
	struct alloc_finding *findings;
	size_t nr_findings, cap_findings;
	struct alloc_queue moved, resized; /* surely, perhaps */
	uint64_t series[ALLOC_SERIES];	   /* the most that was live in each stretch of events */
	size_t nr_series;
};

struct alloc_block {
	uint64_t ptr, size;
	uint64_t born; /* the event that made it: tells a reused slot from the old block */
	uint32_t site;
	bool live, queued;
};

struct alloc_pass {
	struct alloc_heap **heaps; /* [0] unused */
	size_t nr_heaps, cap_heaps;
	struct alloc_site *sites; /* [0] unused */
	size_t nr_sites, cap_sites;
	struct alloc_block *blocks; /* [0] unused */
	size_t nr_blocks, cap_blocks;
	struct hash heap_by_name, site_by_stack, block_by_ptr;
	struct arena arena;
	uint64_t events, stretch; /* events of one point of a series */
	size_t emitted;		  /* heaps and then sites handed out by alloc_sample() */
};

void alloc_init(struct alloc_pass *pass);
void alloc_release(struct alloc_pass *pass);
void alloc_add(struct alloc_pass *pass, const struct event *ev); /* an EVENT_ALLOC */
/* Brings peaks and series up to date; before any of the numbers are read. */
void alloc_finish(struct alloc_pass *pass);
/*
 * After alloc_finish(): a source for each allocator, then a sample for each site. False: that
 * was all.
 */
bool alloc_sample(struct alloc_pass *pass, enum value value, struct event *ev);

extern const char *const finding_names[FINDING_KINDS];

#endif

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
#include "model/world.h"

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
	uint32_t stack; /* interned by the maps of its time; 0 without a world */
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
	uint32_t source; /* of the samples that are made of it */
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
	bool outside; /* not selected: it is followed, but counts for nothing */
};

struct alloc_pass {
	struct world *world;	   /* borrowed; names the stacks */
	struct alloc_heap **heaps; /* [0] unused */
	size_t nr_heaps, cap_heaps;
	struct alloc_site *sites; /* [0] unused */
	size_t nr_sites, cap_sites;
	struct alloc_block *blocks; /* [0] unused */
	size_t nr_blocks, cap_blocks;
	struct hash heap_by_name, site_by_stack, block_by_ptr;
	struct arena arena;
	uint64_t events, stretch; /* events of one point of a series */
};

void alloc_init(struct alloc_pass *pass, struct world *world);
void alloc_release(struct alloc_pass *pass);
/*
 * An EVENT_ALLOC. A block counts if its allocation is selected, whenever and by whomever it is freed.
 */
void alloc_add(struct alloc_pass *pass, const struct event *ev);
/* Brings peaks and series up to date; before any of the numbers are read. */
void alloc_finish(struct alloc_pass *pass);
extern const char *const finding_names[FINDING_KINDS];

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * alloc: sums up allocations and frees, for each allocator and for each of its sites (the stacks
 * that allocate): what is live, the total, and what was live at the allocator's peak.
 *
 * A block is charged to the stack that allocated it, even after a resize; a reused address is a new
 * block. A resize event has only the old pointer. If the block moved, its free has a pointer that
 * was never allocated: kscope matches such a free with the oldest block that may have moved, and
 * counts it as a guess.
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
	uint64_t total; /* bytes ever allocated, including the growth by resizes */
	uint64_t live, live_blocks;
	uint64_t peak, peak_blocks; /* of an allocator; for a site: its share of that */
};

struct alloc_site {
	struct alloc_sum sum;
	uint64_t peak_nr; /* the allocator's peak that sum.peak belongs to */
	uint32_t allocator, pid, tid;
	uint64_t context;
	uint32_t stack; /* interned with the maps of its time; 0 without a world */
	const uint64_t *ips;
	uint32_t nr;
};

enum finding_kind {
	FINDING_DOUBLE_FREE,  /* the pointer was freed before */
	FINDING_UNKNOWN_FREE, /* the recording has no allocation of the pointer */
	FINDING_UNKNOWN_RESIZE,
	FINDING_OVERLAP, /* allocated again while it was live: a free is missing */
	FINDING_KINDS
};

struct alloc_finding {
	enum finding_kind kind;
	uint64_t ptr, offset;
	uint32_t site; /* of the event */
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
	uint32_t source; /* of the samples made from it */
	struct alloc_sum sum;
	uint64_t peak_nr, peak_event;
	uint64_t found[FINDING_KINDS];
	uint64_t guesses;
	struct alloc_finding *findings;
	size_t nr_findings, cap_findings;
	struct alloc_queue moved, resized; /* have moved; may have moved */
	uint64_t series[ALLOC_SERIES];	   /* maximum live bytes in each stretch of events */
	size_t nr_series;
};

struct alloc_block {
	uint64_t ptr, size;
	uint64_t born; /* the event that allocated it: identifies a reused slot */
	uint32_t site;
	bool live, queued;
	bool outside; /* not selected: followed, but not counted */
};

/* The site `by` changed the size of a block that counts: from 0 if the block is new, to 0 if it was freed. */
typedef void alloc_change(void *arg, uint32_t block, uint32_t by, uint64_t was, uint64_t now);

struct alloc_pass {
	struct world *world;	   /* borrowed; names the stacks */
	alloc_change *change;	   /* NULL: nobody asks */
	void *arg;		   /* of change() */
	uint32_t by;		   /* the site of the current event */
	struct alloc_heap **heaps; /* [0] unused */
	size_t nr_heaps, cap_heaps;
	struct alloc_site *sites; /* [0] unused */
	size_t nr_sites, cap_sites;
	struct alloc_block *blocks; /* [0] unused */
	size_t nr_blocks, cap_blocks;
	struct hash heap_by_name, site_by_stack, block_by_ptr;
	struct arena arena;
	uint64_t events, stretch; /* stretch: events per point of a series */
};

void alloc_init(struct alloc_pass *pass, struct world *world);
void alloc_release(struct alloc_pass *pass);
/* Adds an EVENT_ALLOC. A block counts if its allocation is selected, even if its free is not. */
void alloc_add(struct alloc_pass *pass, const struct event *ev);
/* Brings peaks and series up to date. Call it before reading the sums. */
void alloc_finish(struct alloc_pass *pass);
extern const char *const finding_names[FINDING_KINDS];
/* Warns of the findings of all heaps, and calls say() with each kind, as "HEAP: KIND", and their number. */
void alloc_say_findings(const struct alloc_pass *pass,
			void (*say)(void *arg, const char *kind, uint64_t nr), void *arg);

#endif

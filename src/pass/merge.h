/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * merge: several inputs as one stream in the order of time. What has no time comes at once, before
 * what follows it in its own input. Each input is expected to be in order itself.
 */
#ifndef KSCOPE_PASS_MERGE_H
#define KSCOPE_PASS_MERGE_H

#include "format.h"

struct merge_input {
	struct in in;
	struct reader reader;
	struct event next;
	bool pending, ended;
	bool waits; /* it had nothing when it was last asked, and has not ended */
};

struct merge {
	struct merge_input *inputs; /* fixed once opened: readers point into it */
	size_t nr;
	size_t last;
	struct err err; /* the first input's that failed */
};

/* format: NULL to detect. The readers borrow options, and the world's frames and library. */
int merge_open(struct merge *merge, const char *const *paths, size_t nr, const char *format,
	       const struct options *options, struct world *world, struct err *err);
#define MERGE_AGAIN READER_AGAIN

/*
 * 1: *ev, 0: the end, -1: merge->err, MERGE_AGAIN: nothing yet. The event and what it borrows stay
 * until the next call.
 */
int merge_next(struct merge *merge, struct event **ev);
/* Blocks until every input that had nothing has more, or ends. */
void merge_wait(struct merge *merge);
void merge_close(struct merge *merge);

#endif

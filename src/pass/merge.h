/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * merge: merges several inputs in order of time. Events without a time come at once, before the
 * next event of their input. Each input must be in order.
 */
#ifndef KSCOPE_PASS_MERGE_H
#define KSCOPE_PASS_MERGE_H

#include "format.h"

struct store;

struct merge_input {
	struct in in;
	const char *format;	    /* NULL: detect */
	const char *const *expects; /* formats that it should have (reader_expected()); NULL: any */
	struct reader reader;
	struct event read; /* by next() of its reader */
	struct event *next;
	size_t pending; /* number of events from `next` on */
	uint32_t seen;	/* EVENT_BIT()s of the events so far */
	bool ended;
	bool waits; /* its reader returned READER_AGAIN */
};

struct merge {
	struct merge_input *inputs; /* fixed once opened: readers point into it */
	size_t nr, cap;
	struct store *archives; /* of the inputs; NULL: none */
	size_t last;		/* the input of the last events */
	size_t taken;		/* their number */
	struct err err;		/* of the first input that failed */
};

/*
 * Opens the files; an archive becomes the recordings in it. format: NULL to detect. list: for an archive of
 * these inputs, or NULL.
 */
int merge_find(struct merge *merge, const char *const *paths, size_t nr, const char *format,
	       struct store *list, struct err *err);
/* Instead: one input that is already open, and that somebody watches; takes it over. */
void merge_take(struct merge *merge, struct in *in, const char *format);
/* Opens their readers, which borrow options, and the world's frames and library. */
int merge_open(struct merge *merge, const struct options *options, struct world *world,
	       struct err *err);
#define MERGE_AGAIN READER_AGAIN

/*
 * Returns 1 with *events set to the next *nr events, 0 at the end, -1 with merge->err set, or
 * MERGE_AGAIN if an input has nothing yet. The events are valid until the next call.
 */
int merge_next(struct merge *merge, struct event **events, size_t *nr);
/* Blocks until every input that had nothing has more data or ends. */
void merge_wait(struct merge *merge);
void merge_close(struct merge *merge);

#endif

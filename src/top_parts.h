/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * top_parts: shared by the files of top: top.c has the loop and the keys, top_rows.c what is in the table, top_draw.c the
 * screen, top_plain.c the text without a screen, top_save.c saves the recording so far.
 */
#ifndef KSCOPE_TOP_PARTS_H
#define KSCOPE_TOP_PARTS_H

#include <sys/types.h>

#include "glance.h"
#include "live.h"
#include "top.h"
#include "top_screen.h"

#define TOP_CPU_WIDE 22 /* columns of a cpu with a bar */
#define TOP_CPU_NARROW 9

enum top_sort { TOP_SELF, TOP_TOTAL, TOP_NOW, TOP_NAME, TOP_SORTS };
enum top_prompt { PROMPT_NONE, PROMPT_FILTER, PROMPT_SAVE };

struct top_save {  /* a conversion in a process of its own */
	pid_t pid; /* 0: none */
	int fd;	   /* its messages */
	char *path;
	struct buf said;
};

struct top {
	const struct top_setup *setup;
	struct live *live;
	struct live_view view;
	struct screen *screen; /* NULL: plain text */
	struct glance_source source;
	uint64_t began; /* live_clock() */
	pid_t parent;

	/* What the user asked for. */
	enum flat_by by;
	enum top_sort sort;
	bool paused, no_flame, help, quit;
	enum top_prompt prompt;
	struct buf input;   /* at the prompt */
	struct buf filter;  /* "" or NULL: none */
	size_t first, at;   /* rows: the first visible one, and that of the cursor */
	int visible;	    /* how many rows there is room for */
	struct buf message; /* "": none */
	struct top_save save;

	/* Rows of the view that match the filter, in order. */
	const struct live_row **rows;
	size_t nr_rows, cap_rows;
	struct buf scratch[2];
};

/* ---- top_rows.c ---- */

extern const char *const top_sorts[TOP_SORTS];
extern const char *const top_bys[]; /* by enum flat_by; what a row is */
/* Filters and sorts the rows of the view. */
void top_arrange(struct top *top);
/* A name for a terminal. which: one of two buffers, which own it. */
const char *top_name(struct top *top, unsigned which, uint32_t handle);
/* The name in a row. */
const char *top_row_name(struct top *top, const struct live_row *row);
/* The state of the source and of the view, in words. *alarm: the user should notice it. */
void top_state(struct top *top, struct buf *text, bool *alarm);
void top_time(struct top *top, struct buf *text);
/* "1234 samples, 99/s" */
void top_samples(struct top *top, struct buf *text);

/* ---- the others ---- */

void top_draw(struct top *top);
/* Prints a view. False: nobody reads it. */
bool top_print(struct top *top);
/* Begins to convert the recording so far into a file. */
void top_save_begin(struct top *top, const char *path);
/* Call it often. Returns whether it is complete: the result is in top->message. */
bool top_save_step(struct top *top);
void top_save_end(struct top *top);
void top_say(struct top *top, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif

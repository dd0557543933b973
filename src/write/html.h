/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * html: a page that shows a recording and needs nothing else. web/README.md specifies the data in it; its scripts are in
 * web/, too.
 *
 * Samples, calls and changes of memory wait until the end, because a page has one column after the other. What does not
 * fit is summed up over short times, so memory follows the code that ran.
 */
#ifndef KSCOPE_WRITE_HTML_H
#define KSCOPE_WRITE_HTML_H

#include "base/buf.h"
#include "base/hash.h"
#include "base/json_out.h"
#include "format.h"
#include "model/world.h"
#include "pass/alloc.h"
#include "pass/tally.h"
#include "write/sums.h"
#include "write/timeline.h"

/* ---- blocks of data: html_block.c ---- */

#define HTML_COLUMNS 32

struct html_block {
	struct out *to;
	struct pack *pack; /* NULL: built without zlib */
	int fd;		   /* has the compressed block until its end */
	int failed;	   /* errno of the first failure */
	struct buf bytes;  /* that are not compressed yet */
	uint64_t done;	   /* bytes before these */
	struct buf text;
	struct json_out json; /* into `text`: an object, to which the user adds members */
	struct html_column {
		const char *name;
		uint64_t count, bytes;
		bool delta, constant;
		uint64_t value; /* of a constant one: its first number */
	} columns[HTML_COLUMNS];
	size_t nr;
	uint64_t last; /* number of the current column */
};

/* name: see web/README.md; before: of the older one of two recordings. */
void html_block_begin(struct html_block *block, struct out *to, const char *name, bool before);
/* A column of `name`, which must live as long as the block. delta: it has signed numbers, or small differences. */
void html_column_begin(struct html_block *block, const char *name, bool delta);
void html_number(struct html_block *block, uint64_t number);
void html_column_end(struct html_block *block);
/* Writes the block. Returns -1 and sets err if there was no room for it. */
int html_block_end(struct html_block *block, struct err *err);

/* A column whose numbers are an expression of their index i. */
#define HTML_COLUMN(block, name, delta, nr, value)       \
	do {                                             \
		html_column_begin((block), name, delta); \
		for (size_t i = 0; i < (nr); i++)        \
			html_number((block), (value));   \
		html_column_end(block);                  \
	} while (0)

/* ---- rows: html_rows.c ---- */

struct html_row {
	uint64_t time;	 /* NO_TIME: unknown */
	uint64_t length; /* how long it lasted; it has the same weight; else 0 */
	uint64_t weight, count;
	uint32_t stack; /* of the world */
	uint32_t task, cpu, event;
};

struct html_rows {
	struct html_row *all;
	size_t nr, cap, limit;
	uint64_t quantum;     /* the length of the times over which they are summed up; 0: none */
	uint64_t first, last; /* times; NO_TIME: none yet */
	bool lasting;	      /* rows have lengths */
	struct hash index;
};

void html_rows_init(struct html_rows *rows);
void html_rows_release(struct html_rows *rows);
void html_rows_add(struct html_rows *rows, const struct html_row *row);
/* In order of time, those without a time first. */
void html_rows_sort(struct html_rows *rows);

/* ---- names: html_tables.c ---- */

enum html_category {
	HTML_OTHER,
	HTML_USER,
	HTML_KERNEL,
	HTML_INTERRUPT,
	HTML_IDLE,
	HTML_CATEGORIES
};

struct html_tables {
	struct world *world;
	bool no_inline;
	struct html_function {
		uint32_t name, binary, file, line; /* handles */
		uint32_t frame; /* a place in its code, if it is not only inlined; else 0 */
	} * functions;
	size_t nr_functions, cap_functions;
	struct html_stack {
		uint32_t parent, function;
		uint8_t category;
		bool inlined;
	} * stacks; /* [0] none */
	size_t nr_stacks, cap_stacks;
	struct html_place {
		uint32_t function, file, line;
		uint64_t offset;
	} * places; /* [0] none */
	size_t nr_places, cap_places;
	struct hash function_index, stack_index, place_index;
	uint32_t *
		stack_of; /* by stack of the world; its top bit: it is used, but has no number yet */
	size_t cap_stack_of;
	bool has_no_stack; /* samples without one */
	uint32_t no_stack; /* their number */
	uint32_t *strings; /* handles; [0] "" */
	size_t nr_strings, cap_strings;
	struct timeline_numbers string_of;
};

void html_tables_init(struct html_tables *t, struct world *world, bool no_inline);
void html_tables_release(struct html_tables *t);
/* First mark all stacks, then build, then ask for their numbers. */
void html_tables_mark(struct html_tables *t, uint32_t stack);
void html_tables_build(struct html_tables *t);
uint32_t html_stack(const struct html_tables *t, uint32_t stack);
/* The place of the innermost function of a stack. */
uint32_t html_place(struct html_tables *t, uint32_t stack);
/* The number of the function at a frame, around what is inlined there. */
uint32_t html_function(struct html_tables *t, uint32_t frame);
uint32_t html_string(struct html_tables *t, uint32_t handle);
void html_put_tables(struct html_tables *t, struct html_block *core);
void html_put_places(struct html_tables *t, struct html_block *rows);
extern const char *const html_categories[HTML_CATEGORIES];

/* ---- calls: html_slices.c ---- */

struct html_slice {
	uint64_t begin, length;
	uint64_t instructions, own, cycles, own_cycles;
	uint32_t lines, own_lines;
	uint32_t frame, track, task;
	uint8_t kind, knows, cut;
};

struct html_track {
	enum html_track_kind { TRACK_TASK, TRACK_CPU, TRACK_MASK } kind;
	uint32_t task, cpu; /* of now */
	struct html_open {
		uint32_t frame, stack;
		bool cut;
	} * open; /* calls that have not ended */
	size_t nr_open, cap_open;
	uint64_t until;	  /* up to where its time counts */
	bool on_cpu;	  /* it runs on `cpu` */
	bool follows_cpu; /* it is known when it runs on a cpu */
};

struct html_slices {
	struct html_slice *all;
	size_t nr, cap;
	struct html_track *tracks;
	size_t nr_tracks, cap_tracks;
	struct hash index;
	uint64_t shortest,
		shorter; /* calls shorter than that, which are dropped; how many they are */
};

/* ---- the writer: html.c ---- */

struct html_task {
	uint32_t pid, tid, comm;
	bool idle;
};

struct html_gap {
	uint64_t begin, end, samples, bytes;
	uint32_t cpu, task; /* one more than the numbers; 0: any */
};

struct html_event {
	uint32_t source;
	const char *name, *unit; /* NULL: those of the source */
	uint64_t samples, weight;
};

/* Which of two recordings that are compared; HTML_ALONE: there is one. */
enum html_part { HTML_ALONE, HTML_BEFORE, HTML_AFTER };

struct html {
	enum html_part part;
	struct options given; /* only the axis */
	struct tally_options options;
	struct html_rows rows, changes; /* samples; changes of memory */
	struct html_slices slices;
	struct html_tables tables;
	struct html_task *tasks;
	size_t nr_tasks, cap_tasks;
	struct hash task_index;
	struct html_event *events;
	size_t nr_events, cap_events;
	struct hash source_index;
	struct html_gap *gaps;
	size_t nr_gaps, cap_gaps;
	struct sums_lost lost;
	struct alloc_pass heaps;
	uint64_t alloc_time;
	uint32_t alloc_task;
	uint64_t start; /* of the times in the page */
};

/* A time in the page. Browsers count to 2^53. */
#define HTML_MOST_TIME (((uint64_t)1 << 53) - 1)
static inline uint64_t html_relative(const struct html *html, uint64_t time)
{
	uint64_t relative = time == NO_TIME || time < html->start ? 0 : time - html->start;

	return relative < HTML_MOST_TIME ? relative : HTML_MOST_TIME;
}

uint32_t html_task(struct writer *w, const struct event *ev);
/* The number of an event: of a source; or of what traces and allocations count, which has a name and a unit. */
uint32_t html_source(struct html *html, uint32_t source);
uint32_t html_event(struct html *html, const char *name, const char *unit);
void html_add_gap(struct html *html, const struct html_gap *gap);
void html_put_slice(struct writer *w, const struct event *ev);
void html_slices_release(struct html_slices *slices);
int html_write_slices(struct writer *w, bool before);
/* Source and instructions of the functions with most samples. Needs the numbers of places. */
int html_write_code(struct writer *w, bool before);

#endif

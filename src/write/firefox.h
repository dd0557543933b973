/* SPDX-License-Identifier: GPL-2.0-or-later */
/* firefox: what the files of the writer `firefox` share. The format is described in firefox.c. */
#ifndef KSCOPE_WRITE_FIREFOX_H
#define KSCOPE_WRITE_FIREFOX_H

#include "base/buf.h"
#include "base/hash.h"
#include "base/json_out.h"
#include "base/rows.h"
#include "format.h"
#include "model/world.h"
#include "pass/alloc.h"
#include "write/timeline.h"

#define FIREFOX_MS 6 /* decimals of a time in ms */

enum firefox_category {
	CATEGORY_OTHER, /* the default, which Firefox requires to be grey */
	CATEGORY_USER,
	CATEGORY_KERNEL,
	CATEGORY_INTERRUPT,
	CATEGORY_IDLE,
	CATEGORY_CPU,
	CATEGORY_LOST,
	CATEGORIES
};

/* ---- the tables that all threads share: firefox_tables.c ---- */

struct firefox_place {	/* of a stack in the output */
	uint32_t row;	/* of its leaf, from 1 on; 0: not in the output */
	bool interrupt; /* a function called from there is a part of an interrupt's handling */
	bool used;
};

struct firefox_tables {
	struct world *world;
	struct firefox_place *places; /* by stack, twice: of other tasks, and of idle ones */
	size_t nr_places, cap_places;
	struct firefox_stack {
		uint32_t frame, prefix; /* prefix: from 1 on; 0: a root */
	} * stacks;
	struct firefox_frame {
		int64_t address; /* -1: unknown */
		uint32_t func, symbol, line, subcategory;
		uint8_t category, depth;
	} * frames;
	struct firefox_func {
		uint32_t name, resource, source; /* resource, source: from 1 on */
	} * funcs;
	struct firefox_resource {
		uint32_t name, lib;
	} * resources;
	struct firefox_symbol { /* of ELF */
		uint32_t name, lib;
		uint64_t address;
	} * symbols;
	uint32_t *libs; /* images */
	uint32_t *sources;
	uint32_t *strings;
	struct firefox_subcategory {
		uint32_t category, number, name;
	} * subcategories;
	uint32_t nr_subcategories[CATEGORIES];
	size_t nr_stacks, cap_stacks, nr_frames, cap_frames, nr_funcs, cap_funcs, nr_resources,
		cap_resources, nr_symbols, cap_symbols, nr_libs, cap_libs, nr_sources, cap_sources,
		nr_strings, cap_strings, nr_subs, cap_subs;
	struct hash index; /* all tables but stacks, by kind and key */
	struct timeline_numbers string_of, source_of;
};

/* An output that is written piece by piece. */
struct firefox_out {
	struct json_out json;
	struct buf text;
	struct out *to;
};

static inline void firefox_flush(struct firefox_out *out, size_t beyond)
{
	if (out->text.len <= beyond)
		return;
	out_write(out->to, out->text.data, out->text.len);
	buf_clear(&out->text);
}

/* Writers of columns flush after each value, so that the text in memory stays about this long. */
#define FIREFOX_FULL ((size_t)64 << 10)

/* Notes that rows refer to this stack. Do this for all stacks, then call firefox_build(). */
void firefox_use(struct firefox_tables *tables, uint32_t stack, bool idle);
void firefox_build(struct firefox_tables *tables);
/* The row of a stack, counted from 1; 0: none. */
uint32_t firefox_stack(const struct firefox_tables *tables, uint32_t stack, bool idle);
/* The index of a string. Call this before the tables are written. */
uint32_t firefox_string(struct firefox_tables *tables, uint32_t name);
enum firefox_category firefox_category_of(struct world *world, uint32_t frame);
void firefox_put_categories(const struct firefox_tables *tables, struct json_out *json);
void firefox_put_libs(const struct firefox_tables *tables, struct firefox_out *out);
void firefox_put_tables(const struct firefox_tables *tables, struct firefox_out *out);
void firefox_tables_release(struct firefox_tables *tables);

/* ---- markers: firefox_marker.c ---- */

enum firefox_marker_type { MARKER_CALL, MARKER_NOTE, MARKER_LOST, MARKER_CPU, MARKER_TYPES };

struct firefox_marker {
	uint64_t begin, end; /* ns; equal for a moment; NO_TIME: before all times */
	uint64_t instructions, own, cycles, own_cycles;
	/* The number of lost or taken samples; and of lost bytes, or the value of a note. */
	uint64_t samples, value;
	uint64_t address; /* of a note */
	uint32_t lines, own_lines;
	uint32_t frame; /* of a call or a note */
	uint32_t cpu, pid, tid;
	uint8_t type, kind, knows; /* kind: of a slice, or of a note */
	bool began_before, goes_on, damage;
};

void firefox_put_schemas(struct json_out *json);
/* The markers of a group of rows. Counts slices in `written`. */
void firefox_put_markers(struct firefox_tables *tables, struct firefox_out *out, struct rows *rows,
			 uint32_t group, uint64_t start, struct written *written);

/* ---- threads: firefox_take.c fills them, firefox_thread.c writes them ---- */

struct firefox_sample {
	uint64_t time, weight, count;
	uint32_t stack;
	uint32_t idle;
};

struct firefox_alloc {
	uint64_t time, size;
	uint32_t stack, tid;
	uint32_t part; /* that was allocated, or freed */
	uint32_t freed;
};

/* A block that grew has several parts, since the front end knows no resizes. */
struct firefox_part {
	uint64_t size;
	uint32_t before; /* the previous part of the block; of a free one: the next free one */
};

enum firefox_thread_kind { THREAD_TASK, THREAD_CPU, THREAD_HEAP };

struct firefox_thread {
	enum firefox_thread_kind kind;
	uint32_t pid, tid; /* of a task */
	uint32_t cpu;	   /* of a cpu, and of a task whose ids several share; else NO_CPU */
	uint32_t source;   /* of its samples; 0: it has none */
	uint32_t heap;	   /* the allocator's name */
	uint32_t main;	   /* the first thread of its task, which has the rows of all its markers */
	uint32_t lead;	   /* of the first: the thread that shows them */
	uint64_t nr, timed, busy; /* samples; with a time; not idle */
	uint64_t calls;		  /* of a task: its slices */
	uint64_t losses;	  /* markers of losses and gaps */
	uint64_t first, last;	  /* times of samples; NO_TIME: none yet */
	uint64_t count, weight;
	uint64_t allocs, allocs_timed;
	bool weighs; /* a weight is not 1 */
	/* The samples on one cpu up to now: */
	uint32_t run_cpu;
	uint64_t run_begin, run_end, run_samples;
	/* Of each slice that has begun: whether it began before. */
	bool *open;
	size_t nr_open, cap_open;
};

struct firefox {
	struct firefox_tables tables;
	struct firefox_out out;
	struct firefox_thread *threads;
	size_t nr_threads, cap_threads;
	struct hash thread_index, task_index;
	struct rows samples, markers, allocs; /* by thread */
	uint64_t first, last;		      /* time; NO_TIME: none yet */
	uint64_t pace;			      /* ns between samples of a thread that runs */
	uint64_t lost;
	struct firefox_sum {
		uint64_t samples, weight;
	} * sums;	     /* by source */
	unsigned nr_sources; /* that have samples */
	struct firefox_life {
		uint64_t began, ended;
	} * lives;
	size_t nr_lives, cap_lives;
	struct hash life_index;
	struct alloc_pass heaps;
	uint64_t alloc_time;
	uint32_t alloc_tid;
	uint32_t *blocks; /* the last part of each */
	size_t nr_blocks, cap_blocks;
	struct firefox_part *parts; /* [0] unused */
	size_t nr_parts, cap_parts;
	uint32_t free_part; /* the first one; 0: none */
};

void firefox_put_sample(struct writer *w, const struct event *ev);
void firefox_put_alloc(struct firefox *ff, const struct event *ev);
alloc_change firefox_change_block;
void firefox_put_slice(struct firefox *ff, const struct event *ev);
void firefox_put_lost(struct firefox *ff, const struct event *ev);
void firefox_put_life(struct firefox *ff, const struct event *ev);
/* Ends the stretch of a thread's samples on one cpu. */
void firefox_end_run(struct firefox *ff, uint32_t number);

static inline bool firefox_leads(const struct firefox *ff, uint32_t thread)
{
	return ff->threads[ff->threads[thread].main].lead == thread;
}

void firefox_put_thread(struct writer *w, uint32_t number);
const struct firefox_life *firefox_life(const struct firefox *ff, uint32_t pid, uint32_t tid);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* sqlite: what the files of the writer `sqlite` share. sqlite.sql is the schema. */
#ifndef KSCOPE_WRITE_SQLITE_H
#define KSCOPE_WRITE_SQLITE_H

#include "base/buf.h"
#include "base/database.h"
#include "base/hash.h"
#include "format.h"
#include "model/world.h"
#include "pass/alloc.h"
#include "write/timeline.h"

/* Of the files, see sqlite.sql. */
#define SQLITE_APPLICATION 0x6b736370
#define SQLITE_SCHEMA 1

enum sqlite_table {
	TABLE_FACTS,
	TABLE_EVENTS,
	TABLE_TASKS,
	TABLE_BINARIES,
	TABLE_FUNCTIONS,
	TABLE_FRAMES,
	TABLE_STACKS,
	TABLE_SAMPLES,
	TABLE_SLICES,
	TABLE_NOTES,
	TABLE_COUNTERS,
	TABLE_ALLOCATORS,
	TABLE_ALLOCATIONS,
	TABLE_LOSSES,
	SQLITE_TABLES
};

extern const char sqlite_schema[]; /* sqlite.sql */
extern const struct writer_ops write_sqlite;

struct sqlite_axis;

struct sqlite {
	struct database *db;
	int spool; /* the file, if the output is a stream or compressed; else -1 */
	unsigned tables[SQLITE_TABLES];
	int64_t rows[SQLITE_TABLES]; /* of tables whose rows are written as events come */
	bool clamped;		     /* a number was too large for SQL */

	/* Rows that are written at the end. Ids are from 1 on, in the order of the first use. */
	struct hash index; /* of tasks, functions and binaries */
	struct sqlite_task {
		uint32_t pid, tid, comm;
	} * tasks;
	uint32_t *events;
	struct timeline_numbers event_of; /* by source */
	struct sqlite_function {
		uint32_t name, binary;
		bool known;
	} * functions;
	struct sqlite_binary {
		uint32_t image; /* 0: only the name is known */
		uint32_t name;
	} * binaries;
	uint32_t *stacks; /* those of the world */
	struct timeline_numbers stack_of;
	struct timeline_numbers frame_of; /* the first one of a place */
	size_t nr_tasks, cap_tasks, nr_events, cap_events, nr_functions, cap_functions, nr_binaries,
		cap_binaries, nr_stacks, cap_stacks;
	uint32_t *frames; /* by id: the function */
	uint32_t nr_frames;
	size_t cap_frames;
	uint32_t *path; /* see sqlite_stack() */
	size_t cap_path;
	struct {
		uint32_t pid, tid, comm, number;
	} last_task; /* most samples have the task of the previous one */

	/* Slices: */
	struct hash axis_index;
	struct sqlite_axis *axes;
	size_t nr_axes, cap_axes;
	struct sqlite_depth {  /* of a function, inlined or called */
		uint32_t axis; /* how often it is open there; elsewhere, it is not known */
		uint32_t depth;
	} * depths;
	size_t nr_depths, cap_depths;
	struct timeline_numbers function_of; /* by frame */
	bool has_runs;
	uint64_t nr_slices; /* their numbers, at their begins */

	/* Allocations: */
	struct alloc_pass heaps;
	const struct event *alloc;     /* the event */
	bool changed;		       /* a block */
	struct timeline_numbers frees; /* of each allocator; the last 32 bits */
	struct sqlite_block {
		uint64_t born;
		int64_t number;
	} * blocks;
	size_t nr_blocks, cap_blocks;
	int64_t nr_born;

	struct buf scratch[4];
};

#define NUMBER(value) ((struct database_value){ .type = DATABASE_NUMBER, .number = (value) })
#define NOTHING ((struct database_value){ .type = DATABASE_NULL })

/* A number that may be too large for SQLite. */
struct database_value sqlite_number(struct sqlite *s, uint64_t number);
static inline struct database_value sqlite_some(struct sqlite *s, bool known, uint64_t number)
{
	return known ? sqlite_number(s, number) : NOTHING;
}
static inline struct database_value sqlite_id(uint32_t id) /* 0: none */
{
	return id ? NUMBER(id) : NOTHING;
}
/* All 64 bits, as a signed number. */
static inline struct database_value sqlite_bits(uint64_t bits)
{
	return NUMBER((int64_t)bits);
}
/* A constant text. */
struct database_value sqlite_text(const char *text);
/* Adds a row to a table that grows with the events; sets its id, which is the first value. */
void sqlite_add(struct sqlite *s, enum sqlite_table table, struct database_value *values);

/* ---- sqlite_tables.c: ids ---- */

uint32_t sqlite_task(struct writer *w, const struct event *ev);
uint32_t sqlite_event(struct sqlite *s, uint32_t source);
uint32_t sqlite_function(struct writer *w, uint32_t frame); /* the one that is not inlined */
uint32_t sqlite_stack(struct writer *w, uint32_t stack);
/*
 * At the end: the first of the frames at a place, that of the innermost function. The others follow. Writes
 * the frames if they are new.
 */
uint32_t sqlite_frame(struct writer *w, uint32_t place, size_t *nr);
/* Writes the tables of the things with ids. */
void sqlite_put_tables(struct writer *w);
void sqlite_tables_release(struct sqlite *s);

/* ---- sqlite_stacks.c ---- */

void sqlite_put_stacks(struct writer *w);

/* ---- sqlite_slices.c ---- */

void sqlite_put_slice(struct writer *w, const struct event *ev);
void sqlite_slices_release(struct sqlite *s);

#endif

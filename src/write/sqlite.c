// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * sqlite: an SQLite 3 database, for queries in SQL. sqlite.sql is its schema.
 *
 * The writer writes rows of events as the events come. It numbers the things that they refer to at that time, and writes
 * these at the end, when all names are known.
 */
#include "write/sqlite.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/spool.h"
#include "base/text.h"
#include "sqlite_sql.h"

const char sqlite_schema[] = SQLITE_SQL;

static const struct {
	const char *name;
	unsigned nr_columns;
} tables[SQLITE_TABLES] = {
	[TABLE_FACTS] = { "facts", 3 },
	[TABLE_EVENTS] = { "events", 5 },
	[TABLE_TASKS] = { "tasks", 4 },
	[TABLE_BINARIES] = { "binaries", 5 },
	[TABLE_FUNCTIONS] = { "functions", 4 },
	[TABLE_FRAMES] = { "frames", 8 },
	[TABLE_STACKS] = { "stacks", 5 },
	[TABLE_SAMPLES] = { "samples", 8 },
	[TABLE_SLICES] = { "slices", 20 },
	[TABLE_NOTES] = { "notes", 7 },
	[TABLE_COUNTERS] = { "counters", 5 },
	[TABLE_ALLOCATORS] = { "allocators", 7 },
	[TABLE_ALLOCATIONS] = { "allocations", 12 },
	[TABLE_LOSSES] = { "losses", 7 },
};

/* ---- values ---- */

struct database_value sqlite_number(struct sqlite *s, uint64_t number)
{
	if (number > INT64_MAX) {
		s->clamped = true;
		number = INT64_MAX;
	}
	return NUMBER((int64_t)number);
}

struct database_value sqlite_text(const char *text)
{
	return (struct database_value){ .type = DATABASE_TEXT, .len = strlen(text), .text = text };
}

void sqlite_add(struct sqlite *s, enum sqlite_table table, struct database_value *values)
{
	values[0] = NUMBER(++s->rows[table]);
	database_add(s->db, s->tables[table], values);
}

/* ---- the events ---- */

static void put_sample(struct writer *w, const struct event *ev)
{
	struct sqlite *s = w->priv;
	uint64_t samples = ev->sample.count + !ev->sample.count;
	struct database_value row[] = {
		NOTHING,
		sqlite_some(s, ev->time != NO_TIME, ev->time),
		sqlite_some(s, ev->cpu != NO_CPU, ev->cpu),
		NUMBER(sqlite_task(w, ev)),
		NUMBER(sqlite_event(s, ev->sample.source)),
		sqlite_number(s, samples),
		sqlite_number(s, ev->sample.weight),
		NUMBER(sqlite_stack(w, world_stack(w->world, ev))),
	};

	sqlite_add(s, TABLE_SAMPLES, row);
	w->written.samples += samples;
	w->written.weight += ev->sample.weight;
}

static void put_counter(struct writer *w, const struct event *ev)
{
	struct sqlite *s = w->priv;
	struct database_value row[] = {
		NOTHING,
		sqlite_some(s, ev->time != NO_TIME, ev->time),
		sqlite_some(s, ev->cpu != NO_CPU, ev->cpu),
		NUMBER(sqlite_event(s, ev->counter.source)),
		sqlite_number(s, ev->counter.value),
	};

	sqlite_add(s, TABLE_COUNTERS, row);
}

static void put_lost(struct writer *w, const struct event *ev)
{
	struct sqlite *s = w->priv;
	struct database_value row[] = {
		NOTHING,
		sqlite_some(s, ev->time != NO_TIME, ev->time),
		sqlite_some(s, ev->cpu != NO_CPU, ev->cpu),
		ev->tid != NO_TASK ? NUMBER(sqlite_task(w, ev)) : NOTHING,
		sqlite_number(s, ev->lost.count),
		sqlite_number(s, ev->lost.bytes),
		NUMBER(ev->lost.damage),
	};

	sqlite_add(s, TABLE_LOSSES, row);
}

/* ---- allocations ---- */

static void put_change(struct writer *w, const char *op, int64_t block, uint32_t owner,
		       uint64_t was, uint64_t now)
{
	struct sqlite *s = w->priv;
	const struct event *ev = s->alloc;
	const struct alloc_site *by = &s->heaps.sites[s->heaps.by];
	struct database_value row[] = {
		NOTHING,
		sqlite_some(s, ev->time != NO_TIME, ev->time),
		sqlite_some(s, ev->cpu != NO_CPU, ev->cpu),
		NUMBER(sqlite_task(w, ev)),
		NUMBER(by->allocator),
		sqlite_text(op),
		block ? NUMBER(block) : NOTHING,
		sqlite_bits(ev->alloc.ptr),
		sqlite_number(s, was),
		sqlite_number(s, now),
		NUMBER(sqlite_stack(w, by->stack)),
		NUMBER(sqlite_stack(w, s->heaps.sites[owner].stack)),
	};

	sqlite_add(s, TABLE_ALLOCATIONS, row);
}

static struct sqlite_block *block_at(struct sqlite *s, uint32_t slot)
{
	while (s->nr_blocks <= slot) {
		GROW(s->blocks, s->nr_blocks + 1, s->cap_blocks);
		s->blocks[s->nr_blocks++] = (struct sqlite_block){ 0 };
	}
	return &s->blocks[slot];
}

static void change_block(void *arg, uint32_t slot, uint32_t by, uint64_t was, uint64_t now)
{
	struct writer *w = arg;
	struct sqlite *s = w->priv;
	const struct alloc_block *block = &s->heaps.blocks[slot];
	struct sqlite_block *known = block_at(s, slot);
	const char *op = "resize";

	(void)by;
	s->changed = true;
	if (!block->live) {
		op = s->alloc->alloc.op == ALLOC_NEW ? "overlap" : "free";
	} else if (!known->number || known->born != block->born) {
		*known = (struct sqlite_block){ block->born, ++s->nr_born };
		op = "new";
	}
	put_change(w, op, known->number, block->site, was, now);
}

/* Takes events that are not selected, too, because they may free blocks that are. */
static void put_alloc(struct writer *w, const struct event *ev)
{
	struct sqlite *s = w->priv;
	uint32_t heap, *frees, now;

	s->alloc = ev;
	s->changed = false;
	s->heaps.arg = w;
	alloc_add(&s->heaps, ev);
	heap = s->heaps.sites[s->heaps.by].allocator;
	frees = timeline_number(&s->frees, heap);
	now = (uint32_t)s->heaps.heaps[heap]->sum.frees;
	if (now != *frees && !s->changed) /* it counts, but frees no block */
		put_change(w, "free", 0, s->heaps.by, 0, 0);
	*frees = now;
}

static void put_allocators(struct sqlite *s)
{
	for (uint32_t i = 1; i < s->heaps.nr_heaps; i++) {
		const struct alloc_heap *heap = s->heaps.heaps[i];
		struct database_value row[] = {
			NUMBER(i),
			sqlite_text(text_valid(&s->scratch[0], heap->name)),
			sqlite_number(s, heap->found[FINDING_DOUBLE_FREE]),
			sqlite_number(s, heap->found[FINDING_UNKNOWN_FREE]),
			sqlite_number(s, heap->found[FINDING_UNKNOWN_RESIZE]),
			sqlite_number(s, heap->found[FINDING_OVERLAP]),
			sqlite_number(s, heap->guesses),
		};

		database_add(s->db, s->tables[TABLE_ALLOCATORS], row);
	}
}

/* ---- the writer ---- */

/* Of a database that the output replaces: SQLite would take the changes in them for changes of the new one. */
static int check_leftovers(struct writer *w)
{
	static const char *const ends[] = { "-wal", "-journal" };

	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		char *path = xasprintf("%s%s", w->out->target, ends[i]);
		struct stat st;

		if (!stat(path, &st) && st.st_size)
			err_set(&w->err, ERR_OUTPUT,
				"%s: it has changes of an earlier database, which SQLite would "
				"apply to the new one: remove it, or use another name",
				path);
		free(path);
	}
	return w->err.code ? -1 : 0;
}

static int sqlite_open(struct writer *w)
{
	struct sqlite *s = w->priv;
	int fd = out_file(w->out);

	s->spool = -1;
	alloc_init(&s->heaps, w->world);
	s->heaps.change = change_block;
	if (fd < 0) {
		fd = s->spool = spool_file();
		if (fd < 0)
			return err_set(&w->err, ERR_OUTPUT,
				       "cannot write a temporary file in %s: %s", spool_folder(),
				       strerror(errno));
	} else if (w->out->target && check_leftovers(w) < 0) {
		return -1;
	}
	s->db = database_create(fd, sqlite_schema, &w->err);
	if (!s->db)
		return -1;
	for (unsigned i = 0; i < SQLITE_TABLES; i++)
		s->tables[i] = database_table(s->db, tables[i].name, tables[i].nr_columns);
	return 0;
}

static int check(struct writer *w, int error)
{
	const struct sqlite *s = w->priv;

	if (error && s->spool >= 0)
		return err_set(&w->err, ERR_OUTPUT, "cannot write a temporary file in %s: %s",
			       spool_folder(), strerror(error));
	if (error)
		w->out->failed = error;
	return 0;
}

static int sqlite_put(struct writer *w, const struct event *ev)
{
	struct sqlite *s = w->priv;

	switch (ev->kind) {
	case EVENT_SLICE: sqlite_put_slice(w, ev); break;
	case EVENT_ALLOC: put_alloc(w, ev); break;
	case EVENT_SAMPLE:
		if (!ev->outside)
			put_sample(w, ev);
		break;
	case EVENT_COUNTER:
		if (!ev->outside && ev->counter.source)
			put_counter(w, ev);
		break;
	case EVENT_LOST:
		if (!ev->outside)
			put_lost(w, ev);
		break;
	default: /* a source, even if it has no samples */
		if (!ev->made_of)
			sqlite_event(s, ev->source.id);
	}
	return check(w, database_failed(s->db));
}

static int copy(struct writer *w, int fd)
{
	uint64_t offset = 0;
	ssize_t got;

	for (;;) {
		got = pread(fd, out_room(w->out, OUT_ROOM / 2), OUT_ROOM / 2, (off_t)offset);
		if (got < 0 && errno != EINTR)
			return check(w, errno);
		w->out->len -= OUT_ROOM / 2 - (got > 0 ? (size_t)got : 0);
		if (!got)
			return 0;
		offset += got > 0 ? (uint64_t)got : 0;
	}
}

static int sqlite_finish(struct writer *w)
{
	struct sqlite *s = w->priv;
	int error;

	sqlite_put_tables(w);
	put_allocators(s);
	error = database_finish(s->db);
	if (s->clamped)
		log_warn("%s: numbers above 2^63-1, which SQLite lacks, are 2^63-1 there",
			 strcmp(w->out->path, "-") ? w->out->path : "standard output");
	w->written.knows = WROTE_SAMPLES | WROTE_WEIGHT | WROTE_SLICES;
	if (error || s->spool < 0)
		return check(w, error);
	return copy(w, s->spool);
}

static void sqlite_close(struct writer *w)
{
	struct sqlite *s = w->priv;

	database_close(s->db);
	if (s->spool >= 0)
		close(s->spool);
	alloc_release(&s->heaps);
	free(s->blocks);
	timeline_numbers_release(&s->frees);
	sqlite_slices_release(s);
	sqlite_tables_release(s);
	for (size_t i = 0; i < sizeof(s->scratch) / sizeof(s->scratch[0]); i++)
		buf_release(&s->scratch[i]);
}

const struct writer_ops write_sqlite = {
	.name = "sqlite",
	.about = "database for SQL: SQLite, DuckDB, kscope sql",
	.extension = ".db",
	.other_extension = ".sqlite",
	.needs = WRITER_OUTSIDE,
	.takes = EVENT_BIT(EVENT_SAMPLE) | EVENT_BIT(EVENT_SLICE) | EVENT_BIT(EVENT_LOST) |
		 EVENT_BIT(EVENT_ALLOC) | EVENT_BIT(EVENT_COUNTER) | EVENT_BIT(EVENT_SOURCE),
	.next = "query it with kscope sql",
	.options = OPTION_USES({ &inlines_table, OPTION_ELSEWHERE },
			       { &gate_table, OPTION_ELSEWHERE }),
	.priv_size = sizeof(struct sqlite),
	.open = sqlite_open,
	.put = sqlite_put,
	.finish = sqlite_finish,
	.close = sqlite_close,
};

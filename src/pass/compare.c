// SPDX-License-Identifier: GPL-2.0-or-later
#include "pass/compare_parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "model/role.h"
#include "model/source.h"

#define SQUARES 0x1p52 /* their sum, because a tally sums up whole numbers */

unsigned compare_tally_by(enum flat_by by)
{
	return BY_SOURCE | (by == FLAT_TASK ? BY_COMM | BY_PID : by == FLAT_CPU ? BY_CPU : 0);
}

void compare_release(struct compare *c)
{
	for (size_t i = 0; i < c->nr; i++) {
		free(c->events[i].runs);
		free(c->events[i].rows);
		free(c->events[i].cells);
		free(c->events[i].blocks);
		hash_release(&c->events[i].index);
		hash_release(&c->events[i].binaries);
	}
	free(c->events);
	hash_release(&c->by_name);
}

/* ---- rows ---- */

static struct compare_event *event_of(struct compare *c, uint32_t name)
{
	uint32_t *at = hash_at(&c->by_name, (struct hash_key){ name, 0 });

	if (!*at) {
		GROW(c->events, c->nr + 1, c->cap);
		c->events[c->nr++] = (struct compare_event){
			.name = name,
			.runs = xcalloc(c->nr_runs, sizeof(struct compare_run)),
		};
		*at = (uint32_t)c->nr;
	}
	return &c->events[*at - 1];
}

static struct hash_key key_of(uint32_t name, uint32_t binary)
{
	return (struct hash_key){ name, binary };
}

static uint32_t add_row(const struct compare *c, struct compare_event *event, uint32_t name,
			uint32_t binary)
{
	size_t nr = event->nr + 1;

	GROW(event->rows, nr, event->cap);
	GROW(event->cells, nr * c->nr_runs, event->cap_cells);
	event->rows[event->nr] = (struct compare_row){ .name = name, .binary = binary };
	memset(compare_cell(c, event, event->nr, 0), 0, c->nr_runs * sizeof(*event->cells));
	if (compare_keeps_blocks(c)) {
		GROW(event->blocks, nr * c->nr_runs, event->cap_blocks);
		memset(event->blocks + event->nr * c->nr_runs, 0,
		       c->nr_runs * sizeof(*event->blocks));
	}
	return (uint32_t)event->nr++;
}

/* Whether a name identifies a function, even in another binary. */
static bool is_telling(const struct compare *c, uint32_t name)
{
	const char *text = str_text(c->strings, name);

	return *text && *text != '[' && (*text < '0' || *text > '9');
}

#define SEVERAL UINT32_MAX /* in a hash of 1 + index */

struct renaming { /* functions that may be the same, although their binaries have different names */
	struct hash theirs; /* rows whose binary this run lacks, by name */
	struct hash ours;   /* functions of this run, without a row, that may be one of them */
};

/* Notes which row has a name, or that several rows have it. */
static void note_name(struct hash *index, uint32_t name, size_t nr)
{
	uint32_t *at = hash_at(index, key_of(name, 0));

	*at = *at ? SEVERAL : (uint32_t)nr + 1;
}

static uint32_t noted(const struct hash *index, uint32_t name)
{
	return hash_get(index, key_of(name, 0));
}

static bool has_binary(const struct compare_event *event, uint32_t binary, size_t run)
{
	return hash_get(&event->binaries, (struct hash_key){ binary, run });
}

/* Not one binary under two names. */
static bool ran_together(const struct compare_event *event, uint32_t a, uint32_t b, size_t run)
{
	for (size_t r = 0; r <= run; r++) {
		if (has_binary(event, a, r) && has_binary(event, b, r))
			return true;
	}
	return false;
}

/* The row, plus 1, that a new function of this run has under another name of its binary; 0: none. */
static uint32_t renamed_row(const struct compare *c, const struct compare_event *event,
			    const struct hash *theirs, const struct flat_row *new, size_t run)
{
	uint32_t row = noted(theirs, new->name);

	if (!row || row == SEVERAL || !is_telling(c, new->name) ||
	    hash_get(&event->index, key_of(new->name, new->binary)) ||
	    ran_together(event, event->rows[row - 1].binary, new->binary, run))
		return 0;
	return row;
}

static void find_renamed(const struct compare *c, struct renaming *found,
			 struct compare_event *event, const struct flat *flat, size_t run)
{
	for (size_t i = 0; i < flat->nr; i++)
		*hash_at(&event->binaries, (struct hash_key){ flat->rows[i].binary, run }) = 1;
	for (size_t i = 0; i < event->nr; i++) {
		if (!has_binary(event, event->rows[i].binary, run))
			note_name(&found->theirs, event->rows[i].name, i);
	}
	for (size_t i = 0; i < flat->nr; i++) {
		if (renamed_row(c, event, &found->theirs, &flat->rows[i], run))
			note_name(&found->ours, flat->rows[i].name, i);
	}
}

/* Finds functions whose binary has another name in this run, such as vmlinux-6.2. */
static void match_renamed(const struct compare *c, struct compare_event *event,
			  const struct flat *flat, size_t run)
{
	struct renaming found = { 0 };

	find_renamed(c, &found, event, flat, run);
	for (size_t i = 0; i < flat->nr; i++) {
		const struct flat_row *new = &flat->rows[i];
		uint32_t row;

		if (noted(&found.ours, new->name) != i + 1)
			continue;
		row = noted(&found.theirs, new->name);
		event->rows[row - 1].binary = new->binary;
		*hash_at(&event->index, key_of(new->name, new->binary)) = row;
	}
	hash_release(&found.ours);
	hash_release(&found.theirs);
}

/* For each row of the flat, the row of the comparison. Tasks are matched by name alone. */
static uint32_t *match_rows(const struct compare *c, struct compare_event *event,
			    const struct flat *flat, size_t run)
{
	uint32_t *rows = xcalloc(flat->nr + 1, sizeof(*rows));

	if (c->by == FLAT_FUNCTION)
		match_renamed(c, event, flat, run);
	for (size_t i = 0; i < flat->nr; i++) {
		uint32_t *at =
			hash_at(&event->index, key_of(flat->rows[i].name, flat->rows[i].binary));

		if (!*at)
			*at = add_row(c, event, flat->rows[i].name, flat->rows[i].binary) + 1;
		rows[i] = *at - 1;
	}
	return rows;
}

/* ---- the numbers of a run ---- */

struct adding { /* a source of a run */
	struct compare *c;
	struct compare_event *event;
	size_t run;
	struct blocks_part *part;
	struct tally_options options;
	struct flat flat; /* of everything */
	uint32_t *rows;	  /* of the comparison, by row of the flat */
};

static uint32_t row_like(const struct adding *adding, const struct flat_row *like)
{
	return adding->rows[flat_find(&adding->flat, like) - adding->flat.rows];
}

static uint64_t compared(const struct compare *c, const struct flat_row *row)
{
	return c->total ? row->total : row->self;
}

static void add_sums(const struct adding *adding)
{
	struct compare_run *run = &adding->event->runs[adding->run];

	for (size_t i = 0; i < adding->flat.nr; i++) {
		const struct flat_row *row = &adding->flat.rows[i];
		struct compare_sums *sums =
			compare_cell(adding->c, adding->event, adding->rows[i], adding->run);

		sums->self += row->self;
		sums->total += row->total;
		sums->samples += row->samples;
	}
	run->sums.self += adding->flat.weight;
	run->sums.total += adding->flat.weight;
	run->sums.samples += adding->flat.samples;
}

static void add_block(const struct adding *adding, size_t block, size_t first, size_t end)
{
	size_t to = block * COMPARE_BLOCKS / adding->part->nr;
	struct tally tally = adding->part->all;
	struct flat flat;

	tally.entries += first;
	tally.nr = end - first;
	if (!tally_total(&tally, true)) /* flat_make() would count samples instead */
		return;
	flat_make(&flat, &tally, adding->c->by, &adding->options);
	for (size_t i = 0; i < flat.nr; i++) {
		size_t row = row_like(adding, &flat.rows[i]);

		adding->event->blocks[row * 2 + adding->run][to] +=
			(double)compared(adding->c, &flat.rows[i]);
	}
	adding->event->runs[adding->run].blocks[to] += (double)flat.weight;
	flat_release(&flat);
}

static void add_blocks(const struct adding *adding)
{
	size_t first = 0;

	for (size_t b = 0; b < adding->part->nr; b++) {
		if (first < adding->part->ends[b])
			add_block(adding, b, first, adding->part->ends[b]);
		first = adding->part->ends[b];
	}
}

/* Replaces the weights of the part by the squares, in a unit in which their sum is known. Returns the unit. */
static double make_squares(const struct adding *adding)
{
	struct tally *all = &adding->part->all;
	double sum = 0, unit;

	for (size_t i = 0; i < all->nr; i++)
		sum += adding->part->squares[i];
	unit = sum > 0 ? sum / SQUARES : 1;
	for (size_t i = 0; i < all->nr; i++)
		all->entries[i].weight = (uint64_t)round(adding->part->squares[i] / unit);
	return unit;
}

static void add_squares(const struct adding *adding)
{
	double unit = make_squares(adding);
	struct flat flat;

	if (!tally_total(&adding->part->all, true))
		return;
	flat_make(&flat, &adding->part->all, adding->c->by, &adding->options);
	for (size_t i = 0; i < flat.nr; i++)
		compare_cell(adding->c, adding->event, row_like(adding, &flat.rows[i]), adding->run)
			->squares += unit * (double)compared(adding->c, &flat.rows[i]);
	adding->event->runs[adding->run].sums.squares += unit * (double)flat.weight;
	flat_release(&flat);
}

/* From here on, `weight` is the compared number. */
static void settle_entries(const struct adding *adding)
{
	struct tally *all = &adding->part->all;

	for (size_t i = 0; i < all->nr; i++) {
		struct tally_entry *entry = &all->entries[i];

		if (!adding->event->weight) {
			entry->weight = entry->samples;
			adding->part->squares[i] = (double)entry->samples;
		}
	}
}

/* Of code that is known to be the user's, the name does not tell. */
static bool is_idle(struct world *world, const struct tally_entry *entry)
{
	uint32_t frame = world->stacks.all[entry->stack].frame;
	size_t nr;

	return world->frames.all[frame].flags & (FRAME_KERNEL | FRAME_NAMED) &&
	       role_idle(str_text(world->strings, frame_symbols(world, frame, &nr)->name));
}

static void leave_out_idle(const struct adding *adding)
{
	struct compare_run *run = &adding->event->runs[adding->run];
	struct blocks_part *part = adding->part;
	size_t from = 0, kept = 0;

	for (size_t b = 0; b < part->nr; b++) {
		for (; from < part->ends[b]; from++) {
			const struct tally_entry *entry = &part->all.entries[from];

			if (is_idle(part->all.world, entry)) {
				run->idle_samples += entry->samples;
				run->idle += entry->weight;
				continue;
			}
			part->squares[kept] = part->squares[from];
			part->all.entries[kept++] = *entry;
		}
		part->ends[b] = kept;
	}
	part->all.nr = kept;
}

static int check_measure(const struct adding *adding, bool weight, struct err *err)
{
	struct compare_event *event = adding->event;
	struct world *world = adding->part->all.world;

	if (!event->unit) {
		event->weight = weight;
		event->unit = tally_unit(&adding->part->all, weight);
	}
	if (event->weight == weight)
		return 0;
	return err_set(err, ERR_INPUT, "%s: only some of the inputs have weights: use --samples",
		       str_text(world->strings, event->name));
}

int compare_add(struct compare *c, size_t run, struct blocks_part *part, struct err *err)
{
	struct world *world = part->all.world;
	bool weight = tally_counts_weight(&part->all, &c->options, MEASURE_WEIGHT);
	struct adding adding = {
		.c = c,
		.event = event_of(c, source_name(world, part->source)),
		.run = run,
		.part = part,
		.options = c->options,
	};
	struct compare_run *sums = &adding.event->runs[run];
	bool first = !sums->sums.samples;

	if (check_measure(&adding, weight, err) < 0)
		return -1;
	if (!weight)
		sums->unused_weight += tally_total(&part->all, true);
	settle_entries(&adding);
	if (!c->idle)
		leave_out_idle(&adding);
	adding.options.measure = MEASURE_WEIGHT;
	flat_make(&adding.flat, &part->all, c->by, &adding.options);
	adding.rows = match_rows(c, adding.event, &adding.flat, run);
	sums->exact = part->facts.exact && (first || sums->exact);
	sums->untimed |= part->facts.untimed;
	sums->nr_blocks = part->nr;
	adding.event->allocated |=
		world->sources[part->source].unit && !strcmp(adding.event->unit, "bytes");
	add_sums(&adding);
	if (compare_keeps_blocks(c))
		add_blocks(&adding);
	add_squares(&adding);
	free(adding.rows);
	flat_release(&adding.flat);
	return 0;
}

struct written compare_written(const struct compare *c, size_t run)
{
	struct written written = { 0 };

	for (size_t e = 0; e < c->nr; e++) {
		const struct compare_run *all = &c->events[e].runs[run];

		written.samples += all->idle_samples;
		written.weight += all->unused_weight + (c->events[e].weight ? all->idle : 0);
		for (size_t i = 0; i < c->events[e].nr; i++) {
			const struct compare_sums *sums = compare_cell(c, &c->events[e], i, run);

			written.samples += sums->samples;
			written.weight += c->events[e].weight ? sums->self : 0;
		}
	}
	return written;
}

double compare_points(const struct compare *c, const struct compare_event *event,
		      const struct compare_row *row)
{
	double all = 0;

	for (size_t r = 0; r < c->nr_before; r++)
		all += (double)event->runs[r].sums.self / (double)event->nr_runs[BEFORE];
	return 100 * (row->value[AFTER] - row->value[BEFORE]) / (c->absolute ? all : 1);
}

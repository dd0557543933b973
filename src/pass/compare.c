// SPDX-License-Identifier: GPL-2.0-or-later
#include "pass/compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "model/source.h"

/* With fewer samples, or a shorter time, blocks say nothing. */
#define MIN_SAMPLES (4 * COMPARE_BLOCKS)
#define MIN_BLOCKS (BLOCKS_MAX / 2)
/* Of squares, whose sums are whole numbers in a tally. */
#define SCALE 1024
#define LARGEST 0x1p52

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
	}
	free(c->events);
}

/* ---- rows ---- */

static bool keeps_blocks(const struct compare *c)
{
	return c->nr_runs == 2;
}

static struct compare_sums *cell(const struct compare *c, const struct compare_event *event,
				 size_t row, size_t run)
{
	return &event->cells[row * c->nr_runs + run];
}

static struct compare_event *event_of(struct compare *c, uint32_t name)
{
	for (size_t i = 0; i < c->nr; i++) {
		if (c->events[i].name == name)
			return &c->events[i];
	}
	GROW(c->events, c->nr + 1, c->cap);
	c->events[c->nr] = (struct compare_event){
		.name = name,
		.runs = xcalloc(c->nr_runs, sizeof(struct compare_run)),
	};
	return &c->events[c->nr++];
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
	memset(cell(c, event, event->nr, 0), 0, c->nr_runs * sizeof(*event->cells));
	if (keeps_blocks(c)) {
		GROW(event->blocks, nr * c->nr_runs, event->cap_blocks);
		memset(event->blocks + event->nr * c->nr_runs, 0,
		       c->nr_runs * sizeof(*event->blocks));
	}
	return (uint32_t)event->nr++;
}

/* Whether a name says which function it is, even in another binary. */
static bool is_telling(const struct compare *c, uint32_t name)
{
	const char *text = str_text(c->strings, name);

	return *text && *text != '[' && (*text < '0' || *text > '9');
}

#define SEVERAL UINT32_MAX /* in a hash of 1 + index */

struct renaming { /* what only one of this run and the earlier ones has */
	struct hash our_binaries, their_binaries;
	struct hash ours, theirs; /* functions in binaries that the others lack, by name */
};

/* Notes which of several things has a name, if it is only one. */
static void note_name(struct hash *index, uint32_t name, size_t nr)
{
	uint32_t *at = hash_at(index, key_of(name, 0));

	*at = *at ? SEVERAL : (uint32_t)nr + 1;
}

static uint32_t noted(const struct hash *index, uint32_t name)
{
	return hash_get(index, key_of(name, 0));
}

static void find_renamed(struct renaming *found, const struct compare_event *event,
			 const struct flat *flat)
{
	for (size_t i = 0; i < flat->nr; i++)
		note_name(&found->our_binaries, flat->rows[i].binary, i);
	for (size_t i = 0; i < event->nr; i++) {
		uint32_t binary = event->rows[i].binary;

		note_name(&found->their_binaries, binary, i);
		if (!noted(&found->our_binaries, binary))
			note_name(&found->theirs, event->rows[i].name, i);
	}
	for (size_t i = 0; i < flat->nr; i++) {
		if (!noted(&found->their_binaries, flat->rows[i].binary))
			note_name(&found->ours, flat->rows[i].name, i);
	}
}

/* Finds functions whose binary has another name in this run, such as vmlinux-6.2. */
static void match_renamed(const struct compare *c, struct compare_event *event,
			  const struct flat *flat)
{
	struct renaming found = { 0 };

	find_renamed(&found, event, flat);
	for (size_t i = 0; i < flat->nr; i++) {
		uint32_t name = flat->rows[i].name, row = noted(&found.theirs, name);

		if (noted(&found.ours, name) != i + 1 || !row || row == SEVERAL ||
		    !is_telling(c, name))
			continue;
		event->rows[row - 1].binary = flat->rows[i].binary;
		*hash_at(&event->index, key_of(name, flat->rows[i].binary)) = row;
	}
	hash_release(&found.our_binaries);
	hash_release(&found.their_binaries);
	hash_release(&found.ours);
	hash_release(&found.theirs);
}

/* For each row of the flat, the row of the comparison. Tasks are matched by name alone. */
static uint32_t *match_rows(const struct compare *c, struct compare_event *event,
			    const struct flat *flat)
{
	uint32_t *rows = xcalloc(flat->nr + 1, sizeof(*rows));

	if (c->by == FLAT_FUNCTION)
		match_renamed(c, event, flat);
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
			cell(adding->c, adding->event, adding->rows[i], adding->run);

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

/* Replaces the weights of the part by the squares, in units near those of the weights. */
static double make_squares(const struct adding *adding)
{
	struct tally *all = &adding->part->all;
	double mean = (double)adding->flat.weight / (double)adding->flat.samples;
	double unit = mean > 0 ? mean / SCALE : 1;

	for (size_t i = 0; i < all->nr; i++)
		all->entries[i].weight =
			(uint64_t)fmin(round(adding->part->squares[i] / unit), LARGEST);
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
		cell(adding->c, adding->event, row_like(adding, &flat.rows[i]), adding->run)
			->squares += unit * (double)compared(adding->c, &flat.rows[i]);
	adding->event->runs[adding->run].sums.squares += unit * (double)flat.weight;
	flat_release(&flat);
}

/* From here on, the weight is what is compared. */
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
	adding.options.measure = MEASURE_WEIGHT;
	flat_make(&adding.flat, &part->all, c->by, &adding.options);
	adding.rows = match_rows(c, adding.event, &adding.flat);
	sums->exact = part->facts.exact && (first || sums->exact);
	sums->untimed |= part->facts.untimed;
	sums->nr_blocks = part->nr;
	adding.event->allocated |=
		world->sources[part->source].unit && !strcmp(adding.event->unit, "bytes");
	add_sums(&adding);
	if (keeps_blocks(c))
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
		written.weight += c->events[e].runs[run].unused_weight;
		for (size_t i = 0; i < c->events[e].nr; i++) {
			const struct compare_sums *sums = cell(c, &c->events[e], i, run);

			written.samples += sums->samples;
			written.weight += c->events[e].weight ? sums->self : 0;
		}
	}
	return written;
}

/* ---- significance ---- */

static bool is_after(const struct compare *c, size_t run)
{
	return run >= c->nr_before;
}

static double number(const struct compare *c, const struct compare_sums *sums)
{
	return (double)(c->total ? sums->total : sums->self);
}

static double value_in(const struct compare *c, const struct compare_event *event, size_t row,
		       size_t run)
{
	double value = number(c, cell(c, event, row, run));

	return c->absolute ? value : value / (double)event->runs[run].sums.self;
}

/* How likely chance is if each sample is independent of the others. */
static double test_counts(const struct compare *c, const struct compare_event *event, size_t row,
			  double *samples)
{
	/* In samples of mean weight. */
	double hits[2] = { 0 }, all[2] = { 0 }, rate[2] = { 0 }, misses[2];
	double squares = 0, all_squares = 0, size, other_size;

	for (size_t r = 0; r < c->nr_runs; r++) {
		const struct compare_sums *run = &event->runs[r].sums;
		const struct compare_sums *sums = cell(c, event, row, r);
		double weight = (double)run->self / (double)run->samples;
		bool after = is_after(c, r);

		if (!run->self)
			continue;
		hits[after] += number(c, sums) / weight;
		all[after] += (double)run->samples;
		rate[after] += 1 / weight;
		squares += sums->squares / weight / weight;
		all_squares += run->squares / weight / weight;
	}
	/* Of samples whose weights vary, as many count as would vary as much if all weighed the same. */
	size = squares / (hits[0] + hits[1]);
	other_size = (all_squares - squares) / (all[0] + all[1] - hits[0] - hits[1]);
	for (int side = 0; side < 2; side++) {
		misses[side] = fmax(all[side] - hits[side], 0) / (other_size > 0 ? other_size : 1);
		hits[side] /= size > 0 ? size : 1;
	}
	*samples = hits[0] + hits[1];
	if (c->absolute)
		return stats_binomial(hits, rate[0] / (rate[0] + rate[1]));
	return stats_fisher(hits, misses);
}

static double test_t(double difference, double variance, double df)
{
	if (!(variance > 0))
		return difference == 0 ? 1 : 0;
	return stats_student(difference / sqrt(variance), df);
}

/* In parts of the recording. */
static double length_of_block(const struct compare_run *run, size_t block)
{
	size_t nr = run->nr_blocks, of = COMPARE_BLOCKS;

	return (double)(((block + 1) * nr + of - 1) / of - (block * nr + of - 1) / of) / (double)nr;
}

/* How far the block is from what it would be if all blocks were like the whole, in parts of the whole. */
static double off_in_block(const struct compare *c, const struct compare_event *event, size_t row,
			   size_t run, size_t block)
{
	const struct compare_run *all = &event->runs[run];
	double value = event->blocks[row * 2 + run][block];

	if (c->absolute)
		return value - number(c, cell(c, event, row, run)) * length_of_block(all, block);
	return (value - value_in(c, event, row, run) * all->blocks[block]) / (double)all->sums.self;
}

static double test_blocks(const struct compare *c, const struct compare_event *event, size_t row)
{
	double sum = 0;

	for (size_t b = 0; b < COMPARE_BLOCKS; b++) {
		double off = off_in_block(c, event, row, 1, b) - off_in_block(c, event, row, 0, b);

		sum += off * off;
	}
	return test_t(event->rows[row].value[AFTER] - event->rows[row].value[BEFORE],
		      sum * COMPARE_BLOCKS / (COMPARE_BLOCKS - 1), COMPARE_BLOCKS - 1);
}

static bool all_exact(const struct compare *c, const struct compare_event *event)
{
	for (size_t r = 0; r < c->nr_runs; r++) {
		if (event->runs[r].sums.self && !event->runs[r].exact)
			return false;
	}
	return true;
}

/* How much a value varies at least, because there are only so many samples. */
static double least_variance(const struct compare *c, const struct compare_event *event, size_t row,
			     size_t run)
{
	const struct compare_run *all = &event->runs[run];
	double squares = cell(c, event, row, run)->squares, weight = (double)all->sums.self;
	double share = number(c, cell(c, event, row, run)) / weight;

	if (all->exact)
		return 0;
	if (c->absolute)
		return squares;
	return (squares * (1 - 2 * share) + share * share * all->sums.squares) / weight / weight;
}

static double test_runs(const struct compare *c, const struct compare_event *event, size_t row)
{
	const struct compare_row *found = &event->rows[row];
	double n[2] = { (double)event->nr_runs[0], (double)event->nr_runs[1] },
	       df = n[0] + n[1] - 2;
	double squares[2] = { 0 }, least = 0, part[2], sum;

	for (size_t r = 0; r < c->nr_runs; r++) {
		bool side = is_after(c, r);
		double off;

		if (!event->runs[r].sums.self)
			continue;
		off = value_in(c, event, row, r) - found->value[side];
		squares[side] += off * off;
		least += least_variance(c, event, row, r) / n[side] / n[side];
	}
	if (n[0] == 1 || n[1] == 1) { /* its runs may vary as those of the other side */
		sum = (squares[0] + squares[1]) / df * (1 / n[0] + 1 / n[1]);
	} else {
		part[0] = squares[0] / (n[0] - 1) / n[0];
		part[1] = squares[1] / (n[1] - 1) / n[1];
		sum = part[0] + part[1];
		if (sum > 0)
			df = sum * sum /
			     (part[0] * part[0] / (n[0] - 1) + part[1] * part[1] / (n[1] - 1));
	}
	return test_t(found->value[AFTER] - found->value[BEFORE], fmax(sum, least), df);
}

static bool has_blocks(const struct compare *c, const struct compare_event *event)
{
	for (size_t r = 0; r < c->nr_runs; r++) {
		const struct compare_run *run = &event->runs[r];

		if (run->untimed || run->sums.samples < MIN_SAMPLES || run->nr_blocks < MIN_BLOCKS)
			return false;
	}
	return keeps_blocks(c);
}

static enum compare_method method_of(const struct compare *c, const struct compare_event *event)
{
	if (event->nr_runs[BEFORE] + event->nr_runs[AFTER] > 2)
		return METHOD_RUNS;
	if (all_exact(c, event))
		return METHOD_EXACT;
	return has_blocks(c, event) ? METHOD_BLOCKS : METHOD_COUNTS;
}

static void test_row(const struct compare *c, struct compare_event *event, size_t nr)
{
	struct compare_row *row = &event->rows[nr];
	double counted = 1, samples = 0;

	row->test.p = row->test.adjusted = 1;
	if (event->method == METHOD_EXACT) {
		row->test.p = row->test.adjusted = row->change == CHANGE_NONE;
		return;
	}
	row->tested = true;
	if (!all_exact(c, event)) {
		counted = test_counts(c, event, nr, &samples);
		row->tested = samples >= COMPARE_FEW - 0.5;
	}
	if (!row->tested)
		return;
	row->test.p = all_exact(c, event) ? 0 : counted;
	if (event->method == METHOD_RUNS)
		row->test.p = fmax(row->test.p, test_runs(c, event, nr));
	if (event->method == METHOD_BLOCKS)
		row->test.p = fmax(row->test.p, test_blocks(c, event, nr));
}

static void sum_up_row(const struct compare *c, const struct compare_event *event, size_t nr)
{
	struct compare_row *row = &event->rows[nr];
	double difference;

	for (size_t r = 0; r < c->nr_runs; r++) {
		const struct compare_sums *sums = cell(c, event, nr, r);
		double all = (double)event->runs[r].sums.self;
		bool side = is_after(c, r);
		double n = (double)event->nr_runs[side];

		if (all <= 0)
			continue;
		row->sums[side].self += sums->self;
		row->sums[side].total += sums->total;
		row->sums[side].samples += sums->samples;
		row->self[side] += (double)sums->self / all / n;
		row->total[side] += (double)sums->total / all / n;
		row->value[side] += value_in(c, event, nr, r) / n;
	}
	difference = row->value[AFTER] - row->value[BEFORE];
	/* Quotients and means of equal numbers may differ in their last bits. */
	row->change = fabs(difference) <= 1e-12 * fmax(row->value[AFTER], row->value[BEFORE])
			      ? CHANGE_NONE
			      : CHANGE_NOISE;
}

static void finish_event(const struct compare *c, struct compare_event *event)
{
	for (size_t r = 0; r < c->nr_runs; r++)
		event->nr_runs[is_after(c, r)] += event->runs[r].sums.self > 0;
	event->has[BEFORE] = event->nr_runs[BEFORE];
	event->has[AFTER] = event->nr_runs[AFTER];
	if (!event->has[BEFORE] || !event->has[AFTER])
		return;
	event->method = method_of(c, event);
	for (size_t i = 0; i < event->nr; i++) {
		sum_up_row(c, event, i);
		test_row(c, event, i);
		event->tested += event->rows[i].tested;
	}
}

static void adjust(struct compare *c)
{
	struct stats_test **tests;
	size_t nr = 0, cap = 0;

	for (size_t e = 0; e < c->nr; e++)
		cap += c->events[e].tested;
	tests = xcalloc(cap + 1, sizeof(*tests));
	for (size_t e = 0; e < c->nr; e++) {
		struct compare_event *event = &c->events[e];

		for (size_t i = 0; i < event->nr; i++) {
			if (event->rows[i].tested)
				tests[nr++] = &event->rows[i].test;
		}
	}
	stats_holm(tests, nr);
	free(tests);
}

void compare_finish(struct compare *c)
{
	for (size_t e = 0; e < c->nr; e++)
		finish_event(c, &c->events[e]);
	adjust(c);
	for (size_t e = 0; e < c->nr; e++) {
		for (size_t i = 0; i < c->events[e].nr; i++) {
			struct compare_row *row = &c->events[e].rows[i];

			if (row->change == CHANGE_NOISE && row->test.adjusted <= COMPARE_LEVEL)
				row->change = row->value[AFTER] > row->value[BEFORE] ? CHANGE_MORE
										     : CHANGE_LESS;
		}
	}
}

double compare_points(const struct compare *c, const struct compare_event *event,
		      const struct compare_row *row)
{
	double all = 0;

	for (size_t r = 0; r < c->nr_before; r++)
		all += (double)event->runs[r].sums.self / (double)event->nr_runs[BEFORE];
	return 100 * (row->value[AFTER] - row->value[BEFORE]) / (c->absolute ? all : 1);
}

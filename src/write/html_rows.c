// SPDX-License-Identifier: GPL-2.0-or-later
#include "write/html.h"

#include <stdlib.h>

#include "base/mem.h"

#define MOST ((size_t)1 << 20) /* rows, which browsers show at once */
/* How many quanta a recording has at least, with MOST rows; with twice the rows, a quarter of them... */
#define LEAST_TIMES 256
#define FEWEST_TIMES 16	 /* ...but no fewer than these, whatever the number of rows is */
#define MOST_TIMES 65536 /* so that a long row has no more parts */
#define FIRST_QUANTUM 1000

void html_rows_init(struct html_rows *rows)
{
	*rows = (struct html_rows){ .first = NO_TIME, .limit = MOST };
}

void html_rows_release(struct html_rows *rows)
{
	free(rows->all);
	hash_release(&rows->index);
}

static uint64_t times(const struct html_rows *rows, uint64_t quantum)
{
	return rows->first == NO_TIME ? 1 : (rows->last - rows->first) / quantum + 1;
}

static void append(struct html_rows *rows, const struct html_row *row)
{
	GROW(rows->all, rows->nr + 1, rows->cap);
	rows->all[rows->nr++] = *row;
}

/* Adds a row to those of its time. */
static void sum_up(struct html_rows *rows, struct html_row row)
{
	uint64_t words[3];
	uint32_t *known;

	if (row.time != NO_TIME)
		row.time -= row.time % rows->quantum;
	if (rows->lasting)
		row.length = rows->quantum;
	words[0] = row.time;
	words[1] = (uint64_t)row.stack << 32 | row.task;
	words[2] = (uint64_t)row.cpu << 32 | row.event;
	known = hash_at(&rows->index, hash_words(words, 3, 0));
	if (!*known) {
		append(rows, &row);
		*known = (uint32_t)rows->nr;
		return;
	}
	rows->all[*known - 1].weight += row.weight;
	rows->all[*known - 1].count += row.count;
}

static void add_parts(struct html_rows *rows, struct html_row row)
{
	while (rows->quantum && row.length) {
		uint64_t left = rows->quantum - row.time % rows->quantum;
		struct html_row part = row;

		if (left >= row.length)
			break;
		part.weight = part.length = left;
		part.count = 0;
		sum_up(rows, part);
		row.time += left;
		row.length = row.weight -= left;
	}
	sum_up(rows, row);
}

/* Adds all rows again, as there is a quantum now, and some may last for longer. */
static void divide(struct html_rows *rows)
{
	struct html_row *old = rows->all;
	size_t nr = rows->nr;

	rows->all = NULL;
	rows->nr = rows->cap = 0;
	for (size_t i = 0; i < nr; i++)
		html_rows_add(rows, &old[i]);
	free(old);
}

/* Sums up over longer times. */
static void lengthen(struct html_rows *rows)
{
	bool first = !rows->quantum;
	size_t nr = rows->nr;

	if (first)
		rows->quantum = FIRST_QUANTUM;
	else
		rows->quantum *= 2;
	while (times(rows, rows->quantum) > MOST_TIMES)
		rows->quantum *= 2;
	hash_release(&rows->index);
	if (first && rows->lasting) {
		divide(rows);
		return;
	}
	/* The rows become fewer, so each is read before its room is used again. */
	rows->nr = 0;
	for (size_t i = 0; i < nr; i++)
		sum_up(rows, rows->all[i]);
}

/* If most rows have stacks of their own, longer times do not help much. */
static uint64_t least_times(const struct html_rows *rows)
{
	uint64_t least = LEAST_TIMES;

	for (size_t limit = MOST; limit < rows->limit && least > FEWEST_TIMES; limit *= 2)
		least /= 4;
	return least;
}

static void make_room(struct html_rows *rows)
{
	if (rows->quantum && times(rows, rows->quantum) > MOST_TIMES)
		lengthen(rows);
	if (rows->nr < rows->limit)
		return;
	while (rows->nr > rows->limit / 2 &&
	       (!rows->quantum || times(rows, rows->quantum) > least_times(rows)))
		lengthen(rows);
	while (rows->nr > rows->limit / 2)
		rows->limit *= 2;
}

static void see(struct html_rows *rows, uint64_t time)
{
	if (rows->first == NO_TIME || time < rows->first)
		rows->first = time;
	if (time > rows->last)
		rows->last = time;
}

void html_rows_add(struct html_rows *rows, const struct html_row *row)
{
	if (row->time != NO_TIME) {
		see(rows, row->time);
		see(rows, row->time + row->length);
	}
	rows->lasting |= row->length > 0;
	make_room(rows);
	if (rows->quantum)
		add_parts(rows, *row);
	else
		append(rows, row);
}

#define ORDER(a, b)     \
	if ((a) != (b)) \
	return (a) < (b) ? -1 : 1

static int by_time(const void *va, const void *vb)
{
	const struct html_row *a = va, *b = vb;

	ORDER(a->time + 1, b->time + 1); /* NO_TIME + 1 is 0 */
	ORDER(a->cpu, b->cpu);
	ORDER(a->task, b->task);
	ORDER(a->event, b->event);
	ORDER(b->weight, a->weight);
	ORDER(a->stack, b->stack);
	return 0;
}

/* If they are in order already, they stay as they are. */
void html_rows_sort(struct html_rows *rows)
{
	bool sorted = !rows->quantum;

	for (size_t i = 1; i < rows->nr && sorted; i++)
		sorted = rows->all[i - 1].time + 1 <= rows->all[i].time + 1;
	if (!sorted && rows->nr)
		qsort(rows->all, rows->nr, sizeof(*rows->all), by_time);
}

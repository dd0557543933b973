// SPDX-License-Identifier: GPL-2.0-or-later
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "look.h"
#include "top_parts.h"

const char *const top_sorts[TOP_SORTS] = { "self", "total", "now", "name" };
const char *const top_bys[] = { "functions", "binaries", "tasks", "cpus" };

const char *top_name(struct top *top, unsigned which, uint32_t handle)
{
	return text_plain(&top->scratch[which], str_text(live_names(top->live), handle));
}

const char *top_row_name(struct top *top, const struct live_row *row)
{
	struct buf *text = &top->scratch[0];

	top_name(top, 0, row->sum.name);
	if (top->view.by == FLAT_TASK && row->sum.pid != NO_TASK)
		buf_addf(text, " (pid %" PRIu32 ")", row->sum.pid);
	return text->data;
}

/* ---- the table ---- */

static bool matches(struct top *top, const struct live_row *row)
{
	const struct strtab *names = live_names(top->live);

	return !top->filter.len || strcasestr(str_text(names, row->sum.name), top->filter.data) ||
	       strcasestr(str_text(names, row->sum.binary), top->filter.data);
}

struct order {
	const struct strtab *names;
	enum top_sort sort;
};

static uint64_t value(const struct live_row *row, enum top_sort sort)
{
	switch (sort) {
	case TOP_TOTAL: return row->sum.total;
	case TOP_NOW: return row->now;
	case TOP_NAME: return 0;
	default: return row->sum.self;
	}
}

static int compare(const void *va, const void *vb, void *arg)
{
	const struct live_row *a = *(const struct live_row *const *)va;
	const struct live_row *b = *(const struct live_row *const *)vb;
	const struct order *order = arg;
	const enum top_sort sorts[] = { order->sort, TOP_SELF, TOP_TOTAL };
	size_t nr = order->sort == TOP_NAME ? 0 : 3;
	int names;

	for (size_t i = 0; i < nr; i++) {
		uint64_t x = value(a, sorts[i]), y = value(b, sorts[i]);

		if (x != y)
			return x > y ? -1 : 1;
	}
	names = strverscmp(str_text(order->names, a->sum.name),
			   str_text(order->names, b->sum.name));
	return names ? names : a->sum.pid < b->sum.pid ? -1 : a->sum.pid > b->sum.pid;
}

void top_arrange(struct top *top)
{
	struct live_view *view = &top->view;
	struct order order = { live_names(top->live), top->sort };

	top->nr_rows = 0;
	GROW(top->rows, view->nr_rows, top->cap_rows);
	for (size_t i = 0; i < view->nr_rows; i++) {
		if (matches(top, &view->rows[i]))
			top->rows[top->nr_rows++] = &view->rows[i];
	}
	if (top->nr_rows)
		qsort_r(top->rows, top->nr_rows, sizeof(*top->rows), compare, &order);
}

/* ---- the lines above it ---- */

/* What reading the stream has to say; "": all is well. */
static void reading(struct top *top, struct buf *text, bool *alarm)
{
	const char *format = live_format(top->live);
	const struct live_counts *counts = &top->view.counts;

	switch (live_state(top->live)) {
	case LIVE_WAITS:
		if (counts->bytes)
			buf_addf(text, "%" PRIu64 " bytes received, the format is not known yet",
				 counts->bytes);
		else
			buf_adds(text, "waiting for data");
		break;
	case LIVE_BLIND:
		buf_addf(text, "no live view of %s: %" PRIu64 " bytes received",
			 format ? format : "compressed streams", counts->bytes);
		break;
	case LIVE_FAILED:
		*alarm = true;
		buf_adds(text, live_error(top->live));
		break;
	case LIVE_ENDED: buf_adds(text, "the recording has ended"); break;
	case LIVE_READS:
		if (counts->others && !counts->samples)
			buf_addf(text, "%" PRIu64 " events of a trace; their sums come at the end",
				 counts->others);
		break;
	}
}

static void add_words(struct top *top, struct buf *text, const char *words)
{
	if (text->len && *words)
		buf_adds(text, ", ");
	buf_adds(text, text_plain(&top->scratch[0], words));
}

void top_state(struct top *top, struct buf *text, bool *alarm)
{
	struct buf words = { 0 }, all = { 0 };

	*alarm = top->source.trouble;
	if (top->paused)
		add_words(top, &all, "PAUSED (still recording)");
	reading(top, &words, alarm);
	if (words.len)
		add_words(top, &all, words.data);
	if (live_state(top->live) < LIVE_ENDED)
		add_words(top, &all, top->source.text);
	if (all.len)
		buf_adds(text, all.data);
	buf_release(&words);
	buf_release(&all);
}

void top_time(struct top *top, struct buf *text)
{
	uint64_t seconds = (top->view.time - top->began) / 1000000000;

	buf_addf(text, "%" PRIu64 ":%02u:%02u", seconds / 3600, (unsigned)(seconds / 60 % 60),
		 (unsigned)(seconds % 60));
}

void top_samples(struct top *top, struct buf *text)
{
	const struct live_counts *counts = &top->view.counts;

	buf_addf(text, "%" PRIu64 " samples, %.0f/s", counts->samples, counts->rate);
}

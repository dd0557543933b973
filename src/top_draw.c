// SPDX-License-Identifier: GPL-2.0-or-later
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "look.h"
#include "top_parts.h"

#define FLAME_MOST 12 /* rows */
#define FLAME_FROM 16 /* rows of a window that has a flame graph */
#define CPUS_FROM 8   /* likewise, cpus */

struct page {
	struct top *top;
	struct screen *screen;
	int rows, columns;
	int y; /* the next free row */
};

/* ---- header ---- */

static void put(struct page *page, int *x, enum style style, const char *text)
{
	*x += screen_put(page->screen, page->y, *x, page->columns - *x, style, text);
}

/* In a narrow window, the state matters more than the name of the source. */
static void draw_title(struct page *page)
{
	struct top *top = page->top;
	struct buf text = { 0 };
	const char *title;
	bool alarm;
	int x = 0;

	screen_fill(page->screen, page->y, 0, page->columns, STYLE_TITLE, "");
	if (page->columns >= 60)
		put(page, &x, STYLE_TITLE, "kscope top: ");
	top_state(top, &text, &alarm);
	title = text_plain(&top->scratch[0], top->setup->title);
	x += screen_put(page->screen, page->y, x, text.len ? page->columns / 3 : page->columns - x,
			STYLE_TITLE, title);
	if (text.len) {
		put(page, &x, STYLE_TITLE, "  ");
		put(page, &x, alarm ? STYLE_ALARM : STYLE_TITLE, text.data);
	}
	buf_clear(&text);
	top_time(top, &text);
	if (x + 2 + (int)text.len <= page->columns)
		screen_put(page->screen, page->y, page->columns - (int)text.len, (int)text.len,
			   STYLE_TITLE, text.data);
	buf_release(&text);
	page->y++;
}

static void put_count(struct page *page, int *x, uint64_t number, const char *what)
{
	char text[60];

	snprintf(text, sizeof(text), "%" PRIu64 " %s", number, what);
	put(page, x, STYLE_PLAIN, ", ");
	put(page, x, number ? STYLE_ALARM : STYLE_PLAIN, text);
}

static void draw_counts(struct page *page)
{
	struct top *top = page->top;
	const struct live_counts *counts = &top->view.counts;
	struct buf text = { 0 };
	int x = 0;

	top_samples(top, &text);
	put(page, &x, STYLE_BOLD, text.data);
	put_count(page, &x, counts->lost, "lost");
	put_count(page, &x, counts->damaged, "damaged");
	buf_clear(&text);
	buf_addf(&text, ", %zu cpus, %zu tasks", top->view.nr_cpus, counts->tasks);
	if (top->view.source)
		buf_addf(&text, ", %s", top_name(top, 0, top->view.source));
	if (counts->sources > 1)
		buf_addf(&text, " (one of %zu events; e: next)", counts->sources);
	put(page, &x, STYLE_PLAIN, text.data);
	buf_release(&text);
	page->y++;
}

/* ---- cpus ---- */

static void draw_cpu(struct page *page, size_t cpu, int x, int width)
{
	const struct live_cpu *c = &page->top->view.cpus[cpu];
	double busy = look_share(c->busy, c->all);
	int bar = width - 15, full = (int)(busy * bar / 100 + 0.5);
	char text[40];

	snprintf(text, sizeof(text), width == TOP_CPU_WIDE ? "cpu%3zu" : "%4zu", cpu);
	x += screen_put(page->screen, page->y, x, width, STYLE_PLAIN, text);
	if (width == TOP_CPU_WIDE) {
		x += screen_put(page->screen, page->y, x, 2, STYLE_PLAIN, " [");
		for (int i = 0; i < bar; i++)
			x += screen_put(page->screen, page->y, x, 1,
					i < full ? STYLE_BAR : STYLE_PLAIN, i < full ? "|" : " ");
		x += screen_put(page->screen, page->y, x, 1, STYLE_PLAIN, "]");
	}
	snprintf(text, sizeof(text), c->all ? "%4.0f%%" : "   - ", busy);
	screen_put(page->screen, page->y, x, width, busy >= 90 ? STYLE_HOT : STYLE_PLAIN, text);
}

static void draw_cpus(struct page *page)
{
	size_t nr = page->top->view.nr_cpus, shown;
	size_t lines = (size_t)page->rows / 6, wide = (size_t)page->columns / TOP_CPU_WIDE;
	int width = wide * lines >= nr ? TOP_CPU_WIDE : TOP_CPU_NARROW;
	size_t across = (size_t)(page->columns / width);

	if (!nr || !across || page->rows < CPUS_FROM)
		return;
	shown = nr < across * lines ? nr : across * lines;
	for (size_t i = 0; i < shown; i++) {
		draw_cpu(page, i, (int)(i % across) * width, width);
		if (i % across == across - 1 || i == shown - 1)
			page->y++;
	}
}

/* ---- the table ---- */

struct column {
	const char *head;
	int width, from; /* from: columns of a window that has it */
};

static const struct column columns[] = {
	{ "   self", 7, 0 }, { "  total", 8, 36 }, { "    now", 8, 28 }, { "  samples", 11, 56 }
};

enum { COLUMN_SELF, COLUMN_TOTAL, COLUMN_NOW, COLUMN_SAMPLES, COLUMNS_NR };

static void draw_column(struct page *page, int *x, size_t column, enum style style,
			const char *text)
{
	if (page->columns < columns[column].from)
		return;
	screen_put(page->screen, page->y, *x, columns[column].width, style, text);
	*x += columns[column].width;
}

static int binary_width(const struct page *page)
{
	return page->top->view.by == FLAT_FUNCTION && page->columns >= 72 ? page->columns / 5 : 0;
}

static void draw_head(struct page *page)
{
	static const enum top_sort sorts[] = { TOP_SELF, TOP_TOTAL, TOP_NOW, TOP_SORTS };
	struct top *top = page->top;
	int x = 0, binary = binary_width(page);

	screen_fill(page->screen, page->y, 0, page->columns, STYLE_HEAD, "");
	for (size_t i = 0; i < COLUMNS_NR; i++)
		draw_column(page, &x, i, top->sort == sorts[i] ? STYLE_TITLE : STYLE_HEAD,
			    columns[i].head);
	screen_put(page->screen, page->y, x + 1, page->columns - x - 1,
		   top->sort == TOP_NAME ? STYLE_TITLE : STYLE_HEAD,
		   top->view.by == FLAT_TASK  ? "task"
		   : top->view.by == FLAT_CPU ? "cpu"
					      : "function");
	if (binary)
		screen_put(page->screen, page->y, page->columns - binary, binary, STYLE_HEAD,
			   "binary");
	page->y++;
}

static enum style style_of(double percent, bool cursor)
{
	return cursor		? STYLE_CURSOR
	       : percent >= 5	? STYLE_HOT
	       : percent >= 0.5 ? STYLE_WARM
				: STYLE_PLAIN;
}

static void draw_share(struct page *page, int *x, size_t column, double percent, bool cursor)
{
	char text[24];

	snprintf(text, sizeof(text), "%6.2f%%", percent);
	draw_column(page, x, column, style_of(percent, cursor), text);
}

static void draw_row(struct page *page, const struct live_row *row, bool cursor)
{
	struct top *top = page->top;
	const struct live_view *view = &top->view;
	enum style style = cursor ? STYLE_CURSOR : STYLE_PLAIN;
	int x = 0, binary = binary_width(page);
	char text[24];

	screen_fill(page->screen, page->y, 0, page->columns, style, "");
	draw_share(page, &x, COLUMN_SELF, look_share(row->sum.self, view->weight), cursor);
	draw_share(page, &x, COLUMN_TOTAL, look_share(row->sum.total, view->weight), cursor);
	draw_share(page, &x, COLUMN_NOW, look_share(row->now, view->now), cursor);
	snprintf(text, sizeof(text), "%9" PRIu64, row->sum.samples);
	draw_column(page, &x, COLUMN_SAMPLES, style, text);
	screen_put(page->screen, page->y, x + 1, page->columns - x - 2 - binary, style,
		   top_row_name(top, row));
	if (binary && row->sum.binary)
		screen_put(page->screen, page->y, page->columns - binary, binary, style,
			   top_name(top, 1, row->sum.binary));
	page->y++;
}

/* The cursor stays on the table, and the table where the cursor is. */
static void place_cursor(struct top *top, int height)
{
	size_t visible = height > 0 ? (size_t)height : 0;

	top->visible = height > 0 ? height : 0;
	if (top->at >= top->nr_rows)
		top->at = top->nr_rows ? top->nr_rows - 1 : 0;
	if (top->first > top->at)
		top->first = top->at;
	if (visible && top->at >= top->first + visible)
		top->first = top->at - visible + 1;
}

static void draw_table(struct page *page, int height)
{
	struct top *top = page->top;
	int end = page->y + height;

	if (height <= 0)
		return;
	draw_head(page);
	place_cursor(top, height - 1);
	for (size_t i = top->first; i < top->nr_rows && page->y < end; i++)
		draw_row(page, top->rows[i], i == top->at);
	page->y = end;
}

/* ---- the flame graph ---- */

static enum style frame_style(const struct tree_node *node, bool second)
{
	enum style style = node->kind == TREE_TASK     ? STYLE_TASK
			   : node->kind == TREE_KERNEL ? STYLE_KERNEL
						       : STYLE_USER;

	return (enum style)(style + second);
}

static int column_of(const struct page *page, uint64_t at)
{
	return (int)((double)at / (double)page->top->view.tree.nodes[0].total * page->columns +
		     0.5);
}

/* Draws the callees of a node below it. begin: where it begins, in weight. As deep as there are rows. */
static void draw_callees(struct page *page, uint32_t node, uint64_t begin, int y)
{
	const struct tree *tree = &page->top->view.tree;
	bool second = false;

	for (uint32_t c = tree->nodes[node].child; c && y < page->rows - 1;
	     c = tree->nodes[c].sibling) {
		uint64_t end = begin + tree->nodes[c].total;
		int x = column_of(page, begin), width = column_of(page, end) - x;
		enum style style = frame_style(&tree->nodes[c], second);

		if (width > 0) {
			screen_fill(page->screen, y, x, width, style, "|");
			screen_put(page->screen, y, x + 1, width - 1, style,
				   top_name(page->top, 0, tree->nodes[c].name));
			draw_callees(page, c, begin, y + 1);
			second = !second;
		}
		begin = end;
	}
}

static int flame_height(const struct page *page)
{
	const struct top *top = page->top;
	int most = page->rows / 3,
	    depth = (int)(top->view.tree.depth < FLAME_MOST ? top->view.tree.depth : FLAME_MOST);

	if (top->no_flame || page->rows < FLAME_FROM)
		return 0;
	return depth < most ? depth : most;
}

/* ---- help, and the last line ---- */

static void draw_help(struct page *page)
{
	static const char *const lines[] = {
		"q        quit and end the recording",
		"p space  pause the view; the recording goes on",
		"s        sort by self, total, now or name",
		"/        show only functions and binaries whose names contain a string",
		"Esc      clear the filter",
		"t        switch between functions, tasks and cpus",
		"e        show the next event, if there are several",
		"f        toggle the call tree (flame graph)",
		"r        reset the sums",
		"w        write the recording so far to a file: a flame graph,",
		"         perf.data, ...; the extension selects the format",
		"arrows, PgUp, PgDn, Home, End   move",
		"Ctrl-L   redraw",
		"",
		"self: in the function itself; total: including the functions that it called;",
		"now: self, in the last 5 seconds.",
		"cpus: the share of the last 5 seconds that was not idle.",
	};

	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines) && page->y < page->rows - 1; i++) {
		screen_put(page->screen, page->y, 1, page->columns - 1, STYLE_PLAIN, lines[i]);
		page->y++;
	}
}

/* Returns where the user types, or -1. */
static int draw_last_line(struct page *page)
{
	struct top *top = page->top;
	struct buf text = { 0 };
	int x = 0;

	page->y = page->rows - 1;
	if (top->prompt) {
		put(page, &x, STYLE_BOLD, top->prompt == PROMPT_SAVE ? "write to: " : "filter: ");
		put(page, &x, STYLE_PLAIN, top->input.len ? top->input.data : "");
		return x < page->columns ? x : page->columns - 1;
	}
	if (top->message.len) {
		put(page, &x, STYLE_BOLD, text_plain(&top->scratch[0], top->message.data));
		return -1;
	}
	if (top->filter.len)
		buf_addf(&text, "filter: %s (Esc: all)  ",
			 text_plain(&top->scratch[0], top->filter.data));
	buf_addf(&text, "q quit  h help  p %s  s sort: %s  t %s  / filter  f flame  w write",
		 top->paused ? "resume" : "pause", top_sorts[top->sort], top_bys[top->by]);
	put(page, &x, STYLE_PLAIN, text.data);
	buf_release(&text);
	return -1;
}

void top_draw(struct top *top)
{
	struct page page = { .top = top, .screen = top->screen };
	int flame, cursor;

	screen_size(top->screen, &page.rows, &page.columns);
	screen_clear(top->screen);
	if (page.rows < 2 || page.columns < 1)
		return;
	draw_title(&page);
	if (page.rows > 3)
		draw_counts(&page);
	if (top->help) {
		draw_help(&page);
	} else {
		flame = flame_height(&page);
		draw_cpus(&page);
		draw_table(&page, page.rows - 1 - flame - page.y);
		if (flame)
			draw_callees(&page, 0, 0, page.y);
	}
	cursor = draw_last_line(&page);
	screen_show(top->screen, cursor);
}

// SPDX-License-Identifier: GPL-2.0-or-later
#include "write/html.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"
#include "model/role.h"
#include "model/source.h"
#include "report_css.h"
#include "report_hash.h"
#include "report_js.h"

#define MOST_GAPS 65536

/* ---- tasks, events, gaps ---- */

uint32_t html_task(struct writer *w, const struct event *ev)
{
	struct html *html = w->priv;
	uint32_t comm = world_comm(w->world, ev->pid, ev->tid);
	uint32_t *number = hash_at(&html->task_index,
				   (struct hash_key){ (uint64_t)ev->pid << 32 | ev->tid, comm });

	if (!*number) {
		GROW(html->tasks, html->nr_tasks + 1, html->cap_tasks);
		html->tasks[html->nr_tasks++] = (struct html_task){ ev->pid, ev->tid, comm, false };
		*number = (uint32_t)html->nr_tasks;
	}
	return *number - 1;
}

static uint32_t add_event(struct html *html, const struct html_event *event)
{
	GROW(html->events, html->nr_events + 1, html->cap_events);
	html->events[html->nr_events] = *event;
	return (uint32_t)html->nr_events++;
}

uint32_t html_source(struct html *html, uint32_t source)
{
	uint32_t *number = hash_at(&html->source_index, (struct hash_key){ source, 0 });

	if (!*number)
		*number = add_event(html, &(struct html_event){ .source = source }) + 1;
	return *number - 1;
}

uint32_t html_event(struct html *html, const char *name, const char *unit)
{
	for (uint32_t i = 0; i < html->nr_events; i++) {
		const struct html_event *event = &html->events[i];

		if (event->name && !strcmp(event->name, name) && !strcmp(event->unit, unit))
			return i;
	}
	return add_event(html, &(struct html_event){ .name = name, .unit = unit });
}

/* If there are too many, the last one becomes longer. */
void html_add_gap(struct html *html, const struct html_gap *gap)
{
	struct html_gap *last;

	if (html->nr_gaps < MOST_GAPS) {
		GROW(html->gaps, html->nr_gaps + 1, html->cap_gaps);
		html->gaps[html->nr_gaps++] = *gap;
		return;
	}
	last = &html->gaps[html->nr_gaps - 1];
	last->begin = gap->begin < last->begin ? gap->begin : last->begin;
	last->end = gap->end > last->end ? gap->end : last->end;
	last->cpu = last->cpu == gap->cpu ? gap->cpu : 0;
	last->task = last->task == gap->task ? gap->task : 0;
	last->samples += gap->samples;
	last->bytes += gap->bytes;
}

/* ---- events of the recording ---- */

static void put_sample(struct writer *w, const struct event *ev)
{
	struct html *html = w->priv;
	struct html_row row = {
		.time = ev->time,
		.weight = ev->sample.weight,
		.count = ev->sample.count + !ev->sample.count,
		.stack = world_stack(w->world, ev),
		.task = html_task(w, ev),
		.cpu = ev->cpu == NO_CPU ? 0 : ev->cpu + 1,
		.event = html_source(html, ev->sample.source),
	};

	html->events[row.event].samples += row.count;
	html->events[row.event].weight += row.weight;
	html_rows_add(&html->rows, &row);
	w->written.samples += row.count;
	w->written.weight += row.weight;
}

static void put_lost(struct writer *w, const struct event *ev)
{
	struct html *html = w->priv;
	struct html_gap gap = { .begin = ev->time,
				.end = ev->time,
				.samples = ev->lost.count,
				.bytes = ev->lost.bytes };

	sums_lose(&html->lost, ev);
	if (ev->time == NO_TIME && html->rows.first != NO_TIME)
		gap.begin = gap.end = html->rows.last;
	if (gap.begin == NO_TIME)
		return;
	if (ev->tid != NO_TASK)
		gap.task = html_task(w, ev) + 1;
	if (ev->cpu != NO_CPU)
		gap.cpu = ev->cpu + 1;
	html_add_gap(html, &gap);
}

/* The bytes of a change are its weight, as a signed number. Its event is twice the allocator's, plus 1 for a free. */
static void change_block(void *arg, uint32_t block, uint32_t by, uint64_t was, uint64_t now)
{
	struct writer *w = arg;
	struct html *html = w->priv;
	const struct alloc_block *changed = &html->heaps.blocks[block];
	const struct alloc_site *site = &html->heaps.sites[changed->site];
	bool is_new = changed->live && changed->born == html->heaps.events;
	bool shrinks = !changed->live || now < was;
	struct html_row row = { .time = html->alloc_time,
				.weight = now - was,
				.count = (uint64_t)is_new - !changed->live,
				.stack = site->stack,
				.task = html->alloc_task,
				.event = site->allocator * 2 + shrinks };

	(void)by;
	html_rows_add(&html->changes, &row);
	if (shrinks)
		return;
	row.event = html_event(html, html->heaps.heaps[site->allocator]->name, "bytes");
	html->events[row.event].samples += row.count;
	html->events[row.event].weight += row.weight;
	html_rows_add(&html->rows, &row);
}

static void put_alloc(struct writer *w, const struct event *ev)
{
	struct html *html = w->priv;

	html->alloc_time = ev->time;
	html->alloc_task = html_task(w, ev);
	alloc_add(&html->heaps, ev);
}

static int html_open(struct writer *w)
{
	struct html *html = w->priv;

	html_rows_init(&html->rows);
	html_rows_init(&html->changes);
	alloc_init(&html->heaps, w->world);
	html->heaps.change = change_block;
	html->heaps.arg = w;
	return 0;
}

static int html_put(struct writer *w, const struct event *ev)
{
	if (ev->kind == EVENT_ALLOC)
		put_alloc(w, ev);
	else if (ev->outside)
		return 0;
	else if (ev->kind == EVENT_SAMPLE)
		put_sample(w, ev);
	else if (ev->kind == EVENT_SLICE)
		html_put_slice(w, ev);
	else
		put_lost(w, ev);
	return 0;
}

/* ---- the head ---- */

static void see(uint64_t *first, uint64_t *last, uint64_t begin, uint64_t end)
{
	if (*first == NO_TIME || begin < *first)
		*first = begin;
	if (end > *last)
		*last = end;
}

/* Sets where times begin; returns the length of the recording. */
static uint64_t find_times(struct html *html)
{
	uint64_t first = html->rows.first, last = html->rows.last;

	if (html->changes.first != NO_TIME)
		see(&first, &last, html->changes.first, html->changes.last);
	for (size_t i = 0; i < html->slices.nr; i++)
		see(&first, &last, html->slices.all[i].begin,
		    html->slices.all[i].begin + html->slices.all[i].length);
	for (size_t i = 0; i < html->nr_gaps; i++)
		see(&first, &last, html->gaps[i].begin, html->gaps[i].end);
	html->start = first == NO_TIME ? 0 : first;
	/* Rows that are summed up may begin before the first time. */
	if (html->rows.quantum)
		html->start -= html->start % html->rows.quantum;
	return first == NO_TIME ? 0 : last - html->start;
}

static void put_event(struct writer *w, struct json_out *json, const struct html_event *event)
{
	const struct html *html = w->priv;
	const struct source *source = &w->world->sources[event->source];
	const char *unit = "samples", *name = event->name;
	bool weighs = event->name || (html->options.measure != MEASURE_SAMPLES &&
				      source_has_weights(w->world, event->source, event->weight));

	if (!name)
		name = event->source
			       ? str_text(w->world->strings, source_name(w->world, event->source))
			       : "samples";
	if (event->name)
		unit = event->unit;
	else if (weighs &&
		 source_sum_is_time(w->world, event->source, event->samples, event->weight))
		unit = "ns";
	else if (weighs)
		unit = source->unit ? str_text(w->world->strings, source->unit) : name;
	json_out_object(json, NULL);
	json_out_text(json, "name", name);
	json_out_text(json, "unit", unit);
	json_out_bool(json, "weighs", weighs);
	json_out_u64(json, "samples", event->samples);
	json_out_u64(json, "weight", event->weight);
	json_out_end(json);
	if (!event->name)
		w->written.knows |= weighs ? WROTE_WEIGHT : WROTE_SAMPLES;
}

static void put_facts(const struct writer *w, struct json_out *json)
{
	const struct world *world = w->world;

	json_out_array(json, "facts");
	for (size_t i = 0; i < world->nr_facts; i++) {
		json_out_array(json, NULL);
		json_out_text(json, NULL, str_text(world->strings, world->facts[i].key));
		json_out_text(json, NULL, str_text(world->strings, world->facts[i].value));
		json_out_end(json);
	}
	json_out_end(json);
}

static const char *title_of(const struct writer *w)
{
	const char *cmdline = world_fact(w->world, "cmdline");

	return w->input ? w->input : cmdline && *cmdline ? cmdline : "recording";
}

static void put_names(const struct writer *w, struct json_out *json)
{
	const struct html *html = w->priv;

	json_out_array(json, "categories");
	for (unsigned i = 0; i < HTML_CATEGORIES; i++)
		json_out_text(json, NULL, html_categories[i]);
	json_out_end(json);
	json_out_array(json, "heaps");
	for (size_t i = 1; i < html->heaps.nr_heaps; i++)
		json_out_text(json, NULL, html->heaps.heaps[i]->name);
	json_out_end(json);
}

static void put_head(struct writer *w, struct json_out *json, uint64_t length)
{
	static const char *const axes[] = { "ns", "cycles", "instructions" };
	struct html *html = w->priv;
	char start[24];

	snprintf(start, sizeof(start), "%" PRIu64, html->start);
	json_out_object(json, "head");
	json_out_text(json, "title", title_of(w));
	json_out_text(json, "start", start);
	json_out_u64(json, "length", length);
	json_out_text(json, "axis", axes[html->given.timeline.axis]);
	json_out_u64(json, "quantum", html->rows.quantum);
	json_out_bool(json, "timed", html->rows.first != NO_TIME || html->changes.first != NO_TIME);
	json_out_array(json, "events");
	for (size_t i = 0; i < html->nr_events; i++)
		put_event(w, json, &html->events[i]);
	json_out_end(json);
	put_names(w, json);
	put_facts(w, json);
	json_out_object(json, "lost");
	json_out_u64(json, "samples", html->lost.samples);
	json_out_u64(json, "damaged", html->lost.damaged);
	json_out_u64(json, "bytes", html->lost.bytes);
	json_out_u64(json, "places", html->lost.damages);
	json_out_end(json);
	json_out_u64(json, "shortest", html->slices.shortest);
	json_out_u64(json, "shorter", html->slices.shorter);
	json_out_end(json);
}

/* ---- blocks ---- */

static uint32_t comm_of(struct world *world, const struct html_task *task)
{
	uint32_t comm = task->comm ? task->comm : world_comm(world, task->pid, task->tid);

	return comm ? comm : world_comm(world, task->pid, task->pid);
}

static bool is_idle(struct world *world, const struct html_task *task)
{
	uint32_t comm = comm_of(world, task);

	return comm && role_idle_task(str_text(world->strings, comm));
}

static int write_core(struct writer *w, bool before, uint64_t length)
{
	struct html *html = w->priv;
	const struct html_task *tasks = html->tasks;
	struct html_tables *t = &html->tables;
	struct html_block core;
	size_t nr = html->nr_tasks;

	html_block_begin(&core, w->out, "core", before);
	put_head(w, &core.json, length);
	html_put_tables(t, &core);
	HTML_COLUMN(&core, "tasks.name", false, nr, html_string(t, comm_of(w->world, &tasks[i])));
	HTML_COLUMN(&core, "tasks.pid", false, nr, (uint64_t)(tasks[i].pid + 1));
	HTML_COLUMN(&core, "tasks.tid", false, nr, (uint64_t)(tasks[i].tid + 1));
	HTML_COLUMN(&core, "tasks.idle", false, nr, is_idle(w->world, &tasks[i]));
	json_out_array(&core.json, "strings");
	for (size_t i = 0; i < t->nr_strings; i++)
		json_out_text(&core.json, NULL, str_text(w->world->strings, t->strings[i]));
	json_out_end(&core.json);
	return html_block_end(&core, &w->err);
}

static int write_rows(struct writer *w, bool before)
{
	struct html *html = w->priv;
	const struct html_row *rows = html->rows.all;
	const struct html_gap *gaps = html->gaps;
	struct html_tables *t = &html->tables;
	size_t nr = html->rows.nr;
	struct html_block block;

	html_block_begin(&block, w->out, "rows", before);
	HTML_COLUMN(&block, "rows.time", true, nr, html_relative(html, rows[i].time));
	if (html->rows.lasting)
		HTML_COLUMN(&block, "rows.length", false, nr, rows[i].length);
	HTML_COLUMN(&block, "rows.cpu", false, nr, rows[i].cpu);
	HTML_COLUMN(&block, "rows.task", false, nr, rows[i].task);
	HTML_COLUMN(&block, "rows.event", false, nr, rows[i].event);
	HTML_COLUMN(&block, "rows.stack", false, nr, html_stack(t, rows[i].stack));
	HTML_COLUMN(&block, "rows.place", false, nr, html_place(t, rows[i].stack));
	HTML_COLUMN(&block, "rows.weight", false, nr, rows[i].weight);
	HTML_COLUMN(&block, "rows.count", false, nr, rows[i].count);
	html_put_places(t, &block);
	nr = html->nr_gaps;
	HTML_COLUMN(&block, "gaps.begin", true, nr, html_relative(html, gaps[i].begin));
	HTML_COLUMN(&block, "gaps.end", true, nr, html_relative(html, gaps[i].end));
	HTML_COLUMN(&block, "gaps.cpu", false, nr, gaps[i].cpu);
	HTML_COLUMN(&block, "gaps.task", false, nr, gaps[i].task);
	HTML_COLUMN(&block, "gaps.samples", false, nr, gaps[i].samples);
	HTML_COLUMN(&block, "gaps.bytes", false, nr, gaps[i].bytes);
	return html_block_end(&block, &w->err);
}

static int write_changes(struct writer *w, bool before)
{
	struct html *html = w->priv;
	const struct html_row *rows = html->changes.all;
	size_t nr = html->changes.nr;
	struct html_block block;

	if (!nr || before)
		return 0;
	html_block_begin(&block, w->out, "allocs", before);
	HTML_COLUMN(&block, "allocs.time", true, nr, html_relative(html, rows[i].time));
	HTML_COLUMN(&block, "allocs.stack", false, nr, html_stack(&html->tables, rows[i].stack));
	HTML_COLUMN(&block, "allocs.task", false, nr, rows[i].task);
	HTML_COLUMN(&block, "allocs.heap", false, nr, rows[i].event / 2 - 1);
	HTML_COLUMN(&block, "allocs.size", true, nr, rows[i].weight);
	HTML_COLUMN(&block, "allocs.blocks", true, nr, rows[i].count);
	return html_block_end(&block, &w->err);
}

static void build_tables(struct writer *w)
{
	struct html *html = w->priv;

	html_tables_init(&html->tables, w->world, html->options.no_inline);
	for (size_t i = 0; i < html->rows.nr; i++)
		html_tables_mark(&html->tables, html->rows.all[i].stack);
	for (size_t i = 0; i < html->changes.nr; i++)
		html_tables_mark(&html->tables, html->changes.all[i].stack);
	html_tables_build(&html->tables);
}

/* The block "core" comes last, because the others add names to it. */
static int write_blocks(struct writer *w, bool before)
{
	struct html *html = w->priv;
	uint64_t length = find_times(html);

	html_rows_sort(&html->rows);
	html_rows_sort(&html->changes);
	build_tables(w);
	if (write_rows(w, before) < 0 || html_write_slices(w, before) < 0 ||
	    write_changes(w, before) < 0 || html_write_code(w, before) < 0)
		return -1;
	return write_core(w, before, length);
}

/* ---- the page ---- */

static void put_escaped(struct out *out, const char *text)
{
	struct buf plain = { 0 };

	for (const char *c = text_plain(&plain, text); *c; c++) {
		if (*c == '<')
			out_puts(out, "&lt;");
		else if (*c == '&')
			out_puts(out, "&amp;");
		else
			out_write(out, c, 1);
	}
	buf_release(&plain);
}

/* Nothing runs in the page but its own script, and it may only ask the server that it came from, if any. */
static void put_page_head(struct writer *w)
{
	out_puts(w->out,
		 "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
		 "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
		 "script-src 'sha256-" REPORT_HASH "'; style-src 'unsafe-inline'; "
		 "connect-src 'self'; base-uri 'none'; form-action 'none'\">\n"
		 "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
		 "<meta name=\"generator\" content=\"kscope\">\n<title>");
	put_escaped(w->out, title_of(w));
	out_puts(w->out, " - kscope</title>\n<style>\n");
	out_puts(w->out, REPORT_CSS);
	out_puts(w->out, "</style>\n</head>\n<body>\n<noscript>This report needs JavaScript, which "
			 "runs only in this page.</noscript>\n");
}

static int html_finish(struct writer *w)
{
	struct html *html = w->priv;

	if (html->part != HTML_AFTER)
		put_page_head(w);
	if (write_blocks(w, html->part == HTML_BEFORE) < 0)
		return -1;
	w->written.knows |= WROTE_SLICES;
	if (!(w->written.knows & WROTE_WEIGHT))
		w->written.knows |= WROTE_SAMPLES;
	if (html->part == HTML_BEFORE)
		return 0;
	out_puts(w->out, "<script>");
	out_puts(w->out, REPORT_JS);
	out_puts(w->out, "</script>\n</body>\n</html>\n");
	return 0;
}

static void html_close(struct writer *w)
{
	struct html *html = w->priv;

	html_rows_release(&html->rows);
	html_rows_release(&html->changes);
	html_slices_release(&html->slices);
	html_tables_release(&html->tables);
	alloc_release(&html->heaps);
	hash_release(&html->task_index);
	hash_release(&html->source_index);
	free(html->tasks);
	free(html->events);
	free(html->gaps);
}

const struct writer_ops write_html = {
	.name = "html",
	.about = "self-contained page: timeline, flame graphs, tables, source",
	.extension = ".html",
	.other_extension = ".htm",
	.needs = WRITER_TEXT | WRITER_OUTSIDE,
	.takes = EVENT_BIT(EVENT_SAMPLE) | EVENT_BIT(EVENT_SLICE) | EVENT_BIT(EVENT_LOST) |
		 EVENT_BIT(EVENT_ALLOC),
	.next = "open it in a browser",
	.options = OPTION_USES({ &measure_table, offsetof(struct html, options) },
			       { &no_inline_table, offsetof(struct html, options) },
			       { &timeline_table, offsetof(struct html, given) },
			       { &inlines_table, OPTION_ELSEWHERE },
			       { &gate_table, OPTION_ELSEWHERE }),
	.priv_size = sizeof(struct html),
	.open = html_open,
	.put = html_put,
	.finish = html_finish,
	.close = html_close,
};

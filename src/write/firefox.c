// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * firefox: the processed profile format of the Firefox Profiler, version 60: the first in which all threads share the
 * tables of stacks, frames, functions and strings. The front end converts it to later versions.
 *
 * A thread in the output has one column of weights, so a task has a thread for each event. Its markers (calls, losses,
 * and the cpus that it ran on) are in the thread with most of its samples. Each allocator is a thread,
 * too, since the front end finds the free of a block only in the thread of its allocation.
 *
 * Rows of samples, markers and allocations are kept until the end, because a thread's columns follow each other.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "model/source.h"
#include "write/firefox.h"

#define VERSION 60
#define GECKO_VERSION 30 /* of the unprocessed format; the front end wants a number */
#define MS ((uint64_t)1000000)
#define FEW 10 /* samples: too few to tell their usual distance */
/* At first, at most so many threads are visible, and only those with at least 1/IDLE of the most active one. */
#define VISIBLE 15
#define IDLE 20

static int firefox_open(struct writer *w)
{
	struct firefox *ff = w->priv;

	ff->tables.world = w->world;
	ff->out.json.to = &ff->out.text;
	ff->out.to = w->out;
	ff->first = NO_TIME;
	ff->nr_parts = 1;
	GROW(ff->parts, 1, ff->cap_parts);
	alloc_init(&ff->heaps, w->world);
	ff->heaps.change = firefox_change_block;
	ff->heaps.arg = ff;
	rows_init(&ff->samples, sizeof(struct firefox_sample));
	rows_init(&ff->markers, sizeof(struct firefox_marker));
	rows_init(&ff->allocs, sizeof(struct firefox_alloc));
	return 0;
}

static int check_rows(const struct firefox *ff, struct err *err)
{
	if (rows_check(&ff->samples, err) < 0 || rows_check(&ff->markers, err) < 0)
		return -1;
	return rows_check(&ff->allocs, err);
}

/* ---- the events ---- */

static int firefox_put(struct writer *w, const struct event *ev)
{
	if (ev->outside && ev->kind != EVENT_ALLOC)
		return 0;
	switch (ev->kind) {
	case EVENT_SAMPLE: firefox_put_sample(w, ev); break;
	case EVENT_LOST: firefox_put_lost(w->priv, ev); break;
	case EVENT_ALLOC: firefox_put_alloc(w->priv, ev); break;
	case EVENT_SLICE:
		if (ev->slice.kind != SLICE_RATE)
			firefox_put_slice(w->priv, ev);
		break;
	default: firefox_put_life(w->priv, ev); break;
	}
	return check_rows(w->priv, &w->err);
}

/* ---- the end ---- */

/* The markers of a task are shown in the thread with most of its samples. */
static void find_leads(struct firefox *ff)
{
	for (uint32_t i = 0; i < ff->nr_threads; i++)
		ff->threads[i].lead = i;
	for (uint32_t i = 0; i < ff->nr_threads; i++) {
		struct firefox_thread *main = &ff->threads[ff->threads[i].main];

		if (ff->threads[i].nr > ff->threads[main->lead].nr)
			main->lead = i;
	}
}

static void count_sources(struct writer *w)
{
	struct firefox *ff = w->priv;

	ff->sums = xcalloc(w->world->nr_sources, sizeof(*ff->sums));
	for (size_t i = 0; i < ff->nr_threads; i++) {
		const struct firefox_thread *thread = &ff->threads[i];
		struct firefox_sum *sum = &ff->sums[thread->source];

		if (!thread->nr)
			continue;
		ff->nr_sources += !sum->samples;
		sum->samples += thread->count;
		sum->weight += thread->weight;
	}
}

/* The usual time between two samples of a thread that runs all the time. */
static uint64_t find_pace(const struct writer *w)
{
	const struct firefox *ff = w->priv;
	uint64_t pace = 0;

	for (size_t i = 0; i < ff->nr_threads; i++) {
		const struct firefox_thread *thread = &ff->threads[i];
		const struct source *source = &w->world->sources[thread->source];
		uint64_t mean = thread->timed < FEW
					? 0
					: (thread->last - thread->first) / (thread->timed - 1);

		if (thread->nr && source->freq && source->period)
			mean = 1000 * MS / source->period;
		if (mean && (!pace || mean < pace))
			pace = mean;
	}
	return pace ? pace : MS;
}

static void put_fact(struct writer *w, const char *key, const char *fact)
{
	struct firefox *ff = w->priv;
	const char *value = world_fact(w->world, fact);

	if (value)
		json_out_text(&ff->out.json, key, value);
}

static void put_total(void *arg, const char *label, uint64_t value)
{
	struct json_out *json = arg;

	json_out_object(json, NULL);
	json_out_text(json, "label", label);
	json_out_text(json, "format", "integer");
	json_out_u64(json, "value", value);
	json_out_end(json);
}

/* What the front end shows in its panel of the profile. */
static void put_totals(struct writer *w)
{
	struct firefox *ff = w->priv;
	struct json_out *json = &ff->out.json;
	struct buf label = { 0 };

	json_out_array(json, "extra");
	json_out_object(json, NULL);
	json_out_text(json, "label", "Recording");
	json_out_array(json, "entries");
	for (uint32_t i = 0; i < w->world->nr_sources; i++) {
		if (!ff->sums[i].samples)
			continue;
		buf_clear(&label);
		buf_adds(&label, str_text(w->world->strings, source_name(w->world, i)));
		put_total(json, label.data, ff->sums[i].weight);
		buf_adds(&label, ": samples");
		put_total(json, label.data, ff->sums[i].samples);
	}
	put_total(json, "lost", ff->lost); /* samples, or parts of a trace */
	alloc_say_findings(&ff->heaps, put_total, json);
	json_out_end(json);
	json_out_end(json);
	json_out_end(json);
	buf_release(&label);
}

static void put_units(struct json_out *json)
{
	json_out_object(json, "sampleUnits");
	json_out_text(json, "time", "ms");
	json_out_text(json, "eventDelay", "ms");
	json_out_text(json, "threadCPUDelta", "\xc2\xb5s");
	json_out_end(json);
}

static int by_work(const void *va, const void *vb, void *arg)
{
	const struct firefox_thread *threads = arg;
	uint32_t a = *(const uint32_t *)va, b = *(const uint32_t *)vb;

	if (threads[a].busy != threads[b].busy)
		return threads[a].busy > threads[b].busy ? -1 : 1;
	if (threads[a].calls != threads[b].calls)
		return threads[a].calls > threads[b].calls ? -1 : 1;
	return a < b ? -1 : 1;
}

static bool is_idle(const struct firefox_thread *thread, const struct firefox_thread *first)
{
	return first->busy ? thread->busy < first->busy / IDLE
			   : thread->calls < first->calls / IDLE;
}

/* The front end itself would hide allocations and losses, because their threads have no samples. */
static bool is_notable(const struct firefox *ff, uint32_t number)
{
	const struct firefox_thread *thread = &ff->threads[number];

	return thread->kind == THREAD_HEAP ||
	       (firefox_leads(ff, number) && ff->threads[thread->main].losses);
}

/* Which threads are visible at first, and which one is selected: the one that did most. */
static void put_view(const struct firefox *ff, struct json_out *json)
{
	uint32_t *order = xcalloc(ff->nr_threads, sizeof(*order));

	for (uint32_t i = 0; i < ff->nr_threads; i++)
		order[i] = i;
	qsort_r(order, ff->nr_threads, sizeof(*order), by_work, ff->threads);
	json_out_array(json, "initialSelectedThreads");
	json_out_u64(json, NULL, order[0]);
	json_out_end(json);
	json_out_array(json, "initialVisibleThreads");
	for (size_t i = 0; i < ff->nr_threads; i++) {
		const struct firefox_thread *thread = &ff->threads[order[i]];

		if ((i < VISIBLE && !is_idle(thread, &ff->threads[order[0]])) ||
		    is_notable(ff, order[i]))
			json_out_u64(json, NULL, order[i]);
	}
	json_out_end(json);
	free(order);
}

static void put_meta(struct writer *w)
{
	struct firefox *ff = w->priv;
	struct json_out *json = &ff->out.json;

	json_out_object(json, "meta");
	json_out_u64(json, "version", GECKO_VERSION);
	json_out_u64(json, "preprocessedProfileVersion", VERSION);
	json_out_text(json, "product", "kscope");
	json_out_text(json, "importedFrom", "kscope");
	json_out_decimal(json, "interval", ff->pace, FIREFOX_MS);
	json_out_decimal(json, "startTime", timeline_wall(w->world, ff->first), FIREFOX_MS);
	json_out_u64(json, "processType", 0);
	json_out_u64(json, "stackwalk", 1);
	json_out_bool(json, "debug", false);
	json_out_bool(json, "symbolicated", true);
	json_out_bool(json, "usesOnlyOneStackType", true);
	json_out_bool(json, "sourceCodeIsNotOnSearchfox", true);
	put_fact(w, "oscpu", "osrelease");
	put_fact(w, "device", "hostname");
	put_fact(w, "arguments", "cmdline");
	put_fact(w, "CPUName", "cpudesc");
	put_fact(w, "abi", "arch");
	if (ff->nr_threads)
		put_view(ff, json);
	put_units(json);
	put_totals(w);
	firefox_put_categories(&ff->tables, json);
	firefox_put_schemas(json);
	json_out_end(json);
}

static int firefox_finish(struct writer *w)
{
	struct firefox *ff = w->priv;
	struct json_out *json = &ff->out.json;

	for (uint32_t i = 0; i < ff->nr_threads; i++)
		firefox_end_run(ff, i);
	if (ff->first == NO_TIME)
		ff->first = ff->last = 0;
	find_leads(ff);
	count_sources(w);
	ff->pace = find_pace(w);
	firefox_build(&ff->tables);
	json_out_object(json, NULL);
	put_meta(w);
	firefox_put_libs(&ff->tables, &ff->out);
	json_out_array(json, "threads");
	for (uint32_t i = 0; i < ff->nr_threads; i++)
		firefox_put_thread(w, i);
	json_out_end(json);
	firefox_put_tables(&ff->tables, &ff->out);
	json_out_end(json);
	firefox_flush(&ff->out, 0);
	w->written.knows = WROTE_SAMPLES | WROTE_WEIGHT | WROTE_SLICES;
	if (!ff->nr_threads)
		log_warn("%s: the profile is empty",
			 strcmp(w->out->path, "-") ? w->out->path : "standard output");
	return check_rows(ff, &w->err);
}

static void firefox_close(struct writer *w)
{
	struct firefox *ff = w->priv;

	for (size_t i = 0; i < ff->nr_threads; i++)
		free(ff->threads[i].open);
	free(ff->threads);
	free(ff->lives);
	free(ff->blocks);
	free(ff->parts);
	alloc_release(&ff->heaps);
	free(ff->sums);
	hash_release(&ff->thread_index);
	hash_release(&ff->task_index);
	hash_release(&ff->life_index);
	rows_release(&ff->samples);
	rows_release(&ff->markers);
	rows_release(&ff->allocs);
	firefox_tables_release(&ff->tables);
	buf_release(&ff->out.text);
}

const struct writer_ops write_firefox = {
	.name = "firefox",
	.about = "profile for the Firefox Profiler",
	.extension = ".profile.json",
	.needs = WRITER_TEXT | WRITER_OUTSIDE,
	.takes = EVENT_BIT(EVENT_SAMPLE) | EVENT_BIT(EVENT_LOST) | EVENT_BIT(EVENT_ALLOC) |
		 EVENT_BIT(EVENT_SLICE) | EVENT_BIT(EVENT_FORK) | EVENT_BIT(EVENT_EXIT),
	.next = "open it in profiler.firefox.com",
	.options = OPTION_USES({ &inlines_table, OPTION_ELSEWHERE },
			       { &gate_table, OPTION_ELSEWHERE }),
	.priv_size = sizeof(struct firefox),
	.open = firefox_open,
	.put = firefox_put,
	.finish = firefox_finish,
	.close = firefox_close,
};

// SPDX-License-Identifier: GPL-2.0-or-later
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "model/source.h"
#include "write/firefox.h"

#define MS ((uint64_t)1000000)

static void put_name(struct json_out *json, const char *key, const struct world *world,
		     uint32_t name)
{
	json_out_text(json, key, str_text(world->strings, name));
}

/* ---- what the thread is ---- */

static void put_pid(struct json_out *json, const struct firefox_thread *thread)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu32, thread->pid);
	json_out_text(json, "pid",
		      thread->kind == THREAD_CPU    ? "cpus"
		      : thread->kind == THREAD_HEAP ? "memory"
		      : thread->pid == NO_TASK	    ? "?"
						    : text);
}

/* Threads of one task, for several events, need different ids, and so do threads that share an id. */
static void put_tid(struct json_out *json, const struct firefox *ff, uint32_t number)
{
	const struct firefox_thread *thread = &ff->threads[number];
	char text[64];
	int len;

	if (thread->kind == THREAD_TASK && thread->cpu == NO_CPU && firefox_leads(ff, number) &&
	    thread->tid != NO_TASK) {
		json_out_u64(json, "tid", thread->tid);
		return;
	}
	if (thread->kind == THREAD_TASK && thread->tid != NO_TASK)
		len = snprintf(text, sizeof(text), "%" PRIu32, thread->tid);
	else
		len = snprintf(text, sizeof(text), "%s",
			       thread->kind == THREAD_CPU    ? "cpu"
			       : thread->kind == THREAD_HEAP ? "memory"
							     : "?");
	if (thread->kind == THREAD_HEAP)
		snprintf(text + len, sizeof(text) - (size_t)len, ".%" PRIu32, number);
	else if (thread->cpu != NO_CPU)
		len += snprintf(text + len, sizeof(text) - (size_t)len, "/%" PRIu32, thread->cpu);
	if (thread->kind == THREAD_TASK && !firefox_leads(ff, number))
		snprintf(text + len, sizeof(text) - (size_t)len, ".%" PRIu32, thread->source);
	json_out_text(json, "tid", text);
}

/* "NAME", "NAME/CPU" as Linux names its idle tasks, and "NAME (EVENT)" if there are several events. */
static void put_names(struct writer *w, const struct firefox_thread *thread)
{
	struct firefox *ff = w->priv;
	struct json_out *json = &ff->out.json;
	struct buf text = { 0 };
	char cpu[TIMELINE_CPU_NAME];

	timeline_cpu_name(cpu, thread->cpu, false);
	if (thread->kind == THREAD_TASK)
		buf_adds(&text, str_text(w->world->strings,
					 timeline_comm(w->world, thread->pid, thread->tid)));
	else if (thread->kind == THREAD_HEAP)
		buf_adds(&text, str_text(w->world->strings, thread->heap));
	else
		buf_adds(&text, thread->cpu == NO_CPU ? "all cpus" : cpu);
	if (thread->kind == THREAD_TASK && thread->cpu != NO_CPU)
		buf_addf(&text, "/%" PRIu32, thread->cpu);
	if (thread->source && ff->nr_sources > 1) {
		buf_adds(&text, " (");
		buf_adds(&text, str_text(w->world->strings, source_name(w->world, thread->source)));
		buf_adds(&text, ")");
	}
	json_out_text(json, "name", text.data);
	buf_release(&text);
	if (thread->kind == THREAD_TASK)
		put_name(json, "processName", w->world,
			 timeline_comm(w->world, thread->pid, thread->pid));
	else
		json_out_text(json, "processName", thread->kind == THREAD_CPU ? "cpus" : "memory");
}

static void put_head(struct writer *w, uint32_t number)
{
	struct firefox *ff = w->priv;
	struct json_out *json = &ff->out.json;
	const struct firefox_thread *thread = &ff->threads[number];
	const struct firefox_life *life =
		thread->kind == THREAD_TASK ? firefox_life(ff, thread->pid, thread->tid) : NULL;
	uint64_t first = ff->first, from = 0;

	if (life && life->began != NO_TIME && life->began > first)
		from = life->began - first;

	json_out_text(json, "processType", "default");
	json_out_u64(json, "processStartupTime", 0);
	json_out_null(json, "processShutdownTime");
	json_out_decimal(json, "registerTime", from, FIREFOX_MS);
	if (life && life->ended != NO_TIME && life->ended >= first)
		json_out_decimal(json, "unregisterTime", life->ended - first, FIREFOX_MS);
	else
		json_out_null(json, "unregisterTime");
	json_out_array(json, "pausedRanges");
	json_out_end(json);
	put_names(w, thread);
	json_out_bool(json, "isMainThread",
		      thread->kind == THREAD_TASK && firefox_leads(ff, number) &&
			      thread->pid == thread->tid && thread->cpu == NO_CPU);
	json_out_bool(json, "showMarkersInTimeline", true);
	put_pid(json, thread);
	put_tid(json, ff, number);
}

/* ---- samples ---- */

/* Where a thread's rows are in time. A row without a time follows the previous one. */
struct clock {
	uint64_t at, step;
};

static struct clock clock_of(const struct firefox *ff, uint64_t nr, uint64_t timed)
{
	uint64_t span = ff->last - ff->first;

	if (timed == nr || !span)
		return (struct clock){ ff->first, timed == nr ? 0 : MS };
	return (struct clock){ ff->first, span / nr };
}

/* Times never decrease. */
static uint64_t tick(struct clock *clock, uint64_t time)
{
	if (time == NO_TIME)
		clock->at += clock->step;
	else if (time > clock->at)
		clock->at = time;
	return clock->at;
}

/* The longest time that the thread may have run since the previous sample, in us: it may have slept. */
static uint64_t ran(const struct firefox *ff, const struct firefox_sample *sample, uint64_t passed)
{
	if (sample->idle)
		return 0;
	return (passed > ff->pace + ff->pace / 2 ? ff->pace : passed) / 1000;
}

#define COLUMN(table, group, key, value)                       \
	do {                                                   \
		json_out_array(json, key);                     \
		rows_begin(&reader, table, group);             \
		while ((row = rows_next(&reader))) {           \
			value;                                 \
			firefox_flush(&ff->out, FIREFOX_FULL); \
		}                                              \
		rows_end(&reader);                             \
		json_out_end(json);                            \
	} while (0)

static void put_row(struct json_out *json, uint32_t row)
{
	if (row)
		json_out_u64(json, NULL, row - 1);
	else
		json_out_null(json, NULL);
}

static void put_times(struct firefox *ff, uint32_t number)
{
	const struct firefox_thread *thread = &ff->threads[number];
	struct clock clock = clock_of(ff, thread->nr, thread->timed);
	struct json_out *json = &ff->out.json;
	const struct firefox_sample *row;
	struct rows_reader reader;
	uint64_t at = ff->first;

	COLUMN(&ff->samples, number, "timeDeltas",
	       (json_out_decimal(json, NULL, tick(&clock, row->time) - at, FIREFOX_MS),
		at = clock.at));
	if (!thread->timed || !firefox_leads(ff, number))
		return; /* each moment counts once */
	clock = clock_of(ff, thread->nr, thread->timed);
	at = ff->first;
	COLUMN(&ff->samples, number, "threadCPUDelta",
	       (json_out_u64(json, NULL, ran(ff, row, tick(&clock, row->time) - at)),
		at = clock.at));
}

static void count(struct written *written, const struct firefox_sample *sample)
{
	written->samples += sample->count;
	written->weight += sample->weight;
}

static void put_samples(struct writer *w, uint32_t number)
{
	struct firefox *ff = w->priv;
	const struct firefox_thread *thread = &ff->threads[number];
	const struct firefox_sum *sum = &ff->sums[thread->source];
	bool ms = source_sum_is_time(w->world, thread->source, sum->samples, sum->weight);
	uint32_t unit = w->world->sources[thread->source].unit;
	bool bytes = unit && !strcmp(str_text(w->world->strings, unit), "bytes");
	bool weighs = source_has_weights(w->world, thread->source, sum->weight);
	struct json_out *json = &ff->out.json;
	const struct firefox_sample *row;
	struct rows_reader reader;

	json_out_object(json, "samples");
	COLUMN(&ff->samples, number, "stack",
	       (put_row(json, firefox_stack(&ff->tables, row->stack, row->idle)),
		count(&w->written, row)));
	put_times(ff, number);
	json_out_text(json, "weightType", ms ? "tracing-ms" : bytes ? "bytes" : "samples");
	if (thread->weighs || ms)
		COLUMN(&ff->samples, number, "weight",
		       json_out_decimal(json, NULL, weighs ? row->weight : row->count,
					ms ? FIREFOX_MS : 0));
	else
		json_out_null(json, "weight");
	json_out_u64(json, "length", thread->nr);
	json_out_end(json);
}

/* ---- allocations ---- */

static void put_size(struct json_out *json, const struct firefox_alloc *row)
{
	int64_t size = row->size > INT64_MAX ? INT64_MAX : (int64_t)row->size;

	json_out_i64(json, NULL, row->freed ? -size : size);
}

static void put_allocs(struct firefox *ff, uint32_t number)
{
	const struct firefox_thread *thread = &ff->threads[number];
	struct clock clock = clock_of(ff, thread->allocs, thread->allocs_timed);
	struct json_out *json = &ff->out.json;
	const struct firefox_alloc *row;
	struct rows_reader reader;

	json_out_object(json, "nativeAllocations");
	COLUMN(&ff->allocs, number, "time",
	       json_out_decimal(json, NULL, tick(&clock, row->time) - ff->first, FIREFOX_MS));
	COLUMN(&ff->allocs, number, "weight", put_size(json, row));
	json_out_text(json, "weightType", "bytes");
	COLUMN(&ff->allocs, number, "stack",
	       put_row(json, firefox_stack(&ff->tables, row->stack, false)));
	/* The front end uses it only to find what a free frees. */
	COLUMN(&ff->allocs, number, "memoryAddress", json_out_u64(json, NULL, row->part));
	COLUMN(&ff->allocs, number, "threadId", json_out_u64(json, NULL, row->tid));
	json_out_u64(json, "length", thread->allocs);
	json_out_end(json);
}

void firefox_put_thread(struct writer *w, uint32_t number)
{
	struct firefox *ff = w->priv;
	struct json_out *json = &ff->out.json;

	json_out_object(json, NULL);
	put_head(w, number);
	put_samples(w, number);
	if (ff->threads[number].allocs)
		put_allocs(ff, number);
	firefox_put_markers(&ff->tables, &ff->out, &ff->markers,
			    firefox_leads(ff, number) ? ff->threads[number].main : UINT32_MAX,
			    ff->first, &w->written);
	json_out_end(json);
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * pprof: a profile for go tool pprof (profile.proto), and allocations as Go's heap profiles have them. The fields may be
 * in any order: functions, locations and strings are written when something refers to them.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/pb_out.h"
#include "format.h"
#include "model/source.h"
#include "pass/alloc.h"
#include "pass/tally.h"
#include "write/pprof_maps.h"
#include "write/sums.h"
#include "write/timeline.h"

enum profile_field {
	PROFILE_SAMPLE_TYPE = 1,
	PROFILE_SAMPLE,
	PROFILE_MAPPING,
	PROFILE_LOCATION,
	PROFILE_FUNCTION,
	PROFILE_STRING,
	PROFILE_TIME = 9,
	PROFILE_DURATION,
	PROFILE_PERIOD_TYPE,
	PROFILE_PERIOD,
	PROFILE_COMMENT,
	PROFILE_DEFAULT_TYPE,
};

enum { TYPE_NAME = 1, TYPE_UNIT };
enum { SAMPLE_LOCATIONS = 1, SAMPLE_VALUES, SAMPLE_LABEL };
enum { LABEL_KEY = 1, LABEL_TEXT, LABEL_NUMBER, LABEL_UNIT };
enum { LOCATION_ID = 1, LOCATION_MAPPING, LOCATION_ADDRESS, LOCATION_LINE };
enum { LINE_FUNCTION = 1, LINE_NUMBER };
enum { FUNCTION_ID = 1, FUNCTION_NAME, FUNCTION_SYSTEM_NAME, FUNCTION_FILE };
enum mapping_field {
	MAPPING_ID = 1,
	MAPPING_START,
	MAPPING_LIMIT,
	MAPPING_OFFSET,
	MAPPING_FILE,
	MAPPING_BUILD_ID,
	MAPPING_HAS_FUNCTIONS, /* and so on: files, lines, inlined functions */
	MAPPING_LAST = MAPPING_HAS_FUNCTIONS + 3,
};

/* As Go's heap profiles have them; by enum alloc_value. */
static const char *const alloc_types[][2] = { { "alloc_objects", "count" },
					      { "alloc_space", "bytes" },
					      { "inuse_objects", "count" },
					      { "inuse_space", "bytes" } };
#define ALLOC_VALUES (sizeof(alloc_types) / sizeof(alloc_types[0]))
#define MAX_VALUES (2 * SUMS_MAX_EVENTS + ALLOC_VALUES)

struct pprof {
	struct tally tally;
	struct alloc_pass allocs;
	struct sums_events events;
	struct sums_lost lost;
	uint64_t first, last; /* times of samples */
	size_t nr_values;     /* of a sample */
	size_t column
		[SUMS_MAX_EVENTS]; /* of the events' samples; their weights, if any, come next */
	struct timeline_numbers strings; /* their numbers in the profile; 0: not written yet */
	uint32_t nr_strings;
	struct hash functions; /* (name, file) to id */
	struct pprof_maps maps;
	uint8_t *seen;	  /* by stack: its frames are written */
	uint8_t *written; /* by frame: its location is, whose id is the frame's handle */
	uint32_t *frames; /* these, in the order of their first use */
	size_t nr_frames, cap_frames;
	bool too_large;	 /* a value */
	uint64_t *chain; /* the locations of a stack */
	size_t cap_chain;
	struct buf message, text, scratch;
};

static int pprof_open(struct writer *w)
{
	struct pprof *p = w->priv;

	tally_init(&p->tally, w->world, BY_SOURCE | BY_COMM | BY_PID | BY_TID | BY_CPU);
	alloc_init(&p->allocs, w->world);
	pprof_maps_init(&p->maps, w->world);
	p->first = NO_TIME;
	return 0;
}

static void note_time(struct pprof *p, uint64_t time)
{
	if (time == NO_TIME)
		return;
	if (p->first == NO_TIME || time < p->first)
		p->first = time;
	if (time > p->last)
		p->last = time;
}

static int pprof_put(struct writer *w, const struct event *ev)
{
	struct pprof *p = w->priv;

	if (ev->kind == EVENT_LOST) {
		if (!ev->outside)
			sums_lose(&p->lost, ev);
	} else if (ev->kind == EVENT_ALLOC) {
		alloc_add(&p->allocs, ev);
	} else {
		tally_add(&p->tally, ev);
		note_time(p, ev->time);
	}
	return 0;
}

static void flush(struct writer *w, struct buf *buf)
{
	out_write(w->out, buf->data, buf->len);
	buf_clear(buf);
}

/* pprof's numbers are signed. */
static uint64_t limited(uint64_t number)
{
	return number < INT64_MAX ? number : INT64_MAX;
}

/* The number of a string in the profile. Writes the string first if it is new. 0: "". */
static uint32_t string(struct writer *w, uint32_t handle)
{
	struct pprof *p = w->priv;
	uint32_t *number = timeline_number(&p->strings, handle);

	if (!*number && str_len(w->world->strings, handle)) {
		*number = ++p->nr_strings;
		pb_put_text(&p->text, PROFILE_STRING, timeline_text(&p->scratch, w->world, handle));
		flush(w, &p->text);
	}
	return *number;
}

static uint32_t string_z(struct writer *w, const char *text)
{
	return string(w, str_intern_z(w->world->strings, text));
}

/* ---- sample types ---- */

static void put_type(struct writer *w, enum profile_field field, const char *name, const char *unit)
{
	struct pprof *p = w->priv;
	uint32_t name_number = string_z(w, name), unit_number = string_z(w, unit);
	size_t at = pb_open(&p->message, field);

	pb_put_uint(&p->message, TYPE_NAME, name_number);
	pb_put_uint(&p->message, TYPE_UNIT, unit_number);
	pb_close(&p->message, at);
	flush(w, &p->message);
}

static const char *unit_of(struct world *world, const struct sums_event *event)
{
	bool alone = event->source && event->name == source_name(world, event->source);

	if (alone && source_sum_is_time(world, event->source, event->samples, event->weight))
		return "nanoseconds";
	return event->unit && strcmp(event->unit, "ns") != 0 ? event->unit : "count";
}

static char *samples_name(struct writer *w, size_t i)
{
	struct pprof *p = w->priv;
	const char *name = str_text(w->world->strings, p->events.all[i].name);

	return p->events.nr > 1 ? xasprintf("%s_samples", name) : xstrdup("samples");
}

static void put_event(struct writer *w, size_t i)
{
	struct pprof *p = w->priv;
	const struct sums_event *event = &p->events.all[i];
	char *samples = samples_name(w, i);

	p->column[i] = p->nr_values;
	put_type(w, PROFILE_SAMPLE_TYPE, samples, "count");
	if (event->weighs)
		put_type(w, PROFILE_SAMPLE_TYPE, str_text(w->world->strings, event->weight_name),
			 unit_of(w->world, event));
	p->nr_values += 1 + event->weighs;
	free(samples);
}

/* The event with the most samples. */
static size_t main_event(const struct sums_events *events)
{
	size_t main = 0;

	for (size_t i = 1; i < events->nr; i++) {
		if (events->all[i].samples > events->all[main].samples)
			main = i;
	}
	return main;
}

static void put_period(struct writer *w)
{
	struct pprof *p = w->priv;
	const struct sums_event *event = &p->events.all[main_event(&p->events)];
	const struct source *source = &w->world->sources[event->source];

	if (source->freq || !source->period)
		return;
	put_type(w, PROFILE_PERIOD_TYPE, str_text(w->world->strings, event->name),
		 unit_of(w->world, event));
	pb_put_uint(&p->message, PROFILE_PERIOD, limited(source->period));
	flush(w, &p->message);
}

/* The type to show first, because pprof's default is the last one. */
static void put_default(struct writer *w, const char *type)
{
	struct pprof *p = w->priv;
	uint32_t number = string_z(w, type);

	pb_put_uint(&p->message, PROFILE_DEFAULT_TYPE, number);
	flush(w, &p->message);
}

static void put_event_types(struct writer *w)
{
	const struct pprof *p = w->priv;
	size_t main = main_event(&p->events);
	char *samples = samples_name(w, main);

	for (size_t i = 0; i < p->events.nr; i++)
		put_event(w, i);
	put_period(w);
	put_default(w, p->events.all[main].weighs
			       ? str_text(w->world->strings, p->events.all[main].weight_name)
			       : samples);
	free(samples);
}

static void put_types(struct writer *w)
{
	struct pprof *p = w->priv;
	bool allocs = p->allocs.nr_sites > 1;

	if (p->events.nr)
		put_event_types(w);
	for (size_t i = 0; allocs && i < ALLOC_VALUES; i++)
		put_type(w, PROFILE_SAMPLE_TYPE, alloc_types[i][0], alloc_types[i][1]);
	if (!p->events.nr && !allocs)
		put_type(w, PROFILE_SAMPLE_TYPE, "samples", "count");
	if (!p->events.nr)
		put_default(w, allocs ? "inuse_space" : "samples");
}

/* ---- mappings, functions and locations ---- */

/* Notes the frames of a stack that were not seen before. */
static void see_stack(struct pprof *p, uint32_t stack)
{
	const struct stack *all = p->tally.world->stacks.all;

	for (; stack && !p->seen[stack]; stack = all[stack].parent) {
		uint32_t frame = all[stack].frame;

		p->seen[stack] = 1;
		if (p->written[frame])
			continue;
		p->written[frame] = 1;
		GROW(p->frames, p->nr_frames + 1, p->cap_frames);
		p->frames[p->nr_frames++] = frame;
		pprof_maps_add(&p->maps, frame);
	}
}

static void put_mapping(struct writer *w, uint32_t id)
{
	struct pprof *p = w->priv;
	const struct pprof_map *map = &p->maps.all[id];
	char build_id[BUILD_ID_TEXT];
	uint32_t file = string(w, map->file), build = 0;
	uint64_t last = map->last + map->moved;
	size_t at;

	if (map->image) {
		image_build_id(&w->world->images.all[map->image], build_id);
		build = string_z(w, build_id);
	}
	at = pb_open(&p->message, PROFILE_MAPPING);
	pb_put_uint(&p->message, MAPPING_ID, id);
	if (map->image) {
		pb_put_uint(&p->message, MAPPING_START, map->start + map->moved);
		/* At the end of all addresses, the last one is missing. */
		pb_put_uint(&p->message, MAPPING_LIMIT, last == UINT64_MAX ? UINT64_MAX : last + 1);
		pb_put_uint(&p->message, MAPPING_OFFSET, map->offset);
	}
	pb_put_uint(&p->message, MAPPING_FILE, file);
	pb_put_uint(&p->message, MAPPING_BUILD_ID, build);
	/* kscope looked up all names. Without these flags, pprof searches this machine's binaries for more. */
	for (uint32_t field = MAPPING_HAS_FUNCTIONS; field <= MAPPING_LAST; field++)
		pb_put_uint(&p->message, field, map->known || !map->image);
	pb_close(&p->message, at);
	flush(w, &p->message);
}

/* Without a system name: pprof would demangle it, and shorten a name that looks like C++. */
static uint32_t function(struct writer *w, const struct symbol *symbol)
{
	struct pprof *p = w->priv;
	uint32_t *id = hash_at(&p->functions, (struct hash_key){ symbol->name, symbol->file });
	uint32_t name, file;
	size_t at;

	if (*id)
		return *id;
	*id = (uint32_t)p->functions.nr;
	name = string(w, symbol->name);
	if (!name)
		name = string_z(w, "?");
	file = string(w, symbol->file);
	at = pb_open(&p->text, PROFILE_FUNCTION);
	pb_put_uint(&p->text, FUNCTION_ID, p->functions.nr);
	pb_put_uint(&p->text, FUNCTION_NAME, name);
	pb_put_uint(&p->text, FUNCTION_FILE, file);
	pb_close(&p->text, at);
	flush(w, &p->text);
	return (uint32_t)p->functions.nr;
}

static void put_location(struct writer *w, uint32_t frame)
{
	struct pprof *p = w->priv;
	size_t nr, at = pb_open(&p->message, PROFILE_LOCATION);
	const struct symbol *symbols = frame_symbols(w->world, frame, &nr);

	pb_put_uint(&p->message, LOCATION_ID, frame);
	pb_put_uint(&p->message, LOCATION_MAPPING, pprof_maps_find(&p->maps, frame));
	pb_put_uint(&p->message, LOCATION_ADDRESS, pprof_maps_address(&p->maps, frame));
	for (size_t i = 0; i < nr; i++) {
		uint32_t id = function(w, &symbols[i]);
		size_t line = pb_open(&p->message, LOCATION_LINE);

		pb_put_uint(&p->message, LINE_FUNCTION, id);
		pb_put_uint(&p->message, LINE_NUMBER, symbols[i].line);
		pb_close(&p->message, line);
	}
	pb_close(&p->message, at);
	flush(w, &p->message);
}

static void put_places(struct writer *w)
{
	struct pprof *p = w->priv;

	p->seen = xcalloc(w->world->stacks.nr, 1);
	p->written = xcalloc(w->world->frames.nr, 1);
	for (size_t i = 0; i < p->tally.nr; i++)
		see_stack(p, p->tally.entries[i].stack);
	for (size_t i = 1; i < p->allocs.nr_sites; i++)
		see_stack(p, p->allocs.sites[i].stack);
	pprof_maps_place(&p->maps);
	for (uint32_t i = 1; i < p->maps.nr; i++)
		put_mapping(w, i);
	for (size_t i = 0; i < p->nr_frames; i++)
		put_location(w, p->frames[i]);
}

/* ---- samples ---- */

static void put_text_label(struct writer *w, const char *key, uint32_t text)
{
	struct pprof *p = w->priv;
	uint32_t key_number = string_z(w, key), number = string(w, text);
	size_t at;

	if (!number)
		return;
	at = pb_open(&p->message, SAMPLE_LABEL);
	pb_put_uint(&p->message, LABEL_KEY, key_number);
	pb_put_uint(&p->message, LABEL_TEXT, number);
	pb_close(&p->message, at);
}

/* With a unit, because pprof ignores a 0 without one. The key is the unit that pprof itself would assume. */
static void put_number_label(struct writer *w, const char *key, uint32_t value)
{
	struct pprof *p = w->priv;
	uint32_t key_number = string_z(w, key);
	size_t at = pb_open(&p->message, SAMPLE_LABEL);

	pb_put_uint(&p->message, LABEL_KEY, key_number);
	pb_put_uint(&p->message, LABEL_NUMBER, value);
	pb_put_uint(&p->message, LABEL_UNIT, key_number);
	pb_close(&p->message, at);
}

/* --verify gets the true values, because pprof_finish() warns of the difference. */
static void limit_values(struct pprof *p, uint64_t *values)
{
	for (size_t i = 0; i < p->nr_values; i++) {
		p->too_large |= values[i] > INT64_MAX;
		values[i] = limited(values[i]);
	}
}

/* The stack and the values. The caller adds labels and calls end_sample(). */
static size_t begin_sample(struct writer *w, uint32_t stack, uint64_t *values)
{
	struct pprof *p = w->priv;
	const struct stack *all = w->world->stacks.all;
	size_t nr = 0, at = pb_open(&p->message, PROFILE_SAMPLE);

	limit_values(p, values);

	for (; stack; stack = all[stack].parent) {
		GROW(p->chain, nr + 1, p->cap_chain);
		p->chain[nr++] = all[stack].frame;
	}
	pb_put_packed(&p->message, SAMPLE_LOCATIONS, p->chain, nr);
	pb_put_packed(&p->message, SAMPLE_VALUES, values, p->nr_values);
	return at;
}

static void end_sample(struct writer *w, size_t at)
{
	struct pprof *p = w->priv;

	pb_close(&p->message, at);
	flush(w, &p->message);
}

static void put_task(struct writer *w, uint32_t comm, uint32_t pid, uint32_t tid)
{
	put_text_label(w, "task", comm);
	if (pid != NO_TASK)
		put_number_label(w, "pid", pid);
	if (tid != NO_TASK)
		put_number_label(w, "tid", tid);
}

static void put_sum(struct writer *w, const struct tally_entry *entry)
{
	struct pprof *p = w->priv;
	size_t nr = sums_event_of(&p->events, entry->source), column = p->column[nr], at;
	const struct sums_event *event = &p->events.all[nr];
	uint64_t values[MAX_VALUES] = { 0 };

	values[column] = entry->samples;
	if (event->weighs)
		values[column + 1] = entry->weight;
	w->written.samples += values[column];
	w->written.weight += sums_written_weight(event, values[column], values[column + 1]);
	at = begin_sample(w, entry->stack, values);
	put_task(w, sums_task(w->world, entry), entry->pid, entry->tid);
	if (entry->cpu != NO_CPU)
		put_number_label(w, "cpu", entry->cpu);
	if (p->events.nr > 1)
		put_text_label(w, "event", source_name(w->world, entry->source));
	end_sample(w, at);
}

static void put_site(struct writer *w, const struct alloc_site *site)
{
	struct pprof *p = w->priv;
	const struct alloc_sum *sum = &site->sum;
	const uint64_t sums[ALLOC_VALUES] = { sum->allocs, sum->total, sum->live_blocks,
					      sum->live };
	uint64_t values[MAX_VALUES] = { 0 };
	size_t at;

	if (!sum->allocs && !sum->total)
		return;
	memcpy(values + p->nr_values - ALLOC_VALUES, sums, sizeof(sums));
	at = begin_sample(w, site->stack, values);
	put_task(w, world_comm(w->world, site->pid, site->tid), site->pid, site->tid);
	put_text_label(w, "allocator",
		       str_intern_z(w->world->strings, p->allocs.heaps[site->allocator]->name));
	end_sample(w, at);
}

/* ---- facts about the recording ---- */

static void put_comment(void *arg, const char *line)
{
	struct writer *w = arg;
	struct pprof *p = w->priv;
	uint32_t number = string_z(w, line);

	pb_put_uint(&p->message, PROFILE_COMMENT, number);
	flush(w, &p->message);
}

static void put_finding(void *arg, const char *kind, uint64_t nr)
{
	char *line = xasprintf("%s: %" PRIu64, kind, nr);

	put_comment(arg, line);
	free(line);
}

static void put_time(struct writer *w)
{
	struct pprof *p = w->priv;

	if (p->first == NO_TIME)
		return;
	pb_put_uint(&p->message, PROFILE_TIME, limited(timeline_wall(w->world, p->first)));
	pb_put_uint(&p->message, PROFILE_DURATION, limited(p->last - p->first));
	flush(w, &p->message);
}

static void put_facts(struct writer *w)
{
	struct pprof *p = w->priv;

	put_comment(w, "converted by kscope");
	sums_describe(w->world, &p->lost, put_comment, w);
	alloc_say_findings(&p->allocs, put_finding, w);
	put_time(w);
}

static int pprof_finish(struct writer *w)
{
	struct pprof *p = w->priv;

	pb_put_text(&p->message, PROFILE_STRING, "");
	flush(w, &p->message);
	alloc_finish(&p->allocs);
	sums_events(&p->events, &p->tally);
	put_types(w);
	if (p->allocs.nr_sites > 1)
		p->nr_values += ALLOC_VALUES;
	put_facts(w);
	put_places(w);
	for (size_t i = 0; i < p->tally.nr; i++)
		put_sum(w, &p->tally.entries[i]);
	for (size_t i = 1; i < p->allocs.nr_sites; i++)
		put_site(w, &p->allocs.sites[i]);
	w->written.knows = WROTE_SAMPLES | WROTE_WEIGHT;
	if (p->too_large)
		log_warn(
			"pprof has no numbers from 2^63 on: the sums of some stacks are too small");
	return 0;
}

static void pprof_close(struct writer *w)
{
	struct pprof *p = w->priv;

	tally_release(&p->tally);
	alloc_release(&p->allocs);
	sums_events_release(&p->events);
	pprof_maps_release(&p->maps);
	timeline_numbers_release(&p->strings);
	hash_release(&p->functions);
	free(p->seen);
	free(p->written);
	free(p->frames);
	free(p->chain);
	buf_release(&p->message);
	buf_release(&p->text);
	buf_release(&p->scratch);
}

const struct writer_ops write_pprof = {
	.name = "pprof",
	.about = "profiles for go tool pprof (profile.proto): .pb.gz, or .pb",
	.extension = ".pb",
	.needs = WRITER_OUTSIDE,
	.takes = EVENT_BIT(EVENT_SAMPLE) | EVENT_BIT(EVENT_ALLOC) | EVENT_BIT(EVENT_LOST),
	.next = "run go tool pprof on it",
	.priv_size = sizeof(struct pprof),
	.open = pprof_open,
	.put = pprof_put,
	.finish = pprof_finish,
	.close = pprof_close,
};

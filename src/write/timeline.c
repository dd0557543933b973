// SPDX-License-Identifier: GPL-2.0-or-later
#include "write/timeline.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"
#include "base/wide.h"

#define SECOND 1000000000
/*
 * What Perfetto's web page can show. Its trace processor has 4 GB at most, as any WebAssembly program of 32 bits,
 * and version 55 needs 545 bytes for each slice.
 */
#define MOST_SLICES 5000000

static const struct timeline_arg_info arg_infos[TIMELINE_NOTE] = {
	[TIMELINE_INSTRUCTIONS] = { "instructions", TIMELINE_NUMBER },
	[TIMELINE_OWN] = { "own_instructions", TIMELINE_NUMBER },
	[TIMELINE_LINES] = { "icache_lines", TIMELINE_NUMBER },
	[TIMELINE_OWN_LINES] = { "own_icache_lines", TIMELINE_NUMBER },
	[TIMELINE_SAMPLES] = { "samples", TIMELINE_NUMBER },
	[TIMELINE_TIME] = { "time", TIMELINE_TEXT },
	[TIMELINE_BEGAN_BEFORE] = { "began_before", TIMELINE_TRUE },
	[TIMELINE_GOES_ON] = { "goes_on", TIMELINE_TRUE },
	[TIMELINE_CYCLES] = { "cycles", TIMELINE_NUMBER },
	[TIMELINE_OWN_CYCLES] = { "own_cycles", TIMELINE_NUMBER },
	[TIMELINE_ADDRESS] = { "address", TIMELINE_TEXT },
	[TIMELINE_FUNCTION] = { "function", TIMELINE_TEXT },
};

struct timeline_arg_info timeline_arg_info(unsigned id)
{
	if (id < TIMELINE_NOTE)
		return arg_infos[id];
	return (struct timeline_arg_info){ note_fields[id - TIMELINE_NOTE].name, TIMELINE_NUMBER };
}

const char *const timeline_kind_names[TIMELINE_KINDS] = {
	[SLICE_BEGIN] = "begin",     [SLICE_CALL] = "call",
	[SLICE_JUMP] = "jump",	     [SLICE_TRAP] = "trap",
	[SLICE_SYSCALL] = "syscall", [SLICE_INLINE] = "inline",
	[SLICE_SAMPLED] = "sample",  [SLICE_RUN] = "run",
	[SLICE_GAP] = "gap",	     [SLICE_MASKED] = "interrupts off",
	[SLICE_NOTE] = "note",
};

static uint32_t or_unknown(struct world *world, uint32_t name)
{
	return name ? name : str_intern_z(world->strings, "?");
}

static void add(struct timeline_args *args, enum timeline_arg_id id, uint64_t number)
{
	args->all[args->nr++] = (struct timeline_arg){ .id = id, .number = number };
}

static void add_text(struct timeline_args *args, enum timeline_arg_id id, const char *text,
		     size_t len)
{
	args->all[args->nr++] = (struct timeline_arg){ .id = id, .text = text, .len = len };
}

static char *put_digits(char *end, uint64_t number, unsigned least)
{
	for (; number || least; number /= 10, least -= least > 0)
		*--end = (char)('0' + number % 10);
	return end;
}

/* In seconds. snprintf() would take more time than all the rest of a slice. */
static char *put_seconds(char *end, uint64_t ns)
{
	end = put_digits(end, ns % SECOND, 9);
	*--end = '.';
	return put_digits(end, ns / SECOND, 1);
}

/* As --time wants it: the begin and the length, because that is short. */
static void add_time(struct timeline_args *args, uint64_t began, uint64_t ended)
{
	char *end = args->time + sizeof(args->time), *start = end;

	*--start = 's';
	*--start = 'n';
	start = put_digits(start, ended - began, 1);
	*--start = '+';
	*--start = ',';
	start = put_seconds(start, began);
	add_text(args, TIMELINE_TIME, start, (size_t)(end - start));
}

static void add_counts(struct timeline_args *args, const struct event *ev)
{
	const struct event_slice *slice = &ev->slice;
	bool on_cpu = timeline_on_cpu(ev);

	if (slice->knows & KNOWS_INSTRUCTIONS)
		add(args, TIMELINE_INSTRUCTIONS, slice->instructions);
	if (slice->knows & KNOWS_INSTRUCTIONS && !on_cpu)
		add(args, TIMELINE_OWN, slice->own);
	if (slice->knows & KNOWS_CYCLES)
		add(args, TIMELINE_CYCLES, slice->cycles);
	if (slice->knows & KNOWS_CYCLES && !on_cpu)
		add(args, TIMELINE_OWN_CYCLES, slice->own_cycles);
	if (slice->knows & KNOWS_LINES && !on_cpu) {
		add(args, TIMELINE_LINES, slice->lines);
		add(args, TIMELINE_OWN_LINES, slice->own_lines);
	}
	if (slice->kind == SLICE_SAMPLED)
		add(args, TIMELINE_SAMPLES, slice->samples);
}

/* A span of 1 ns, so that --time selects it. */
static void add_note(struct timeline_args *args, struct buf *scratch, struct world *world,
		     const struct event_slice *slice)
{
	const struct event_note *note = slice->note;
	size_t nr;

	for (unsigned i = 0; i < NOTE_FIELDS; i++) {
		if (note_fields[i].kind == note->kind)
			add(args, TIMELINE_NOTE + i, note_number(note, i));
	}
	if (note->address) {
		int len =
			snprintf(args->address, sizeof(args->address), "0x%" PRIx64, note->address);

		add_text(args, TIMELINE_ADDRESS, args->address, (size_t)len);
	}
	if (slice->frame) {
		const struct symbol *symbols = frame_symbols(world, slice->frame, &nr);
		const char *text =
			timeline_text(scratch, world, or_unknown(world, symbols[nr - 1].name));

		add_text(args, TIMELINE_FUNCTION, text, strlen(text));
	}
	add_time(args, slice->began, slice->ended + 1);
}

void timeline_args(struct timeline_args *args, struct buf *scratch, struct world *world,
		   const struct event *ev)
{
	const struct event_slice *slice = &ev->slice;

	args->nr = 0;
	if (slice->kind == SLICE_NOTE) {
		add_note(args, scratch, world, slice);
		return;
	}
	if (slice->leave && slice->kind != SLICE_GAP)
		add_counts(args, ev);
	if (slice->leave)
		add_time(args, slice->began, slice->ended);
	if (slice->cut)
		add(args, slice->leave ? TIMELINE_GOES_ON : TIMELINE_BEGAN_BEFORE, 1);
}

uint64_t timeline_rate(const struct event *ev)
{
	uint64_t time = ev->time - ev->slice.since;
	uint64_t rate;

	if (!time)
		return 0;
	rate = wide_quotient(wide_product(ev->slice.instructions, SECOND), time);
	return rate < INT64_MAX ? rate : INT64_MAX;
}

bool timeline_on_cpu(const struct event *ev)
{
	enum slice_kind kind = ev->slice.kind;

	return kind == SLICE_RUN || kind == SLICE_MASKED ||
	       (kind == SLICE_GAP && ev->tid == NO_TASK);
}

void timeline_cpu_name(char name[TIMELINE_CPU_NAME], uint32_t cpu, bool masked)
{
	const char *what = masked ? ": interrupts off" : "";

	if (cpu == NO_CPU)
		snprintf(name, TIMELINE_CPU_NAME, "cpu ?%s", what);
	else
		snprintf(name, TIMELINE_CPU_NAME, "cpu %" PRIu32 "%s", cpu, what);
}

uint32_t timeline_comm(struct world *world, uint32_t pid, uint32_t tid)
{
	return or_unknown(world, world_comm(world, pid, tid));
}

uint32_t timeline_name(struct world *world, const struct event *ev)
{
	const struct symbol *symbols;
	size_t nr;

	if (ev->slice.kind == SLICE_GAP)
		return str_intern_z(world->strings, "gap");
	if (ev->slice.kind == SLICE_NOTE)
		return str_intern_z(world->strings, note_names[ev->slice.note->kind]);
	if (ev->slice.kind == SLICE_RUN)
		return timeline_comm(world, ev->pid, ev->tid);
	symbols = frame_symbols(world, ev->slice.frame, &nr);
	return or_unknown(world, symbols[nr - 1].name);
}

const char *timeline_text(struct buf *scratch, const struct world *world, uint32_t name)
{
	text_plain(scratch, str_text(world->strings, name));
	if (scratch->len > TIMELINE_MAX_TEXT) {
		scratch->len = TIMELINE_MAX_TEXT;
		while ((scratch->data[scratch->len] & 0xc0) == 0x80) /* inside a character */
			scratch->len--;
		scratch->data[scratch->len] = '\0';
	}
	return scratch->data;
}

/* perf's data has a time of day for one of its times. */
uint64_t timeline_wall(const struct world *world, uint64_t time)
{
	const char *clock = world_fact(world, "clock");
	uint64_t wall, then;

	if (!clock || sscanf(clock, "%*u wall %" SCNu64 " at %" SCNu64, &wall, &then) != 2)
		return 0;
	return wall + (time - then);
}

void timeline_count(struct timeline_size *size, const struct event_slice *slice)
{
	size->events++;
	if (!slice->leave)
		return;
	if (!size->slices || slice->began < size->first)
		size->first = slice->began;
	if (slice->ended > size->last)
		size->last = slice->ended;
	size->slices++;
}

/* So that half of the room in the viewer stays free, because calls are not spread evenly. */
static double shorter_time(const struct timeline_size *size)
{
	double seconds = (double)(size->last - size->first) / SECOND;

	return seconds * MOST_SLICES / (double)size->slices / 2;
}

void timeline_warn(const struct timeline_size *size, const char *path)
{
	const char *name = strcmp(path, "-") ? path : "standard output";

	if (!size->events)
		log_warn("%s: the timeline is empty: the input has neither calls nor samples, or "
			 "none "
			 "is selected",
			 name);
	if (size->slices > MOST_SLICES)
		log_warn("%s has %.1f million slices, and Perfetto has room for about %d million: "
			 "select "
			 "less, or use --split %.2g",
			 name, (double)size->slices / 1e6, MOST_SLICES / 1000000,
			 shorter_time(size));
}

uint32_t *timeline_number(struct timeline_numbers *numbers, uint32_t name)
{
	size_t had = numbers->cap;

	GROW(numbers->of, (size_t)name + 1, numbers->cap);
	if (numbers->cap > had)
		memset(numbers->of + had, 0, (numbers->cap - had) * sizeof(*numbers->of));
	return &numbers->of[name];
}

void timeline_numbers_release(struct timeline_numbers *numbers)
{
	free(numbers->of);
	memset(numbers, 0, sizeof(*numbers));
}

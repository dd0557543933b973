// SPDX-License-Identifier: GPL-2.0-or-later
#include "write/timeline.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"

#define SECOND 1000000000

const char *const timeline_arg_names[TIMELINE_ARGS] = {
	[TIMELINE_INSTRUCTIONS] = "instructions",
	[TIMELINE_OWN] = "own instructions",
	[TIMELINE_LINES] = "i-cache lines",
	[TIMELINE_OWN_LINES] = "own i-cache lines",
	[TIMELINE_SPAN] = "span",
	[TIMELINE_BEGAN_BEFORE] = "began before",
	[TIMELINE_GOES_ON] = "goes on",
};

const char *const timeline_kind_names[TIMELINE_KINDS] = {
	[SLICE_BEGIN] = "begin",     [SLICE_CALL] = "call",
	[SLICE_JUMP] = "jump",	     [SLICE_TRAP] = "trap",
	[SLICE_SYSCALL] = "syscall", [SLICE_RUN] = "run",
	[SLICE_GAP] = "gap",	     [SLICE_MASKED] = "interrupts off",
};

static void add(struct timeline_args *args, enum timeline_arg_id id, enum timeline_type type,
		uint64_t number)
{
	args->all[args->nr++] = (struct timeline_arg){ id, type, number };
}

/* As the options of kscope want it. */
static void add_span(struct timeline_args *args, uint64_t since, uint64_t until)
{
	args->len =
		(size_t)snprintf(args->text, sizeof(args->text),
				 "--time %" PRIu64 ".%09" PRIu64 ",%" PRIu64 ".%09" PRIu64,
				 since / SECOND, since % SECOND, until / SECOND, until % SECOND);
	add(args, TIMELINE_SPAN, TIMELINE_TEXT, 0);
}

static void add_counts(struct timeline_args *args, const struct event_slice *slice)
{
	add(args, TIMELINE_INSTRUCTIONS, TIMELINE_NUMBER, slice->instructions);
	if (timeline_on_cpu(slice))
		return;
	add(args, TIMELINE_OWN, TIMELINE_NUMBER, slice->own);
	add(args, TIMELINE_LINES, TIMELINE_NUMBER, slice->lines);
	add(args, TIMELINE_OWN_LINES, TIMELINE_NUMBER, slice->own_lines);
}

void timeline_args(struct timeline_args *args, const struct event *ev)
{
	const struct event_slice *slice = &ev->slice;

	args->nr = 0;
	if (slice->leave && slice->kind != SLICE_GAP)
		add_counts(args, slice);
	if (slice->leave)
		add_span(args, slice->since, ev->time);
	if (slice->cut)
		add(args, slice->leave ? TIMELINE_GOES_ON : TIMELINE_BEGAN_BEFORE, TIMELINE_TRUE,
		    1);
}

uint64_t timeline_rate(const struct event *ev)
{
	uint64_t time = ev->time - ev->slice.since;
	unsigned __int128 rate = (unsigned __int128)ev->slice.instructions * SECOND;

	rate = time ? rate / time : 0;
	return rate < INT64_MAX ? (uint64_t)rate : INT64_MAX;
}

bool timeline_on_cpu(const struct event_slice *slice)
{
	return slice->kind == SLICE_RUN || slice->kind == SLICE_GAP || slice->kind == SLICE_MASKED;
}

void timeline_cpu_name(char name[TIMELINE_CPU_NAME], uint32_t cpu, bool masked)
{
	const char *what = masked ? ": interrupts off" : "";

	if (cpu == NO_CPU)
		snprintf(name, TIMELINE_CPU_NAME, "cpu ?%s", what);
	else
		snprintf(name, TIMELINE_CPU_NAME, "cpu %" PRIu32 "%s", cpu, what);
}

static uint32_t or_unknown(struct world *world, uint32_t name)
{
	return name ? name : str_intern_z(world->strings, "?");
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

void timeline_warn_empty(const char *path)
{
	log_warn("%s: the timeline is empty: the input has no traced calls, or none is selected",
		 strcmp(path, "-") ? path : "standard output");
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

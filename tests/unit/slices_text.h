/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * slices_text: slices of traces that are written as text (see trace_text.h), as text. These traces begin at 1000 ns,
 * and an instruction takes 1 ns. Each slice is a line, in the order of their ends:
 *
 *	BEGIN-END TASK FUNCTION KIND INSTRUCTIONS/OWN LINES/OWN
 *	BEGIN-END cpu N runs TASK INSTRUCTIONS
 *	BEGIN-END cpu N gap
 *	BEGIN-END TASK gap
 *	BEGIN-END cpu N off TASK FROM-TO INSTRUCTIONS
 *	PLACE TASK note VALUE [ADDRESS] [at TIME]
 *
 * If cycles are known, CYCLES/OWN follow. Calls are indented by their depth. `~` before a time: the slice is cut there. On another axis than time,
 * "at BEGIN-END" follows.
 */
#ifndef KSCOPE_SLICES_TEXT_H
#define KSCOPE_SLICES_TEXT_H

#include "trace_text.h"

#define USER 0x80000000u

struct shown {
	struct trace *trace;
	unsigned depth[64];
	uint32_t open[64][64]; /* by task and depth */
	bool cut[64][64];
	uint64_t last; /* the time of the last end */
	uint64_t own;  /* instructions of all slices */
	bool wrong;
	bool masked[TRACE_CPUS]; /* interrupts went off before */
};

static uint32_t frame_of(void *data, uint64_t address, uint64_t context, uint32_t pid,
			 bool is_return)
{
	(void)data, (void)pid, (void)is_return;
	return (uint32_t)address | (context == IP_USER ? USER : 0);
}

static bool has_symbol(uint32_t frame)
{
	return frame < 0xf000 || frame > 0xffff;
}

static bool same_function(void *data, uint32_t frame, uint32_t other)
{
	(void)data;
	return !has_symbol(frame) && !has_symbol(other);
}

static int announced(void *data, const struct event *ev, uint32_t frame)
{
	struct shown *shown = data;
	unsigned task = (ev->tid - 1000) % 64;

	(void)frame;
	shown->wrong |= shown->depth[task] != 0;
	return 0;
}

static void print_times(struct shown *shown, const struct event *ev)
{
	const struct event_slice *slice = &ev->slice;

	if (slice->began != slice->since || slice->ended != ev->time)
		trace_print(shown->trace, " at %" PRIu64 "-%" PRIu64, slice->began, slice->ended);
	trace_print(shown->trace, "\n");
}

static void print_slice(struct shown *shown, unsigned task, const struct event *ev, bool cut)
{
	static const char *const kinds[] = { "begin", "call", "jump", "trap", "syscall", "inline" };
	const struct event_slice *slice = &ev->slice;

	trace_print(shown->trace,
		    "%*s%s%" PRIu64 "-%s%" PRIu64 " %u %s%x %s %" PRIu64 "/%" PRIu64 " %u/%u",
		    (int)shown->depth[task], "", cut ? "~" : "", slice->since,
		    slice->cut ? "~" : "", ev->time, task, slice->frame & USER ? "u" : "",
		    slice->frame & ~USER, kinds[slice->kind], slice->instructions, slice->own,
		    slice->lines, slice->own_lines);
	if (slice->knows & KNOWS_CYCLES)
		trace_print(shown->trace, " %" PRIu64 "/%" PRIu64, slice->cycles,
			    slice->own_cycles);
	print_times(shown, ev);
}

static void print_cpu(struct shown *shown, const struct event *ev)
{
	const struct event_slice *slice = &ev->slice;
	bool masked = slice->kind == SLICE_MASKED, before = masked && shown->masked[ev->cpu];
	bool thread = slice->kind == SLICE_GAP && ev->tid != NO_TASK;

	if (!slice->leave) {
		if (masked)
			shown->masked[ev->cpu] = slice->cut;
		return;
	}
	trace_print(shown->trace, "%s%" PRIu64 "-%s%" PRIu64 " %s%u ", before ? "~" : "",
		    slice->since, slice->cut ? "~" : "", ev->time, thread ? "" : "cpu ",
		    thread ? ev->tid - 1000 : ev->cpu);
	if (masked)
		trace_print(shown->trace, "off %u %x-%x %" PRIu64, ev->tid - 1000, slice->frame,
			    slice->end_frame, slice->instructions);
	else if (slice->kind == SLICE_GAP)
		trace_print(shown->trace, "gap");
	else
		trace_print(shown->trace, "runs %u %" PRIu64, ev->tid - 1000, slice->instructions);
	print_times(shown, ev);
}

static void print_note(struct shown *shown, const struct event *ev)
{
	const struct event_slice *slice = &ev->slice;

	trace_print(shown->trace, "%" PRIu64 " %" PRId32 " note %" PRIx64, ev->time,
		    (int32_t)(ev->tid - 1000), slice->note->value);
	if (slice->frame)
		trace_print(shown->trace, " %x", slice->frame);
	if (slice->began != ev->time)
		trace_print(shown->trace, " at %" PRIu64, slice->began);
	trace_print(shown->trace, "\n");
	shown->wrong |= slice->leave || slice->since != ev->time || slice->ended != slice->began;
}

static int emitted(void *data, struct event *ev)
{
	struct shown *shown = data;
	unsigned task = (ev->tid - 1000) % 64, depth = shown->depth[task];

	if (ev->slice.kind == SLICE_SPLIT) {
		trace_print(shown->trace, "split %" PRIu64 "\n", ev->time);
		return 0;
	}
	if (ev->slice.kind == SLICE_RATE) /* see slices_cpu_test.c */
		return 0;
	if (ev->slice.kind == SLICE_NOTE) {
		print_note(shown, ev);
		return 0;
	}
	if (ev->slice.kind >= SLICE_RUN) {
		print_cpu(shown, ev);
		return 0;
	}
	if (!ev->slice.leave) {
		shown->open[task][depth] = ev->slice.frame;
		shown->cut[task][depth] = ev->slice.cut;
		shown->depth[task]++;
		return 0;
	}
	shown->own += ev->slice.own;
	shown->depth[task] = --depth;
	shown->wrong |= shown->open[task][depth] != ev->slice.frame || ev->time < ev->slice.since;
	print_slice(shown, task, ev, shown->cut[task][depth]);
	return 0;
}

/*
 * In the function at 1000, g is inlined twice: at 1020-103f, where h is inlined in it at 1028-102f, and at 1060-107f,
 * where its code is in two pieces.
 */
enum { G = 0x100a, H = 0x100b, FIRST_G = 1, FIRST_H, SECOND_G };

static void inlined_at(void *data, const struct track_place *place, struct inlines_at *out)
{
	static const struct inlined_call first_g = { G, 1, FIRST_G, 0x1020 },
					 first_h = { H, 1, FIRST_H, 0x1028 },
					 second_g = { G, 1, SECOND_G, 0x1060 };
	static const uint64_t edges[] = { 0x1020, 0x1028, 0x1030, 0x1040,    0x1060,
					  0x1068, 0x1070, 0x1080, UINT64_MAX };
	static const size_t nr[] = { 0, 1, 2, 1, 0, 1, 0, 1, 0 };
	unsigned at = 0;

	(void)data;
	while (place->address >= edges[at])
		at++;
	*out = (struct inlines_at){ .all = { at < 4 ? first_g : second_g, first_h },
				    .nr = nr[at],
				    .function = place->address & ~0xfffull,
				    .until = edges[at] };
}

/* Each has 4 bytes. */
static uint64_t instructions_at(void *data, const struct track_place *place, uint64_t end)
{
	const bool *unknown = data;

	return *unknown ? 0 : (end - place->address + 3) / 4;
}

enum inlining { NO_INLINES, INLINES, INLINES_BY_BYTES };

/* slices: what is selected; the rest is set here. Returns the instructions of all slices. */
static uint64_t slices_made(struct slices slices, enum machine machine, enum inlining inlining,
			    const char *name, const char *rows, const char *want)
{
	struct trace trace;
	struct inlines inlines;
	bool unknown = inlining == INLINES_BY_BYTES;
	struct shown shown = { .trace = &trace };
	uint64_t from = slices.from, until = slices.until ? slices.until : UINT64_MAX;

	slices.announce = announced;
	slices.emit = emitted;
	slices.data = &shown;
	slices.until = until;
	trace_begin(&trace, machine);
	trace.time = 1000;
	trace.from = from;
	trace.until = until;
	trace.calls.frame = frame_of;
	trace.calls.same = same_function;
	trace.calls.slices = &slices;
	inlines_init(&inlines);
	inlines.at = inlined_at;
	inlines.instructions = instructions_at;
	inlines.data = &unknown;
	trace.calls.inlines = inlining == NO_INLINES ? NULL : &inlines;
	trace_rows(&trace, rows);
	slices_finish(&slices);
	if (want) {
		check(name, !strcmp(trace.text, want) && !shown.wrong);
		if (strcmp(trace.text, want))
			printf("have:\n%swant:\n%s", trace.text, want);
	}
	trace_end(&trace);
	slices_release(&slices);
	inlines_release(&inlines);
	return shown.own;
}

static inline void slices_with(struct slices slices, enum machine machine, const char *name,
			       const char *rows, const char *want)
{
	slices_made(slices, machine, NO_INLINES, name, rows, want);
}

static inline void slices_on(enum machine machine, const char *name, uint64_t from, uint64_t until,
			     const char *rows, const char *want)
{
	slices_with((struct slices){ .from = from, .until = until }, machine, name, rows, want);
}

static inline void slices_are(const char *name, const char *rows, const char *want)
{
	slices_on(PUSHES, name, 0, UINT64_MAX, rows, want);
	slices_on(LINKS, name, 0, UINT64_MAX, rows, want);
}

#endif

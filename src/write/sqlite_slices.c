// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Slices: a row at the end of each. Times are those of `kscope calls` (pass/durations): a caller from before the trace
 * counts from the first return to it. Slices that are not selected are followed, because the self time of their callers
 * depends on theirs.
 */
#include <stdlib.h>

#include "base/mem.h"
#include "write/sqlite.h"

struct open_slice {
	int64_t id, parent; /* 0: none */
	uint32_t function, task, cpu;
	uint32_t depth;	  /* selected slices around it */
	uint64_t since;	  /* when it begins to count, on the axis of the run */
	uint64_t skipped; /* its instructions then */
	uint64_t ran;	  /* how long its task had run */
	uint64_t callees, callees_running;
	bool inlined, cut, outermost, outside;
};

/* Of a task; or of its gaps, or of a cpu. */
struct sqlite_axis {
	struct open_slice *open;
	size_t nr, cap;
	uint64_t last;	       /* the place of its last begin or end */
	uint64_t since, ran;   /* when it began to run, and how long it had run before */
	unsigned running;      /* on how many cpus */
	uint64_t instructions; /* in its slices that are over */
};

static uint32_t axis_of(struct sqlite *s, enum slice_kind kind, uint32_t pid, uint32_t id)
{
	uint32_t *number =
		hash_at(&s->axis_index, (struct hash_key){ (uint64_t)pid << 32 | id, kind });

	if (!*number) {
		GROW(s->axes, s->nr_axes + 1, s->cap_axes);
		s->axes[s->nr_axes++] = (struct sqlite_axis){ 0 };
		*number = (uint32_t)s->nr_axes;
	}
	return *number - 1;
}

static uint32_t axis_of_task(struct sqlite *s, const struct event *ev)
{
	return axis_of(s, SLICE_CALL, ev->pid, ev->tid);
}

static struct open_slice *push(struct sqlite_axis *axis, const struct open_slice *slice)
{
	GROW(axis->open, axis->nr + 1, axis->cap);
	axis->open[axis->nr] = *slice;
	return &axis->open[axis->nr++];
}

/* ---- rows ---- */

struct span {
	uint64_t time, self_time, running, self_running, instructions;
	bool ran; /* `running` is known */
};

static void put_row(struct writer *w, const struct event *ev, const struct open_slice *open,
		    const struct span *span)
{
	struct sqlite *s = w->priv;
	const struct event_slice *slice = &ev->slice;
	bool counted = slice->knows & KNOWS_INSTRUCTIONS, cycles = slice->knows & KNOWS_CYCLES;
	bool on_cpu = slice->kind >= SLICE_RUN;
	struct database_value row[] = {
		NUMBER(open->id),
		open->parent ? NUMBER(open->parent) : NOTHING,
		NUMBER(open->depth),
		sqlite_text(timeline_kind_names[slice->kind]),
		sqlite_id(open->task),
		sqlite_some(s, open->cpu != NO_CPU, open->cpu),
		sqlite_id(open->function),
		sqlite_number(s, slice->began),
		sqlite_number(s, slice->ended),
		sqlite_number(s, span->time),
		sqlite_number(s, span->self_time),
		sqlite_some(s, span->ran, span->running),
		sqlite_some(s, span->ran, span->self_running),
		sqlite_some(s, counted, span->instructions),
		sqlite_some(s, counted, on_cpu ? span->instructions : slice->own),
		sqlite_some(s, cycles, slice->cycles),
		sqlite_some(s, cycles, on_cpu ? slice->cycles : slice->own_cycles),
		NUMBER(open->outermost),
		NUMBER(open->cut),
		NUMBER(slice->cut),
	};

	database_add(s->db, s->tables[TABLE_SLICES], row);
	w->written.begins++;
	w->written.ends++;
}

/* ---- calls ---- */

static uint64_t ran_until(const struct sqlite_axis *axis, uint64_t time)
{
	return axis->ran + (axis->running && time > axis->since ? time - axis->since : 0);
}

static struct sqlite_depth *depth_of(struct sqlite *s, uint32_t function, bool inlined)
{
	size_t nth = 2 * (size_t)function + inlined;

	while (s->nr_depths <= nth) {
		GROW(s->depths, s->nr_depths + 1, s->cap_depths);
		s->depths[s->nr_depths++] = (struct sqlite_depth){ .axis = UINT32_MAX };
	}
	return &s->depths[nth];
}

/* Counts the call in the depth of its function. Searches the stack only if another task called the function last. */
static bool is_outermost(struct sqlite *s, uint32_t nth, const struct open_slice *slice)
{
	const struct sqlite_axis *axis = &s->axes[nth];
	struct sqlite_depth *depth = depth_of(s, slice->function, slice->inlined);

	if (depth->axis != nth) {
		*depth = (struct sqlite_depth){ .axis = nth };
		for (size_t i = 0; i < axis->nr; i++)
			depth->depth += !axis->open[i].outside &&
					axis->open[i].function == slice->function &&
					axis->open[i].inlined == slice->inlined;
	}
	return !depth->depth++;
}

static void begin_call(struct writer *w, const struct event *ev)
{
	struct sqlite *s = w->priv;
	uint32_t nth = axis_of_task(s, ev);
	struct sqlite_axis *axis = &s->axes[nth];
	const struct open_slice *caller = axis->nr ? &axis->open[axis->nr - 1] : NULL;
	struct open_slice slice = { .cpu = ev->cpu,
				    .since = ev->time,
				    .inlined = ev->slice.kind == SLICE_INLINE,
				    .cut = ev->slice.cut,
				    .outside = ev->outside };

	if (caller) {
		slice.parent = caller->outside ? caller->parent : caller->id;
		slice.depth = caller->depth + !caller->outside;
	}
	if (ev->slice.first) {
		axis->instructions = 0;
	} else if (ev->time < axis->last) { /* from before the trace */
		slice.since = axis->last;
		slice.skipped = axis->instructions;
	}
	slice.ran = ran_until(axis, slice.since);
	if (!ev->outside) {
		slice.id = (int64_t)++s->nr_slices;
		slice.function = sqlite_function(w, ev->slice.frame);
		slice.task = sqlite_task(w, ev);
		slice.outermost = is_outermost(s, nth, &slice);
	}
	axis->last = slice.since;
	push(axis, &slice);
}

static struct span span_of(const struct sqlite *s, const struct sqlite_axis *axis,
			   const struct open_slice *slice, const struct event *ev)
{
	bool is_time = ev->slice.since == ev->slice.began && ev->time == ev->slice.ended;
	uint64_t time = ev->slice.ended - ev->slice.began;
	struct span span = { .ran = is_time,
			     .instructions = ev->slice.instructions - slice->skipped };

	if (is_time) /* else the axis is another one, on which lateness is no time */
		time = ev->time < slice->since ? 0 : ev->time - slice->since;
	span.time = time;
	span.running = s->has_runs && is_time ? ran_until(axis, ev->time) - slice->ran : time;
	span.self_time = time - slice->callees;
	span.self_running = span.running - slice->callees_running;
	return span;
}

static void end_call(struct writer *w, const struct event *ev)
{
	struct sqlite *s = w->priv;
	uint32_t nth = axis_of_task(s, ev);
	struct sqlite_axis *axis = &s->axes[nth];
	struct open_slice slice;
	struct sqlite_depth *depth;
	struct span span;

	if (!axis->nr)
		return;
	slice = axis->open[--axis->nr];
	span = span_of(s, axis, &slice, ev);
	if (axis->nr) {
		axis->open[axis->nr - 1].callees += span.time;
		axis->open[axis->nr - 1].callees_running += span.running;
	} else {
		axis->instructions += span.instructions;
	}
	axis->last = ev->time;
	if (slice.outside)
		return;
	depth = depth_of(s, slice.function, slice.inlined);
	depth->depth -= depth->axis == nth;
	put_row(w, ev, &slice, &span);
}

/* ---- what cpus did, gaps and notes ---- */

static void run_task(struct sqlite *s, const struct event *ev)
{
	uint32_t nth = axis_of_task(s, ev); /* it may move s->axes */
	struct sqlite_axis *axis = &s->axes[nth];

	s->has_runs = true;
	axis->ran = ran_until(axis, ev->time);
	axis->since = ev->time;
	if (!ev->slice.leave)
		axis->running++;
	else if (axis->running)
		axis->running--;
}

static void begin_other(struct writer *w, const struct event *ev, uint32_t nth)
{
	struct sqlite *s = w->priv;

	push(&s->axes[nth],
	     &(struct open_slice){ .id = (int64_t)++s->nr_slices,
				   .task = ev->tid == NO_TASK && ev->slice.kind == SLICE_GAP
						   ? 0
						   : sqlite_task(w, ev),
				   .cpu = ev->cpu,
				   .function = sqlite_function(w, ev->slice.frame),
				   .outermost = true,
				   .cut = ev->slice.cut });
}

static void put_other(struct writer *w, const struct event *ev)
{
	struct sqlite *s = w->priv;
	bool on_cpu = timeline_on_cpu(ev);
	uint32_t nth = axis_of(s, ev->slice.kind, on_cpu ? 0 : ev->pid, on_cpu ? ev->cpu : ev->tid);
	struct sqlite_axis *axis = &s->axes[nth];
	struct span span = { .time = ev->slice.ended - ev->slice.began,
			     .instructions = ev->slice.instructions };

	span.self_time = span.time;
	if (!ev->slice.leave)
		begin_other(w, ev, nth);
	else if (axis->nr)
		put_row(w, ev, &axis->open[--axis->nr], &span);
}

static void put_note(struct writer *w, const struct event *ev)
{
	struct sqlite *s = w->priv;
	const struct event_note *note = ev->slice.note;
	struct database_value row[] = {
		NOTHING,
		sqlite_number(s, ev->slice.began),
		sqlite_some(s, ev->cpu != NO_CPU, ev->cpu),
		NUMBER(sqlite_task(w, ev)),
		sqlite_text(note_names[note->kind]),
		sqlite_bits(note->value),
		sqlite_id(sqlite_function(w, ev->slice.frame)),
	};

	sqlite_add(s, TABLE_NOTES, row);
}

void sqlite_put_slice(struct writer *w, const struct event *ev)
{
	if (ev->slice.kind == SLICE_RUN)
		run_task(w->priv, ev);
	if (ev->slice.kind < SLICE_RUN) {
		if (ev->slice.leave)
			end_call(w, ev);
		else
			begin_call(w, ev);
	} else if (!ev->outside && ev->slice.kind < SLICE_NOTE) {
		put_other(w, ev);
	} else if (!ev->outside && ev->slice.kind == SLICE_NOTE) {
		put_note(w, ev);
	}
}

void sqlite_slices_release(struct sqlite *s)
{
	for (size_t i = 0; i < s->nr_axes; i++)
		free(s->axes[i].open);
	free(s->axes);
	free(s->depths);
	hash_release(&s->axis_index);
}

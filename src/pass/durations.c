// SPDX-License-Identifier: GPL-2.0-or-later
#include "pass/durations.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* A slice counts for its function, and may count as a system call or trap. */
#define MOST_ROWS 2

struct part {
	uint32_t row;
	bool outer; /* not inside another one of the same row */
};

struct open_slice {
	struct part parts[MOST_ROWS];
	unsigned nr_parts;
	bool cut, inlined;
	uint64_t since;
	uint64_t skipped; /* instructions from before it was known */
	uint64_t ran;	  /* how long its task had run before it */
	/* Of what it called: */
	uint64_t callees, callees_running;
};

struct durations_task {
	struct open_slice *open; /* from the root */
	size_t nr, cap;
	uint64_t last;	       /* the time of its last event */
	unsigned running;      /* on how many cpus; one, unless the stacks are wrong */
	uint64_t since, ran;   /* when that began, and how long it ran before */
	uint64_t instructions; /* in its slices that are over */
	uint64_t entered;      /* the first function of the pair */
	bool waits;	       /* for the second one */
	bool selected;	       /* it has slices that are */
};

void durations_init(struct durations *d, struct world *world)
{
	*d = (struct durations){ .world = world };
}

void durations_release(struct durations *d)
{
	for (size_t i = 0; i < d->nr; i++)
		histogram_release(&d->rows[i].times);
	for (size_t i = 0; i < d->nr_tasks; i++)
		free(d->tasks[i].open);
	histogram_release(&d->between);
	hash_release(&d->index);
	hash_release(&d->row_of_frame);
	hash_release(&d->task_index);
	free(d->rows);
	free(d->tasks);
	memset(d, 0, sizeof(*d));
}

/* Rows */

static bool is_named(const struct durations *d, uint32_t name, const char *want)
{
	return want && !strcmp(str_text(d->world->strings, name), want);
}

/* The row with these fields: its kind, names and whether it is inlined. */
static uint32_t row_of(struct durations *d, struct durations_row row)
{
	struct hash_key key = { (uint64_t)row.name << 32 | row.binary,
				(uint64_t)row.kind << 33 | (uint64_t)row.inlined << 32 |
					row.program };
	uint32_t *handle = hash_at(&d->index, key);

	if (!*handle) {
		GROW(d->rows, d->nr + 1, d->cap);
		row.task = NO_TASK;
		row.from = is_named(d, row.name, d->from);
		row.to = is_named(d, row.name, d->to);
		d->rows[d->nr] = row;
		*handle = (uint32_t)++d->nr;
	}
	return *handle - 1;
}

static uint32_t row_of_function(struct durations *d, const struct event_slice *slice)
{
	bool inlined = slice->kind == SLICE_INLINE;
	uint32_t *known = hash_at(&d->row_of_frame, (struct hash_key){ slice->frame, inlined });
	const struct symbol *symbols;
	size_t nr;

	if (!*known) {
		symbols = frame_symbols(d->world, slice->frame, &nr);
		*known = row_of(d, (struct durations_row){ .kind = DURATIONS_FUNCTION,
							   .name = symbols[nr - 1].name,
							   .binary = frame_binary(d->world,
										  slice->frame),
							   .inlined = inlined }) +
			 1;
	}
	return *known - 1;
}

static uint32_t row_of_program(struct durations *d, enum durations_kind kind, uint32_t function,
			       uint32_t pid)
{
	const struct durations_row *row = &d->rows[function];

	return row_of(d, (struct durations_row){ .kind = kind,
						 .name = row->name,
						 .binary = row->binary,
						 .program = world_comm(d->world, pid, pid) });
}

static bool has_row(const struct open_slice *slice, uint32_t row)
{
	for (unsigned i = 0; i < slice->nr_parts; i++) {
		if (slice->parts[i].row == row)
			return true;
	}
	return false;
}

/* Without a search in deep recursion, unless tasks take turns in it. */
static struct part open_row(struct durations *d, uint32_t task, uint32_t nth)
{
	const struct durations_task *of = &d->tasks[task];
	struct durations_row *row = &d->rows[nth];

	if (row->task != task) {
		row->task = task;
		row->depth = 0;
		for (size_t i = 0; i < of->nr; i++)
			row->depth += has_row(&of->open[i], nth);
	}
	return (struct part){ .row = nth, .outer = !row->depth++ };
}

/* Slices */

static uint32_t task_of(struct durations *d, const struct event *ev)
{
	uint32_t *handle = hash_at(&d->task_index, (struct hash_key){ ev->pid, ev->tid });

	if (!*handle) {
		GROW(d->tasks, d->nr_tasks + 1, d->cap_tasks);
		d->tasks[d->nr_tasks] = (struct durations_task){ 0 };
		*handle = (uint32_t)++d->nr_tasks;
	}
	return *handle - 1;
}

/* How long the task has run until then. */
static uint64_t ran_until(const struct durations_task *task, uint64_t time)
{
	return task->ran + (task->running && time > task->since ? time - task->since : 0);
}

static void run_task(struct durations *d, const struct event *ev)
{
	uint32_t nth = task_of(d, ev); /* it may move d->tasks */
	struct durations_task *task = &d->tasks[nth];

	d->has_runs = true;
	task->ran = ran_until(task, ev->time);
	task->since = ev->time;
	if (!ev->slice.leave)
		task->running++;
	else if (task->running)
		task->running--;
}

static void enter_pair(struct durations *d, struct durations_task *task,
		       const struct durations_row *row, uint64_t time)
{
	if (row->to && task->waits) {
		histogram_add(&d->between, time - task->entered);
		task->waits = false;
	}
	if (row->from) {
		d->entries++;
		task->entered = time;
		task->waits = true;
	}
}

/* The rows that it counts for. */
static void open_rows(struct durations *d, uint32_t task, struct open_slice *slice,
		      const struct event *ev)
{
	static const enum durations_kind kinds[SLICE_KINDS] = {
		[SLICE_SYSCALL] = DURATIONS_SYSCALL, [SLICE_TRAP] = DURATIONS_TRAP
	};
	enum durations_kind kind = kinds[ev->slice.kind];
	uint32_t function = row_of_function(d, &ev->slice), handler;

	slice->parts[slice->nr_parts++] = open_row(d, task, function);
	if (kind != DURATIONS_FUNCTION) {
		handler = row_of_program(d, kind, function, ev->pid);
		slice->parts[slice->nr_parts++] = open_row(d, task, handler);
	}
	if (!slice->cut)
		enter_pair(d, &d->tasks[task], &d->rows[function], ev->time);
	d->nr_selected += !d->tasks[task].selected;
	d->tasks[task].selected = true;
}

static void begin_slice(struct durations *d, const struct event *ev)
{
	uint32_t nth = task_of(d, ev);
	struct durations_task *task = &d->tasks[nth];
	struct open_slice slice = { .cut = ev->slice.cut,
				    .inlined = ev->slice.kind == SLICE_INLINE,
				    .since = ev->time };

	if (ev->slice.first) {
		task->instructions = 0;
		task->waits = false;
	} else if (ev->time < task->last) { /* from before the trace */
		slice.since = task->last;
		slice.skipped = task->instructions;
	}
	slice.ran = ran_until(task, slice.since);
	if (!ev->outside)
		open_rows(d, nth, &slice, ev);
	GROW(task->open, task->nr + 1, task->cap);
	task->open[task->nr++] = slice;
	d->begun += !ev->outside;
	task->last = slice.since;
}

/* A call, or the part of one that is selected. */
struct span {
	uint64_t time, running, instructions;
	uint64_t self_time, self_running, self_instructions;
};

static struct span span_of(const struct durations *d, const struct durations_task *task,
			   const struct open_slice *slice, const struct event *ev)
{
	struct span span = { .instructions = ev->slice.instructions - slice->skipped,
			     .self_instructions = ev->slice.own };

	span.time = ev->time < slice->since ? 0 : ev->time - slice->since;
	span.running = d->has_runs ? ran_until(task, ev->time) - slice->ran : span.time;
	span.self_time = span.time - slice->callees;
	span.self_running = span.running - slice->callees_running;
	return span;
}

static void add_call(struct durations_row *row, bool outer, const struct open_slice *slice,
		     const struct span *span, bool ended)
{
	row->self_time += span->self_time;
	row->self_running += span->self_running;
	row->self_instructions += span->self_instructions;
	if (outer) {
		row->total_time += span->time;
		row->total_running += span->running;
		row->total_instructions += span->instructions;
	}
	if (slice->cut)
		return;
	row->count++;
	row->open += !ended;
	if (ended)
		histogram_add(&row->times, span->time);
}

static void add_to_all(struct durations *d, const struct open_slice *slice, const struct span *span)
{
	d->calls += !slice->cut && !slice->inlined;
	d->inlined += !slice->cut && slice->inlined;
	d->time += span->self_time;
	d->running += span->self_running;
	d->instructions += span->self_instructions;
}

static void end_slice(struct durations *d, const struct event *ev)
{
	uint32_t nth = task_of(d, ev);
	struct durations_task *task = &d->tasks[nth];
	struct open_slice slice, *caller;
	struct span span;

	if (!task->nr)
		return;
	slice = task->open[--task->nr];
	d->ended += !ev->outside;
	d->counted |= ev->slice.knows & KNOWS_INSTRUCTIONS;
	span = span_of(d, task, &slice, ev);
	for (unsigned i = 0; i < slice.nr_parts; i++) {
		struct durations_row *row = &d->rows[slice.parts[i].row];

		row->depth -= row->task == nth;
		add_call(row, slice.parts[i].outer, &slice, &span, !ev->slice.cut);
	}
	if (!ev->outside)
		add_to_all(d, &slice, &span);
	if (task->nr) {
		caller = &task->open[task->nr - 1];
		caller->callees += span.time;
		caller->callees_running += span.running;
	} else {
		task->instructions += span.instructions;
	}
	task->last = ev->time;
	if (ev->slice.cut)
		task->waits = false;
}

void durations_add(struct durations *d, const struct event *ev)
{
	if (ev->slice.kind == SLICE_MASKED || ev->slice.kind == SLICE_NOTE)
		return;
	if (ev->slice.kind == SLICE_RUN) {
		run_task(d, ev);
	} else if (ev->slice.kind == SLICE_GAP) {
		if (!ev->slice.leave || ev->outside)
			return;
		d->gaps++;
		d->gap_time += ev->time - ev->slice.since;
	} else if (ev->slice.kind == SLICE_RATE) {
		return;
	} else if (ev->slice.leave) {
		end_slice(d, ev);
	} else {
		begin_slice(d, ev);
	}
}

/* Order */

struct order {
	const struct strtab *names;
	enum durations_sort sort;
	bool instructions;
};

static uint64_t key_of(const struct durations_row *row, const struct order *order)
{
	switch (order->sort) {
	case DURATIONS_BY_SELF:
		return order->instructions ? row->self_instructions : row->self_running;
	case DURATIONS_BY_TOTAL:
		return order->instructions ? row->total_instructions : row->total_running;
	case DURATIONS_BY_CALLS: return row->count;
	case DURATIONS_BY_MAX: return row->times.max;
	default: return 0;
	}
}

/* The largest first; equal ones in the order of their names. */
static int compare(const void *va, const void *vb, void *arg)
{
	const struct durations_row *a = va, *b = vb;
	const struct order *order = arg;
	uint64_t x = key_of(a, order), y = key_of(b, order);
	int names;

	if (x != y)
		return x > y ? -1 : 1;
	names = strcmp(str_text(order->names, a->name), str_text(order->names, b->name));
	if (!names)
		names = strcmp(str_text(order->names, a->binary),
			       str_text(order->names, b->binary));
	if (!names)
		names = strcmp(str_text(order->names, a->program),
			       str_text(order->names, b->program));
	return names ? names : a->inlined - b->inlined;
}

void durations_sort_rows(struct durations *d, enum durations_sort sort, bool instructions)
{
	struct order order = { d->world->strings, sort, instructions };

	hash_release(&d->index); /* sorting invalidates it */
	hash_release(&d->row_of_frame);
	if (d->nr)
		qsort_r(d->rows, d->nr, sizeof(*d->rows), compare, &order);
}

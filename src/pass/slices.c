// SPDX-License-Identifier: GPL-2.0-or-later
#include "pass/slices.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "pass/footprint.h"

#define OWN_WORDS 2    /* of bits, for the first lines of a function */
#define MAX_RUN 65536  /* bytes: a longer straight run of instructions is an error */
#define FIRST_NUMBER 1 /* of slices that began before the trace */
#define FIRST_TID 1000 /* readers number processes from 1 on */

struct slice {
	uint64_t since;	      /* when it began */
	uint64_t before;      /* instructions of its task before it */
	uint64_t callees;     /* instructions of what it called */
	uint32_t mark, frame; /* of the code that runs in it */
	enum slice_kind kind;
	bool cut;
	/* The footprint, while it is shown. */
	uint64_t number;
	int64_t lines; /* its lines, less those that count for its caller already */
	uint32_t own_lines;
	uint64_t first; /* the line of its function's start */
	uint64_t own[OWN_WORDS];
};

struct slices_task {
	struct slices_task *next, **link; /* link: what points to it */
	struct slice *open;		  /* from the root */
	size_t nr, cap;
	size_t shown; /* of them, those whose begin was emitted and whose end was not */
	uint64_t instructions;
	uint64_t last_number; /* of a slice */
	struct footprint footprint;
	uint64_t began, left; /* when it was first seen, and when it last ran */
	uint64_t last;	      /* the time of the last begin or end that was shown */
	size_t beyond;	      /* see struct track_view */
	uint32_t pid, tid, cpu;
	bool announced;
};

struct slices_cpu {
	struct slices_task *task;  /* the one that runs; NULL: none */
	struct slices_task *shown; /* the one that is shown to run */
	uint64_t since;		   /* when that began */
	uint64_t last;		   /* when the last one began or ended, or a gap ended */
	uint64_t instructions;	   /* of that task, before */
	uint64_t time;		   /* of the cpu's last event */
	uint64_t at;		   /* where that led; 0: unknown */
	uint32_t number;
	bool traced; /* before, if not now */
};

/* What is shown */

/* task NULL: none. */
static struct event event_of(const struct slices_task *task, uint32_t cpu, uint64_t time)
{
	return (struct event){ .kind = EVENT_SLICE,
			       .time = time,
			       .cpu = cpu,
			       .pid = task ? task->pid : NO_TASK,
			       .tid = task ? task->tid : NO_TASK };
}

/* On one axis, times do not run backwards: a task may end after the selected time began, but last run before. */
static uint64_t advance(uint64_t *last, uint64_t time)
{
	if (*last < time)
		*last = time;
	return *last;
}

static void emit_on(struct slices *s, const struct slices_task *task, uint32_t cpu, uint64_t time,
		    struct event_slice slice)
{
	struct event ev = event_of(task, cpu, time);

	ev.slice = slice;
	if (!s->failed && s->emit(s->data, &ev) < 0)
		s->failed = true;
}

static void emit(struct slices *s, const struct slices_task *task, uint64_t time,
		 struct event_slice slice)
{
	emit_on(s, task, task->cpu, time, slice);
}

static void announce(struct slices *s, struct slices_task *task, uint64_t time)
{
	struct event ev = event_of(task, task->cpu, time);

	task->announced = true;
	if (!s->failed && s->announce(s->data, &ev, task->open[0].frame) < 0)
		s->failed = true;
}

static void show_slice(struct slices *s, struct slices_task *task, uint64_t time)
{
	struct slice *slice = &task->open[task->shown++];

	if (!task->announced)
		announce(s, task, time);
	slice->before = task->instructions;
	slice->callees = 0;
	slice->since = time;
	slice->number = ++task->last_number;
	slice->lines = 0;
	slice->own_lines = 0;
	memset(slice->own, 0, sizeof(slice->own));
	emit(s, task, time,
	     (struct event_slice){ .frame = slice->frame, .kind = slice->kind, .cut = slice->cut });
}

/* Shows the slices that are open. */
static void show(struct slices *s, struct slices_task *task, uint64_t time)
{
	if (task->shown < task->nr)
		time = advance(&task->last, time);
	while (task->shown < task->nr) {
		task->open[task->shown].cut |= task->open[task->shown].since < time;
		show_slice(s, task, time);
	}
}

/* Ends the innermost slice that is shown. cut: it is not over. */
static void hide_slice(struct slices *s, struct slices_task *task, uint64_t time, bool cut)
{
	struct slice *slice = &task->open[--task->shown];
	uint64_t instructions = task->instructions - slice->before;

	time = advance(&task->last, time);
	if (task->shown) {
		slice[-1].callees += instructions;
		slice[-1].lines += slice->lines;
	}
	emit(s, task, time,
	     (struct event_slice){ .frame = slice->frame,
				   .kind = slice->kind,
				   .leave = true,
				   .cut = cut,
				   .since = slice->since,
				   .instructions = instructions,
				   .own = instructions - slice->callees,
				   .lines = (uint32_t)slice->lines,
				   .own_lines = slice->own_lines });
}

static void hide(struct slices *s, struct slices_task *task, uint64_t time)
{
	while (task->shown)
		hide_slice(s, task, time, true);
}

/* The slices from this depth on are over. */
static void close_from(struct slices *s, struct slices_task *task, size_t depth, uint64_t time)
{
	while (task->shown > depth)
		hide_slice(s, task, time, false);
	if (task->nr > depth)
		task->nr = depth;
}

/* Lines of code */

/* Whether the innermost slice's own code touches the line for the first time. */
static bool is_new_line(struct slice *top, uint64_t line, uint64_t seen)
{
	uint64_t bit = line - top->first;
	uint64_t mask = (uint64_t)1 << bit % 64;
	bool fresh;

	/* Far from the function's start, a recursive call that touched it may hide that this one did. */
	if (bit >= OWN_WORDS * 64)
		return seen != top->number;
	fresh = !(top->own[bit / 64] & mask);
	top->own[bit / 64] |= mask;
	return fresh;
}

/* Counts a line for the slices that began after the task last touched it: the innermost ones. */
static void count_line(struct slices_task *task, uint64_t seen)
{
	size_t first = 0, last = task->shown - 1;

	while (first < last) {
		size_t middle = (first + last) / 2;

		if (task->open[middle].number > seen)
			last = middle;
		else
			first = middle + 1;
	}
	task->open[task->shown - 1].lines++;
	if (first)
		task->open[first - 1].lines--;
}

/* The task ran the code from one address up to another. */
static void touch(struct slices_task *task, uint64_t from, uint64_t to)
{
	struct slice *top;

	if (!from || !task->shown || to < from || to - from > MAX_RUN)
		return;
	top = &task->open[task->shown - 1];
	for (uint64_t line = from >> FOOTPRINT_LINE; line <= to >> FOOTPRINT_LINE; line++) {
		uint64_t seen = footprint_touch(&task->footprint, line, task->last_number);

		top->own_lines += is_new_line(top, line, seen);
		if (seen < top->number)
			count_line(task, seen);
	}
}

/* Which task runs */

static void show_run(struct slices *s, struct slices_cpu *cpu, uint64_t time)
{
	cpu->shown = cpu->task;
	cpu->since = advance(&cpu->last, time);
	cpu->instructions = cpu->task->instructions;
	emit_on(s, cpu->task, cpu->number, cpu->since, (struct event_slice){ .kind = SLICE_RUN });
}

/* cut: it goes on. */
static void hide_run(struct slices *s, struct slices_cpu *cpu, uint64_t time, bool cut)
{
	const struct slices_task *task = cpu->shown;

	if (!task)
		return;
	cpu->shown = NULL;
	emit_on(s, task, cpu->number, advance(&cpu->last, time),
		(struct event_slice){ .kind = SLICE_RUN,
				      .leave = true,
				      .cut = cut,
				      .since = cpu->since,
				      .instructions = task->instructions - cpu->instructions });
}

static void show_gap(struct slices *s, struct slices_cpu *cpu, uint64_t time)
{
	struct event_slice gap = { .kind = SLICE_GAP };
	uint64_t since = cpu->time < s->from ? s->from : cpu->time;

	since = advance(&cpu->last, since);
	if (since >= time)
		return;
	cpu->last = time;
	emit_on(s, NULL, cpu->number, since, gap);
	gap.leave = true;
	gap.since = since;
	emit_on(s, NULL, cpu->number, time, gap);
}

/* What the tracker knows */

static struct slices_task *task_of(struct slices *s, const struct track_view *view,
				   const struct event *ev)
{
	struct slices_task *task = *view->own;

	if (task)
		return task;
	task = xcalloc(1, sizeof(*task));
	*task = (struct slices_task){ .next = s->tasks,
				      .link = &s->tasks,
				      .began = s->now,
				      .last_number = FIRST_NUMBER,
				      .pid = ev->pid,
				      .tid = FIRST_TID + view->id };
	if (task->next)
		task->next->link = &task->next;
	s->tasks = task;
	*view->own = task;
	return task;
}

static enum slice_kind kind_of(const struct track_frame *caller)
{
	if (caller->kind != TRACK_TRAP)
		return SLICE_CALL;
	return caller->context == IP_USER && !caller->interrupt ? SLICE_SYSCALL : SLICE_TRAP;
}

static uint32_t mark_at(const struct track_view *view, size_t depth)
{
	return depth < view->nr ? view->frames[depth].mark : view->mark;
}

static void open_slice(struct slices *s, struct slices_task *task, const struct track_view *view,
		       enum slice_kind kind, uint64_t time, bool cut)
{
	uint32_t mark = mark_at(view, task->nr);
	uint64_t start = 0;

	GROW(task->open, task->nr + 1, task->cap);
	task->open[task->nr++] = (struct slice){ .since = time,
						 .mark = mark,
						 .frame = s->frame(s->data, mark, &start),
						 .first = start >> FOOTPRINT_LINE,
						 .kind = kind,
						 .cut = cut };
}

/*
 * The task returned to a caller from before the trace, which ran all the time. Slices that begin at the same
 * time could not be nested, so each begins a ns earlier, if there is one in the selected time.
 */
static void open_caller(struct slices *s, struct slices_task *task, const struct track_view *view,
			bool selected)
{
	bool early = task->began < s->from || task->began - s->from < view->beyond;
	uint64_t time = early ? task->began : task->began - view->beyond;

	open_slice(s, task, view, SLICE_BEGIN, time, true);
	if (!selected || early)
		return;
	show_slice(s, task, time);
	task->open[0].before = 0;
	task->open[0].callees = task->instructions;
	task->open[0].number = FIRST_NUMBER;
	task->open[0].lines = (int64_t)task->footprint.nr;
}

/* Whether another function runs in the innermost slice. */
static bool has_jumped(struct slices *s, struct slices_task *task, const struct track_view *view)
{
	struct slice *top = &task->open[task->nr - 1];
	uint32_t mark = mark_at(view, task->nr - 1);
	uint64_t start;

	if (top->mark == mark)
		return false;
	top->mark = mark;
	return s->frame(s->data, mark, &start) != top->frame;
}

static void follow(struct slices *s, struct slices_task *task, const struct track_view *view,
		   uint64_t time, bool selected)
{
	bool known = task->nr, jumped;

	close_from(s, task, view->kept + 1, time);
	jumped = task->nr && has_jumped(s, task, view);
	if (jumped)
		close_from(s, task, task->nr - 1, time);
	if (jumped && !task->nr && view->beyond > task->beyond)
		open_caller(s, task, view, selected);
	else if (jumped && task->nr)
		open_slice(s, task, view, SLICE_JUMP, time, false);
	while (task->nr <= view->nr)
		open_slice(s, task, view,
			   task->nr ? kind_of(&view->frames[task->nr - 1]) : SLICE_BEGIN, time,
			   !known && view->nr);
	task->beyond = view->beyond;
}

/* Events */

static struct slices_cpu *cpu_of(struct slices *s, uint32_t number)
{
	uint32_t cpu = track_cpu_number(number);

	if (cpu >= s->nr_cpus) {
		s->cpus = xrealloc(s->cpus, cpu + 1, sizeof(*s->cpus));
		memset(s->cpus + s->nr_cpus, 0, (cpu + 1 - s->nr_cpus) * sizeof(*s->cpus));
		s->nr_cpus = cpu + 1;
	}
	s->cpus[cpu].number = number;
	return &s->cpus[cpu];
}

/* The selected time begins: shows the slices of all tasks, also those that wait. */
static void begin(struct slices *s)
{
	s->begun = true;
	for (struct slices_task *task = s->tasks; task && s->from; task = task->next)
		show(s, task, s->from);
	for (size_t i = 0; i < s->nr_cpus && s->from; i++) {
		if (s->cpus[i].task)
			show_run(s, &s->cpus[i], s->from);
	}
}

/* It ends. */
static void end(struct slices *s, uint64_t time)
{
	s->ended = true;
	for (size_t i = 0; i < s->nr_cpus; i++)
		hide_run(s, &s->cpus[i], time, true);
	for (struct slices_task *task = s->tasks; task; task = task->next)
		hide(s, task, time);
}

/* Part of the trace is missing: the slices of the task that ran end where the gap begins. */
static void lose(struct slices *s, struct slices_cpu *cpu)
{
	if (!cpu->task)
		return;
	hide_run(s, cpu, cpu->time, true);
	hide(s, cpu->task, cpu->time);
}

/* The time of an event. If it is unknown, or earlier than that of the last event, no time has passed. */
static uint64_t time_of(const struct slices *s, const struct event *ev)
{
	return ev->time <= INT64_MAX && ev->time > s->now ? ev->time : s->now;
}

int slices_before(struct slices *s, const struct event *ev)
{
	struct slices_cpu *cpu = cpu_of(s, ev->cpu);
	struct slices_task *task = cpu->task;
	bool selected = !(ev->outside & OUTSIDE_WHEN);

	s->now = time_of(s, ev);
	if (s->now >= s->from && !s->begun)
		begin(s);
	if (s->now >= s->until && !s->ended)
		end(s, s->until);
	if (ev->branch.kind == BRANCH_BEGIN) {
		lose(s, cpu);
		if (cpu->traced && selected)
			show_gap(s, cpu, s->now);
	} else if (task && selected) {
		show(s, task, cpu->time < s->from ? s->from : cpu->time);
		task->instructions += ev->branch.instructions;
		touch(task, cpu->at, ev->branch.from);
	}
	if (task)
		task->left = s->now;
	cpu->time = s->now;
	cpu->at = ev->branch.to;
	cpu->traced = true;
	return s->failed ? -1 : 0;
}

/* Shows the task that runs on the cpu, and its slices. */
static void show_cpu(struct slices *s, struct slices_cpu *cpu, uint64_t time)
{
	if (cpu->shown != cpu->task)
		hide_run(s, cpu, time, false);
	if (cpu->task)
		show(s, cpu->task, time);
	if (cpu->task && !cpu->shown)
		show_run(s, cpu, time);
}

static void hide_cpu(struct slices *s, struct slices_cpu *cpu, uint64_t time)
{
	hide_run(s, cpu, time, true);
	if (cpu->task)
		hide(s, cpu->task, time);
}

int slices_after(struct slices *s, struct track *track, const struct event *ev)
{
	struct slices_cpu *cpu = cpu_of(s, ev->cpu);
	bool selected = !(ev->outside & OUTSIDE_WHEN);
	struct track_view view;

	cpu->task = NULL;
	if (track_view(track, ev->cpu, &view)) {
		cpu->task = task_of(s, &view, ev);
		cpu->task->cpu = ev->cpu;
		follow(s, cpu->task, &view, s->now, selected);
	}
	if (selected)
		show_cpu(s, cpu, s->now);
	else
		hide_cpu(s, cpu, s->now);
	return s->failed ? -1 : 0;
}

static void free_task(struct slices_task *task)
{
	*task->link = task->next;
	if (task->next)
		task->next->link = task->link;
	footprint_release(&task->footprint);
	free(task->open);
	free(task);
}

void slices_end_task(struct slices *s, void *own)
{
	struct slices_task *task = own;
	uint64_t time = task->left;

	for (size_t i = 0; i < s->nr_cpus; i++) {
		if (s->cpus[i].task == task)
			s->cpus[i].task = NULL;
		if (s->cpus[i].shown == task)
			hide_run(s, &s->cpus[i], s->now, false);
	}
	close_from(s, task, 0, time);
	free_task(task);
}

int slices_finish(struct slices *s)
{
	end(s, s->ended ? s->until : s->now);
	return s->failed ? -1 : 0;
}

void slices_release(struct slices *s)
{
	while (s->tasks)
		free_task(s->tasks);
	free(s->cpus);
	memset(s, 0, sizeof(*s));
}

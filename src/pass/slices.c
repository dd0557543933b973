// SPDX-License-Identifier: GPL-2.0-or-later
#include "pass/slices.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define FIRST_TID 1000 /* readers number processes from 1 on */

struct slice {
	uint64_t since;	      /* when it began */
	uint64_t before;      /* instructions of its task before it */
	uint64_t callees;     /* instructions of what it called */
	uint32_t mark, frame; /* of the code that runs in it */
	enum slice_kind kind;
	bool cut;
};

struct slices_task {
	struct slices_task *next, **link; /* link: what points to it */
	struct slice *open;		  /* from the root */
	size_t nr, cap;
	size_t shown; /* of them, those whose begin was emitted and whose end was not */
	uint64_t instructions;
	uint64_t began, left; /* when it was first seen, and when it last ran */
	size_t beyond;	      /* see struct track_view */
	uint32_t pid, tid, cpu;
	bool announced;
};

struct slices_cpu {
	struct slices_task *task; /* the one that runs; NULL: none */
	uint64_t time;		  /* of its last event */
};

/* What is shown */

static struct event event_of(const struct slices_task *task, uint64_t time)
{
	return (struct event){ .kind = EVENT_SLICE,
			       .time = time,
			       .cpu = task->cpu,
			       .pid = task->pid,
			       .tid = task->tid };
}

static void emit(struct slices *s, const struct slices_task *task, uint64_t time,
		 struct event_slice slice)
{
	struct event ev = event_of(task, time);

	ev.slice = slice;
	if (!s->failed && s->emit(s->data, &ev) < 0)
		s->failed = true;
}

static void announce(struct slices *s, struct slices_task *task, uint64_t time)
{
	struct event ev = event_of(task, time);

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
	emit(s, task, time,
	     (struct event_slice){ .frame = slice->frame, .kind = slice->kind, .cut = slice->cut });
}

/* Shows the slices that are open. */
static void show(struct slices *s, struct slices_task *task, uint64_t time)
{
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

	if (task->shown)
		slice[-1].callees += instructions;
	emit(s, task, time,
	     (struct event_slice){ .frame = slice->frame,
				   .kind = slice->kind,
				   .leave = true,
				   .cut = cut,
				   .since = slice->since,
				   .instructions = instructions,
				   .own = instructions - slice->callees });
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
				      .began = ev->time,
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

	GROW(task->open, task->nr + 1, task->cap);
	task->open[task->nr++] = (struct slice){ .since = time,
						 .mark = mark,
						 .frame = s->frame(s->data, mark),
						 .kind = kind,
						 .cut = cut };
}

/*
 * The task returned to a caller from before the trace, which ran all the time. Slices that begin at the same
 * time could not be nested, so each begins a ns earlier.
 */
static void open_caller(struct slices *s, struct slices_task *task, const struct track_view *view,
			bool selected)
{
	uint64_t time = task->began < view->beyond ? 0 : task->began - view->beyond;

	open_slice(s, task, view, SLICE_BEGIN, time, true);
	if (!selected || task->began < s->from)
		return;
	show_slice(s, task, time);
	task->open[0].before = 0;
	task->open[0].callees = task->instructions;
}

/* Whether another function runs in the innermost slice. */
static bool has_jumped(struct slices *s, struct slices_task *task, const struct track_view *view)
{
	struct slice *top = &task->open[task->nr - 1];
	uint32_t mark = mark_at(view, task->nr - 1);

	if (top->mark == mark)
		return false;
	top->mark = mark;
	return s->frame(s->data, mark) != top->frame;
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
	return &s->cpus[cpu];
}

/* The selected time begins: shows the slices of all tasks, also those that wait. */
static void begin(struct slices *s)
{
	s->begun = true;
	for (struct slices_task *task = s->tasks; task && s->from; task = task->next)
		show(s, task, s->from);
}

/* It ends. */
static void end(struct slices *s, uint64_t time)
{
	s->ended = true;
	for (struct slices_task *task = s->tasks; task; task = task->next)
		hide(s, task, time);
}

int slices_before(struct slices *s, const struct event *ev)
{
	struct slices_cpu *cpu = cpu_of(s, ev->cpu);
	struct slices_task *task = cpu->task;
	bool selected = !(ev->outside & OUTSIDE_WHEN);

	s->now = ev->time;
	if (ev->time >= s->from && !s->begun)
		begin(s);
	if (ev->time >= s->until && !s->ended)
		end(s, s->until);
	if (task && selected) {
		show(s, task, cpu->time < s->from ? s->from : cpu->time);
		task->instructions += ev->branch.instructions;
	}
	if (task)
		task->left = ev->time;
	cpu->time = ev->time;
	return s->failed ? -1 : 0;
}

int slices_after(struct slices *s, struct track *track, const struct event *ev)
{
	struct slices_cpu *cpu = cpu_of(s, ev->cpu);
	bool selected = !(ev->outside & OUTSIDE_WHEN);
	struct track_view view;

	cpu->task = NULL;
	if (!track_view(track, ev->cpu, &view))
		return s->failed ? -1 : 0;
	cpu->task = task_of(s, &view, ev);
	cpu->task->cpu = ev->cpu;
	follow(s, cpu->task, &view, ev->time, selected);
	if (selected)
		show(s, cpu->task, ev->time);
	else
		hide(s, cpu->task, ev->time);
	return s->failed ? -1 : 0;
}

static bool is_running(const struct slices *s, const struct slices_task *task)
{
	for (size_t i = 0; i < s->nr_cpus; i++) {
		if (s->cpus[i].task == task)
			return true;
	}
	return false;
}

static void free_task(struct slices_task *task)
{
	*task->link = task->next;
	if (task->next)
		task->next->link = task->link;
	free(task->open);
	free(task);
}

void slices_end_task(struct slices *s, void *own)
{
	struct slices_task *task = own;
	uint64_t time = is_running(s, task) ? s->now : task->left;

	close_from(s, task, 0, time);
	for (size_t i = 0; i < s->nr_cpus; i++) {
		if (s->cpus[i].task == task)
			s->cpus[i].task = NULL;
	}
	free_task(task);
}

int slices_finish(struct slices *s)
{
	if (!s->ended)
		end(s, s->now);
	return s->failed ? -1 : 0;
}

void slices_release(struct slices *s)
{
	while (s->tasks)
		free_task(s->tasks);
	free(s->cpus);
	memset(s, 0, sizeof(*s));
}

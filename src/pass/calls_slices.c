// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Slices from the tracker's stacks. After each branch, compares the stack of the task that runs with what it
 * was before: calls that are gone have ended, and new ones have begun.
 */
#include "pass/calls.h"

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

/* The call at a depth of the stack. */
static struct slice slice_at(const struct calls *calls, const struct track_view *view, size_t depth,
			     enum slice_kind kind)
{
	struct slice slice = { .time = calls->slices->now,
			       .mark = mark_at(view, depth),
			       .depth = (uint32_t)depth,
			       .kind = kind };

	slice.frame = calls_leaf(calls, slice.mark, &slice.start);
	return slice;
}

/* Ends the calls that are deeper than this. */
static void close_deeper(struct slices *slices, struct slices_task *task, size_t depth)
{
	size_t nr = task->nr;

	while (nr && task->open[nr - 1].depth > depth)
		nr--;
	slices_close(slices, task, nr);
}

/* Whether another function runs in the innermost call. returned: to a caller from before the trace. */
static bool has_jumped(const struct calls *calls, struct slice *top, const struct track_view *view,
		       bool returned)
{
	uint32_t mark = mark_at(view, top->depth), frame;
	uint64_t start;

	if (top->mark == mark)
		return false;
	top->mark = mark;
	frame = calls_leaf(calls, mark, &start);
	if (frame == top->frame)
		return false;
	return returned || !calls->same || !calls->same(calls->data, frame, top->frame);
}

/* The usual case: a jump inside a function. */
static bool is_same(const struct slices_task *task, const struct track_view *view)
{
	size_t nr = calls_slices(task);

	return nr && view->kept == view->nr && task->open[nr - 1].depth == view->nr &&
	       task->open[nr - 1].mark == view->mark;
}

static void follow(struct calls *calls, struct slices_task *task, const struct track_view *view,
		   bool selected)
{
	struct slices *slices = calls->slices;
	bool known = task->nr, jumped;
	size_t nr, depth;

	close_deeper(slices, task, view->kept);
	nr = calls_slices(task);
	depth = nr ? task->open[nr - 1].depth + 1 : 0;
	jumped = nr && has_jumped(calls, &task->open[nr - 1], view, view->beyond > task->beyond);
	if (jumped) {
		slices_close(slices, task, nr - 1);
		depth--;
	}
	/* Slices that begin at the same time could not be nested: each caller begins 1 ns earlier. */
	if (jumped && !depth && view->beyond > task->beyond)
		slices_open_early(slices, task, slice_at(calls, view, depth++, SLICE_BEGIN),
				  view->beyond, selected);
	else if (jumped && depth)
		slices_open(slices, task, slice_at(calls, view, depth++, SLICE_JUMP));
	for (; depth <= view->nr; depth++) {
		enum slice_kind kind = depth ? kind_of(&view->frames[depth - 1]) : SLICE_BEGIN;
		struct slice slice = slice_at(calls, view, depth, kind);

		slice.cut = !known && view->nr;
		slices_open(slices, task, slice);
	}
}

/* Threads with the tid 0 are the idle threads of cpus. */
static bool has_tid(const struct event *ev)
{
	return ev->tid && ev->tid != NO_TASK;
}

/* If the data names the threads. */
static uint32_t tid_of(const struct event *ev)
{
	return has_tid(ev) ? ev->tid : SLICES_SHARED_TID + track_cpu_number(ev->cpu);
}

static struct slices_task *task_of(struct calls *calls, const struct track_view *view,
				   const struct event *ev)
{
	struct slices_task *task = *view->own;

	if (!task) {
		bool thread = ev->branch.by_thread;

		task = slices_task(calls->slices, ev->pid,
				   thread ? tid_of(ev) : SLICES_FIRST_TID + view->id, ev->cpu);
		task->thread = thread;
		task->named = thread && has_tid(ev);
		*view->own = task;
	}
	return task;
}

/* No code has mark 0, so has_jumped() compares functions. */
void calls_forget_marks(struct calls *calls)
{
	for (struct slices_task *task = calls->slices->tasks; task; task = task->next) {
		for (size_t i = 0; i < task->nr; i++)
			task->open[i].mark = 0;
	}
}

/* If there is a task, part of the trace of this thread is missing. */
static void begin_thread(struct slices *slices, const struct event *ev, struct slices_task *task)
{
	if (task)
		slices_lose_thread(slices, task);
	slices_advance(slices, ev->time);
	if (task)
		slices_gap_thread(slices, task);
}

static void begin_cpu(struct slices *slices, const struct event *ev)
{
	slices->knows |= KNOWS_INSTRUCTIONS;
	slices_lose(slices, ev->cpu);
	slices_advance(slices, ev->time);
	slices_gap(slices, ev->cpu);
}

void calls_before_branch(struct calls *calls, const struct event *ev, uint32_t strand)
{
	struct slices_task *task = track_own(&calls->track, strand);
	struct slices *slices = calls->slices;

	if (ev->branch.kind == BRANCH_BEGIN &&
	    (!track_away(&calls->track, strand) || ev->branch.over)) {
		if (ev->branch.by_thread)
			begin_thread(slices, ev, task);
		else
			begin_cpu(slices, ev);
		return;
	}
	slices_advance(slices, ev->time);
	if (calls->inlines)
		calls_run_inlines(calls, ev, strand, task);
	else
		slices_charge(slices, ev->cpu, task,
			      &(struct slices_code){ .from = track_at(&calls->track, strand),
						     .to = ev->branch.from,
						     .instructions = ev->branch.instructions,
						     .cycles = ev->branch.cycles });
}

void calls_after_branch(struct calls *calls, const struct event *ev, uint32_t strand)
{
	bool selected = !(ev->outside & OUTSIDE_WHERE);
	struct slices_task *task = NULL;
	struct track_view view;

	if (track_view(&calls->track, strand, &view)) {
		task = task_of(calls, &view, ev);
		if (!is_same(task, &view))
			follow(calls, task, &view, selected);
		task->beyond = view.beyond;
		if (calls->inlines)
			calls_go_inlines(calls, task, strand);
	}
	if (task || !ev->branch.by_thread)
		slices_run(calls->slices, ev->cpu, task, selected);
	if (ev->branch.kind == BRANCH_END && !ev->branch.by_thread)
		slices_mask(calls->slices, ev->cpu, INTERRUPTS_UNKNOWN, 0, 0, 0);
}

void calls_mask(struct calls *calls, const struct event *ev)
{
	bool rooted, first;
	uint32_t mark =
		track_running(&calls->track, track_strand(&calls->track, ev), &rooted, &first);
	uint64_t start;

	if (!calls->slices)
		return;
	slices_advance(calls->slices, ev->time);
	slices_mask(calls->slices, ev->cpu, ev->mask.interrupts, ev->mask.instructions,
		    mark ? calls_leaf(calls, mark, &start) : 0,
		    ev->mask.interrupts == INTERRUPTS_OFF ? calls_stack(calls, mark) : 0);
}

/* For a thread without a task (not traced yet, or lost): the note goes where a new task would begin. */
static void note_alone(struct slices *slices, const struct event *ev, uint32_t frame)
{
	struct slices_task task = { .first = slices->axis == AXIS_CYCLES ? slices->cycles
									 : slices->instructions,
				    .pid = ev->pid,
				    .tid = tid_of(ev) };
	struct event named = *ev;

	named.tid = task.tid;
	if (!has_tid(ev) && slices->live && !slices->failed &&
	    slices->announce(slices->data, &named, frame) < 0)
		slices->failed = true;
	slices_note(slices, &task, ev, frame);
}

void calls_note(struct calls *calls, const struct event *ev)
{
	const struct event_note *note = &ev->note;
	uint32_t strand = track_find_thread(&calls->track, ev), frame = 0;
	const struct slices_task *task;

	calls->notes[note->kind] += !ev->outside;
	if (!calls->slices)
		return;
	slices_advance(calls->slices, ev->time);
	if (ev->outside)
		return;
	if (note->address && calls->frame)
		frame = calls->frame(calls->data, note->address, note->context, ev->pid, false);
	task = strand == TRACK_NO_STRAND ? NULL : track_own(&calls->track, strand);
	if (task)
		slices_note(calls->slices, task, ev, frame);
	else
		note_alone(calls->slices, ev, frame);
}

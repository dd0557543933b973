// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Slices from the tracker's stacks. After each branch, compares the stack of the task that runs with what it
 * was before: calls that are gone have ended, and new ones have begun.
 */
#include "pass/calls.h"

#define FIRST_TID 1000 /* readers number processes from 1 on */

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
			       .kind = kind };

	slice.frame = calls_leaf(calls, slice.mark, &slice.start);
	return slice;
}

/* Whether another function runs in the innermost slice. */
static bool has_jumped(const struct calls *calls, struct slices_task *task,
		       const struct track_view *view)
{
	struct slice *top = &task->open[task->nr - 1];
	uint32_t mark = mark_at(view, task->nr - 1);
	uint64_t start;

	if (top->mark == mark)
		return false;
	top->mark = mark;
	return calls_leaf(calls, mark, &start) != top->frame;
}

/* Whether the stack is as it was after the last event. Most branches stay in their function. */
static bool is_same(const struct slices_task *task, const struct track_view *view)
{
	return view->kept == view->nr && task->nr == view->nr + 1 && task->beyond == view->beyond &&
	       task->open[view->nr].mark == view->mark;
}

static void follow(struct calls *calls, struct slices_task *task, const struct track_view *view,
		   bool selected)
{
	struct slices *slices = calls->slices;
	bool known = task->nr, jumped;

	slices_close(slices, task, view->kept + 1);
	jumped = task->nr && has_jumped(calls, task, view);
	if (jumped)
		slices_close(slices, task, task->nr - 1);
	/* Slices that begin at the same time could not be nested: each caller begins 1 ns earlier. */
	if (jumped && !task->nr && view->beyond > task->beyond)
		slices_open_early(slices, task, slice_at(calls, view, 0, SLICE_BEGIN), view->beyond,
				  selected);
	else if (jumped && task->nr)
		slices_open(slices, task, slice_at(calls, view, task->nr, SLICE_JUMP));
	while (task->nr <= view->nr) {
		size_t at = task->nr;
		struct slice slice = slice_at(calls, view, at,
					      at ? kind_of(&view->frames[at - 1]) : SLICE_BEGIN);

		slice.cut = !known && view->nr;
		slices_open(slices, task, slice);
	}
	task->beyond = view->beyond;
}

static struct slices_task *task_of(struct calls *calls, const struct track_view *view,
				   const struct event *ev)
{
	if (!*view->own)
		*view->own = slices_task(calls->slices, ev->pid, FIRST_TID + view->id, ev->cpu);
	return *view->own;
}

/* No code has mark 0, so has_jumped() compares functions. */
void calls_forget_marks(struct calls *calls)
{
	for (struct slices_task *task = calls->slices->tasks; task; task = task->next) {
		for (size_t i = 0; i < task->nr; i++)
			task->open[i].mark = 0;
	}
}

void calls_before_branch(struct calls *calls, const struct event *ev)
{
	uint64_t at = track_at(&calls->track, ev->cpu);

	slices_advance(calls->slices, ev->time);
	if (ev->branch.kind != BRANCH_BEGIN)
		slices_charge(calls->slices, ev->cpu, ev->branch.instructions, at, ev->branch.from);
	else
		slices_gap(calls->slices, ev->cpu);
}

void calls_after_branch(struct calls *calls, const struct event *ev)
{
	bool selected = !(ev->outside & OUTSIDE_WHERE);
	struct slices_task *task = NULL;
	struct track_view view;

	if (track_view(&calls->track, ev->cpu, &view)) {
		task = task_of(calls, &view, ev);
		if (!is_same(task, &view))
			follow(calls, task, &view, selected);
	}
	slices_run(calls->slices, ev->cpu, task, selected);
	if (ev->branch.kind == BRANCH_END)
		slices_mask(calls->slices, ev->cpu, INTERRUPTS_UNKNOWN, 0, 0, 0);
}

void calls_mask(struct calls *calls, const struct event *ev)
{
	bool rooted, first;
	uint32_t mark = track_running(&calls->track, ev->cpu, &rooted, &first);
	uint64_t start;

	if (!calls->slices)
		return;
	slices_advance(calls->slices, ev->time);
	slices_mask(calls->slices, ev->cpu, ev->mask.interrupts, ev->mask.instructions,
		    mark ? calls_leaf(calls, mark, &start) : 0,
		    ev->mask.interrupts == INTERRUPTS_OFF ? calls_stack(calls, mark) : 0);
}

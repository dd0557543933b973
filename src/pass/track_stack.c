// SPDX-License-Identifier: GPL-2.0-or-later
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "pass/track_parts.h"

/* Limits for stacks of calls that never return. */
#define MAX_DEPTH 4096
#define MAX_UNSURE 256 /* without a stack pointer, which would show that the calls are not over */

void task_free(struct track_task *task)
{
	if (task)
		free(task->frames);
	free(task);
}

void task_end(struct track *track, struct track_task *task)
{
	if (task && task->own)
		track->ops->ended(track->data, task->own);
	task_free(task);
}

static struct track_task *task_blank(struct track *track)
{
	struct track_task *task = xcalloc(1, sizeof(*task));

	task->id = ++track->last_id;
	task->nr_stacks = 1;
	task->fresh = NOT_FRESH;
	task->doubt = SIZE_MAX;
	track->at->tasks++;
	return task;
}

struct track_task *task_new(struct track *track, const struct event *ev)
{
	struct track_task *task = task_blank(track);

	task->mark = track->ops->root(track->data, ev);
	task->rooted = true;
	task->stacks[0].high = ev->branch.sp;
	task->stacks[0].space = branch_space(&ev->branch);
	return task;
}

static void add_ran(struct track_stack *to, const struct track_stack *from)
{
	to->ran += from->ran;
	to->rooted += from->rooted;
}

void task_use_stack(struct track_task *task, const struct event *ev, uint64_t sp, uint64_t site)
{
	struct track_stack stack = {
		.depth = task->nr, .high = sp, .space = branch_space(&ev->branch), .site = site
	};

	if (task->nr_stacks == TRACK_STACKS) {
		add_ran(&task->stacks[0], &task->stacks[1]);
		memmove(task->stacks + 1, task->stacks + 2,
			(TRACK_STACKS - 2) * sizeof(task->stacks[0]));
		task->nr_stacks--;
	}
	task->stacks[task->nr_stacks++] = stack;
}

void task_end_stacks(struct track_task *task, unsigned first)
{
	for (; task->nr_stacks > first; task->nr_stacks--)
		add_ran(&task->stacks[task->nr_stacks - 2], top_stack(task));
}

void task_doubt_stacks(struct track *track, struct track_task *task, unsigned first)
{
	for (unsigned i = first; i < task->nr_stacks; i++) {
		track->stats.doubtful += task->stacks[i].ran;
		track->stats.rooted -= task->stacks[i].rooted;
		task->stacks[i].ran = task->stacks[i].rooted = 0;
	}
}

void task_pop(struct track_task *task, size_t depth)
{
	task_cut(task, depth);
	task->mark = task->frames[depth].mark;
	/* A return may leave a stack before the code switches back; sp decides when it is over. */
	for (unsigned i = task->nr_stacks; i-- > 0 && task->stacks[i].depth > depth;)
		task->stacks[i].depth = depth;
	if (task->fresh != NOT_FRESH && task->fresh > depth)
		task->fresh = NOT_FRESH;
	if (task->doubt != SIZE_MAX && task->doubt > depth)
		task->doubt = SIZE_MAX;
}

void task_prune_calls(struct track_task *task, uint64_t sp)
{
	size_t nr = task->nr, bottom = top_stack(task)->depth;

	while (nr > bottom && task->frames[nr - 1].kind != TRACK_TRAP &&
	       is_over(&task->frames[nr - 1], sp))
		nr--;
	if (nr < task->nr)
		task_pop(task, nr);
}

void task_forget(struct track *track, struct track_task *task, size_t nr)
{
	task->nr -= nr;
	task->kept = 0;
	memmove(task->frames, task->frames + nr, task->nr * sizeof(*task->frames));
	for (unsigned i = 0; i < task->nr_stacks; i++)
		task->stacks[i].depth -= task->stacks[i].depth < nr ? task->stacks[i].depth : nr;
	task->rooted = false;
	task->fresh = NOT_FRESH;
	task->doubt = SIZE_MAX;
	track->ops->reroot(track->data, task->frames, task->nr, &task->mark);
}

struct track_task *task_split(struct track *track, struct track_task *task, size_t depth,
			      unsigned first_stack)
{
	struct track_task *upper = task_blank(track);

	upper->nr = task->nr - depth;
	GROW(upper->frames, upper->nr, upper->cap);
	if (upper->nr)
		memcpy(upper->frames, task->frames + depth, upper->nr * sizeof(*upper->frames));
	upper->mark = task->mark;
	upper->rooted = true;
	upper->called = true;
	if (task->doubt != SIZE_MAX && task->doubt >= depth)
		upper->doubt = task->doubt - depth;
	upper->nr_stacks = 0;
	for (unsigned i = first_stack; i < task->nr_stacks; i++) {
		upper->stacks[upper->nr_stacks] = task->stacks[i];
		upper->stacks[upper->nr_stacks++].depth -= depth;
	}
	if (!upper->nr_stacks)
		upper->stacks[upper->nr_stacks++] = (struct track_stack){ 0 };
	task->nr_stacks = first_stack;
	if (upper->nr)
		task_pop(task, depth);
	track->ops->reroot(track->data, upper->frames, upper->nr, &upper->mark);
	return upper;
}

void task_push(struct track *track, struct track_strand *strand, const struct event *ev,
	       enum track_kind kind, uint64_t sp)
{
	const struct event_branch *b = &ev->branch;
	struct track_task *task = strand->task;
	size_t max = sp || strand->thread ? MAX_DEPTH : MAX_UNSURE;
	struct track_frame *frame, below;

	if (task->nr >= max)
		task_forget(track, task, task->nr - max / 2);
	task->called = true;
	GROW(task->frames, task->nr + 1, task->cap);
	frame = &task->frames[task->nr++];
	*frame = (struct track_frame){
		.resume = b->next,
		.target = b->to,
		.sp = sp,
		.after = b->kind == BRANCH_CALL && !b->next ? b->from : b->after,
		.context = strand->context,
		.space = strand->space,
		.mark = task->mark,
		.pid = strand->pid,
		.kind = (uint8_t)kind,
		.pushed = b->pushed,
		.guest = strand->guest,
		.interrupt = b->next == b->from,
		.guessed = !b->next,
	};
	if (!b->next) {
		below = *frame;
		below.resume = b->from + (kind != TRACK_TRAP); /* inside the call */
		frame = &below;
	}
	task->mark = track->ops->below(track->data, task->mark, frame, ev);
}

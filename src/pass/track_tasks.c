// SPDX-License-Identifier: GPL-2.0-or-later
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "pass/track_parts.h"

#define MAX_LEFT 4096 /* tasks that are not running */

/* Tasks that are not running. Their stacks do not overlap: see drop_ended(). */

/* The index in `left` after the last stack that begins at (space, sp) or below. */
static size_t left_up_to(const struct track *track, uint64_t space, uint64_t sp)
{
	size_t first = 0, last = track->nr_left;

	while (first < last) {
		size_t middle = (first + last) / 2;
		const struct track_stack *stack = top_stack(track->left[middle]);

		if (stack->space < space || (stack->space == space && stack->low <= sp))
			first = middle + 1;
		else
			last = middle;
	}
	return first;
}

struct track_task *task_at(const struct track *track, uint64_t space, uint64_t sp)
{
	size_t end = left_up_to(track, space, sp);

	return end && stack_has(top_stack(track->left[end - 1]), space, sp) ? track->left[end - 1]
									    : NULL;
}

static void task_insert(struct track *track, struct track_task *task)
{
	size_t at = left_up_to(track, top_stack(task)->space, top_stack(task)->low);

	GROW(track->left, track->nr_left + 1, track->cap_left);
	memmove(track->left + at + 1, track->left + at,
		(track->nr_left++ - at) * sizeof(track->left[0]));
	track->left[at] = task;
	task->older = track->newest;
	task->newer = NULL;
	*(task->older ? &task->older->newer : &track->oldest) = task;
	track->newest = task;
}

void task_take(struct track *track, struct track_task *task)
{
	size_t at = left_up_to(track, top_stack(task)->space, top_stack(task)->low) - 1;

	while (track->left[at] != task) /* stacks at an unknown address */
		at--;
	memmove(track->left + at, track->left + at + 1,
		(--track->nr_left - at) * sizeof(track->left[0]));
	*(task->newer ? &task->newer->older : &track->newest) = task->older;
	*(task->older ? &task->older->newer : &track->oldest) = task->newer;
	task->ended = false;
	task->guest = 0;
}

static void task_drop(struct track *track, struct track_task *task)
{
	task_take(track, task);
	task_end(track, task);
}

static bool overlap(const struct track_stack *a, const struct track_stack *b)
{
	return a->space == b->space && a->low && b->low && a->low <= b->high && b->low <= a->high;
}

/* Two tasks cannot share a stack: a task that was left on this one before has ended. */
static void drop_ended(struct track *track, const struct track_stack *stack)
{
	size_t end = left_up_to(track, stack->space, stack->high);

	while (end && overlap(top_stack(track->left[end - 1]), stack))
		task_drop(track, track->left[--end]);
}

/* A task on another cpu that already uses this stack is doubtful: a trace came late. */
static void doubt_running(struct track *track, const struct track_task *left)
{
	for (size_t i = 0; i < track->nr_cpus; i++) {
		struct track_task *task = track->cpus[i].task;
		struct track_stack used;

		if (!task || i == track->cpu)
			continue;
		used = *top_stack(task);
		used.low = track->cpus[i].sp;
		if (!overlap(&used, &left->stacks[left->nr_stacks - 1]))
			continue;
		task_doubt_stacks(track, task, task->nr_stacks - 1);
		task->doubt = 0;
	}
}

/* Removes stacks without calls, such as that of an interrupt that has ended. */
static void drop_empty_stacks(struct track_task *task)
{
	while (task->nr_stacks > 1 && top_stack(task)->site && top_stack(task)->depth == task->nr)
		task_end_stacks(task, task->nr_stacks - 1);
}

void task_leave(struct track *track, struct track_task *task)
{
	drop_empty_stacks(task);
	drop_ended(track, top_stack(task));
	doubt_running(track, task);
	if (track->nr_left == MAX_LEFT)
		task_drop(track, track->oldest);
	track->at->switches++;
	task->fresh = NOT_FRESH;
	task_insert(track, task);
}

bool task_is_fresh(const struct track_task *task)
{
	return task->fresh == task->nr;
}

/* Sites: addresses of code that has switched tasks. Losing one does no harm. */

static uint64_t *site_at(const struct track *track, uint64_t site)
{
	return &track->sites[site * 0x9e3779b97f4a7c15ull >> 56];
}

void note_site(struct track *track, uint64_t site)
{
	*site_at(track, site) = site;
}

static bool is_switcher(const struct track *track, uint64_t site)
{
	return site && *site_at(track, site) == site;
}

/* Switches of stacks */

/* Finds the task's own stack at sp, below the one in use. Returns nr_stacks if there is none. */
static unsigned own_stack_at(const struct track_task *task, uint64_t space, uint64_t sp)
{
	for (unsigned i = task->nr_stacks - 1; i-- > 0;) {
		if (stack_has(&task->stacks[i], space, sp))
			return i;
	}
	return task->nr_stacks;
}

static void resume_task(struct track *track, struct track_strand *strand, struct track_task *next,
			uint64_t sp)
{
	task_take(track, next);
	task_leave(track, strand->task);
	strand->task = next;
	task_prune(next, sp);
	next->fresh = next->nr;
	next->known = true;
}

/* Whether a jump off this stack leaves a signal handler, or an exception in the kernel. */
static bool leaves_handler(const struct track_task *task, const struct track_stack *stack)
{
	const struct track_frame *trap = stack->depth ? &task->frames[stack->depth - 1] : NULL;

	return !stack->site && trap && trap->kind == TRACK_TRAP &&
	       frame_space(trap) == stack->space;
}

/*
 * The task returns to its stack i. If calls on the stacks above are not over, those stacks belong to
 * another task, and the code there did not run on behalf of this one.
 */
static void back_to_stack(struct track *track, struct track_task *task, unsigned i, uint64_t sp)
{
	size_t depth = task->stacks[i + 1].depth;
	struct track_task *other;

	if (leaves_handler(task, &task->stacks[i + 1])) {
		task_end_stacks(task, i + 1);
		task_pop(task, depth - 1);
	} else if (task->nr == depth) {
		task_end_stacks(task, i + 1);
	} else {
		task_doubt_stacks(track, task, i + 1);
		note_site(track, task->stacks[i + 1].site);
		other = task_split(track, task, depth, i + 1);
		task_leave(track, other);
	}
	task->fresh = NOT_FRESH;
	task_prune(task, sp);
}

/* A stack that nobody uses. Tasks that were left on it have ended. */
static void new_stack(struct track *track, struct track_strand *strand, const struct event *ev,
		      uint64_t sp)
{
	struct track_stack here = { .low = sp, .high = sp, .space = branch_space(&ev->branch) };
	struct track_task *task = strand->task;

	drop_ended(track, &here);
	if (is_switcher(track, ev->branch.from)) {
		task_leave(track, task);
		task = strand->task = task_new(track, ev);
		task->stacks[0].high = sp;
	} else {
		task_use_stack(task, ev, sp, ev->branch.from);
	}
	task->fresh = task->nr;
	task->known = false;
}

void stack_replaced(struct track *track, struct track_strand *strand, const struct event *ev,
		    uint64_t left, uint64_t taken)
{
	uint64_t space = branch_space(&ev->branch);
	struct track_task *task = strand->task;
	struct track_stack *stack = top_stack(task);
	struct track_task *other = task_at(track, space, taken);
	bool exact = other && top_stack(other)->low == taken;
	unsigned own = own_stack_at(task, space, taken);

	/* At a trap's entry, Linux on RISC-V uses the register for other calculations. */
	if (!left || left & 3)
		left = stack->low ? stack->low : stack->high;
	leave_stack(stack, left);
	if (stack_has(stack, space, taken)) {
		task_prune(task, taken); /* a longjmp, or the end of a dynamic array */
	} else if (own < task->nr_stacks && !exact) {
		back_to_stack(track, task, own, taken);
	} else if (other && (exact || !just_entered(task))) {
		note_site(track, ev->branch.from);
		resume_task(track, strand, other, taken);
	} else {
		new_stack(track, strand, ev, taken);
	}
}

void task_start(struct track *track, struct track_strand *strand, const struct event *ev)
{
	struct track_task *old = strand->task;
	uint64_t high = top_stack(old)->high;

	if (old->known) { /* the task that was left here has ended */
		task_end(track, old);
	} else if (old->nr_stacks > 1) {
		note_site(track, top_stack(old)->site);
		task_end_stacks(old, old->nr_stacks - 1);
		task_leave(track, old);
	} else { /* a new task that has only run the code that switches tasks */
		old->mark = track->ops->root(track->data, ev);
		old->fresh = NOT_FRESH;
		return;
	}
	strand->task = task_new(track, ev);
	if (high > top_stack(strand->task)->high)
		top_stack(strand->task)->high = high;
}

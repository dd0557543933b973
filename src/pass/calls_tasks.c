// SPDX-License-Identifier: GPL-2.0-or-later
#include "pass/calls_parts.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define MAX_DEPTH 8192	/* limits stacks of calls that never return */
#define MAX_LEFT 4096	/* tasks that are not running */
#define SAME_STACK 4096 /* bytes: a smaller change of the stack pointer is not a switch */
#define SLACK 1024	/* bytes: maximum that a switch saves on the stack */

void task_free(struct calls_task *task)
{
	if (task)
		free(task->frames);
	free(task);
}

struct calls_task *task_new(struct calls *calls, const struct event *ev)
{
	struct calls_task *task = xcalloc(1, sizeof(*task));

	task->counter = counter_root(calls, ev);
	task->rooted = true;
	calls->at->tasks++;
	return task;
}

struct calls_task *task_take(struct calls *calls, size_t i)
{
	struct calls_task *task = calls->left[i];

	calls->left[i] = calls->left[--calls->nr_left];
	task->ended = false;
	return task;
}

static void evict_oldest(struct calls *calls)
{
	size_t oldest = 0;

	for (size_t i = 1; i < calls->nr_left; i++) {
		if (calls->left[i]->used < calls->left[oldest]->used)
			oldest = i;
	}
	task_free(task_take(calls, oldest));
}

/* Two tasks cannot share a stack: tasks that were left there before have ended. */
static void drop_ended(struct calls *calls, uint64_t sp)
{
	for (size_t i = calls->nr_left; sp && i-- > 0;) {
		if (calls->left[i]->sp && distance(calls->left[i]->sp, sp) <= SLACK / 2)
			task_free(task_take(calls, i));
	}
}

void task_leave(struct calls *calls, struct calls_task *task, uint64_t sp)
{
	drop_ended(calls, sp);
	if (calls->nr_left == MAX_LEFT)
		evict_oldest(calls);
	task->sp = sp;
	calls->at->switches++;
	task->used = ++calls->nr_switches;
	GROW(calls->left, calls->nr_left + 1, calls->cap_left);
	calls->left[calls->nr_left++] = task;
}

static void add_mark(struct calls_task *task, uint64_t sp, bool resumed)
{
	if (task->nr_marks == CALLS_MARKS) {
		memmove(task->marks, task->marks + 1, (CALLS_MARKS - 1) * sizeof(task->marks[0]));
		task->nr_marks--;
	}
	task->marks[task->nr_marks++] = (struct calls_mark){ task->nr, sp, resumed };
}

/* Removes the marks of frames that were popped. */
static void drop_marks(struct calls_task *task)
{
	while (task->nr_marks && task->marks[task->nr_marks - 1].depth > task->nr)
		task->nr_marks--;
}

bool task_at_mark(const struct calls_task *task)
{
	return task->nr_marks && task->marks[task->nr_marks - 1].depth == task->nr;
}

/* Finds the task that was left nearest to sp. Returns nr_left if none is within SLACK. */
static size_t nearest_task(const struct calls *calls, uint64_t sp, uint64_t *best)
{
	size_t found = calls->nr_left;

	*best = SLACK + 1;
	for (size_t i = 0; i < calls->nr_left; i++) {
		const struct calls_task *task = calls->left[i];
		uint64_t away = distance(task->sp, sp);

		if (task->sp && away < *best) {
			*best = away;
			found = i;
		}
	}
	return found;
}

static void resume_task(struct calls *calls, struct calls_cpu *cpu, size_t i)
{
	struct calls_task *next = task_take(calls, i);

	task_leave(calls, cpu->task, cpu->sp);
	cpu->task = next;
	next->nr_marks = 0;
	add_mark(next, 0, true);
}

/* Finds the mark where the task left a stack near sp. Returns nr_marks if there is none. */
static unsigned nearest_mark(const struct calls_task *task, uint64_t sp, uint64_t *best)
{
	unsigned found = task->nr_marks;

	*best = SLACK + 1;
	for (unsigned i = task->nr_marks; i-- > 0;) {
		uint64_t away = distance(task->marks[i].sp, sp);

		if (!task->marks[i].resumed && away < *best) {
			*best = away;
			found = i;
		}
	}
	return found;
}

bool task_switch(struct calls *calls, struct calls_cpu *cpu, uint64_t sp)
{
	struct calls_task *task = cpu->task;
	uint64_t step = distance(sp, cpu->sp), to_task, to_mark;
	unsigned mark = nearest_mark(task, sp, &to_mark);
	size_t other = nearest_task(calls, sp, &to_task);

	if (step < SAME_STACK && step <= to_task)
		return false;
	if (mark < task->nr_marks && to_mark <= to_task) {
		task->nr_marks = mark; /* returned from an interrupt stack */
		return false;
	}
	if (other < calls->nr_left && !cpu->entered) {
		resume_task(calls, cpu, other);
		return true;
	}
	if (step < SAME_STACK)
		return false;
	add_mark(task, cpu->sp, false);
	return true;
}

void task_start(struct calls *calls, struct calls_cpu *cpu, const struct event *ev)
{
	const struct calls_mark *mark = &cpu->task->marks[cpu->task->nr_marks - 1];
	struct calls_task *old = cpu->task;
	uint64_t sp = mark->sp;

	if (mark->resumed) { /* the task that was left here has ended */
		task_free(old);
	} else {
		old->nr_marks--;
		task_leave(calls, old, sp);
	}
	cpu->task = task_new(calls, ev);
}

void task_pop(struct calls_task *task, size_t depth)
{
	task->nr = depth;
	task->counter = task->frames[depth].counter;
	drop_marks(task);
}

/* The same leaf on another path. */
static uint32_t moved(struct calls *calls, uint32_t counter, uint32_t path)
{
	struct calls_counter want = calls->counters[counter];

	want.path = path;
	return counter_at(calls, &want);
}

/* The stack is too deep: keeps the newest half, as if the task began there. */
static void forget_half(struct calls *calls, struct calls_task *task)
{
	uint32_t path = calls->counters[task->frames[0].counter].path;

	task->nr -= MAX_DEPTH / 2;
	memmove(task->frames, task->frames + MAX_DEPTH / 2, task->nr * sizeof(*task->frames));
	task->nr_marks = 0;
	task->rooted = false;
	for (size_t i = 0; i < task->nr; i++) {
		uint32_t below = i + 1 < task->nr ? task->frames[i + 1].counter : task->counter;
		struct calls_path next = calls->paths[calls->counters[below].path];

		next.parent = path;
		task->frames[i].counter = moved(calls, task->frames[i].counter, path);
		path = path_at(calls, &next);
	}
	task->counter = moved(calls, task->counter, path);
}

void task_push(struct calls *calls, struct calls_cpu *cpu, const struct event *ev,
	       enum calls_kind kind)
{
	const struct event_branch *b = &ev->branch;
	struct calls_task *task = cpu->task;
	struct calls_frame frame = { b->next, b->to, cpu->context, task->counter, cpu->pid, kind };
	struct calls_frame caller = frame;

	if (task->nr == MAX_DEPTH) {
		forget_half(calls, task);
		frame.counter = task->counter;
	}
	task->called = true;
	GROW(task->frames, task->nr + 1, task->cap);
	task->frames[task->nr++] = frame;
	caller.resume = b->next ? b->next : b->from;
	task->counter = counter_below(calls, task->counter, &caller, ev);
}

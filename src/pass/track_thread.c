// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Threads that the data names. Each is one task, so nothing has to be found out about tasks, and a trace of them
 * has no stack pointers: calls and returns match by their addresses.
 */
#include "base/mem.h"
#include "pass/track_parts.h"
#include "pass/track_rules.h"

#define NO_KEY UINT64_MAX /* of a strand that no thread has */

/* Strands */

static uint32_t new_thread(struct track *track, uint64_t key)
{
	uint32_t thread = track->free_thread;

	if (thread == TRACK_NO_STRAND) {
		GROW(track->threads, track->nr_threads + 1, track->cap_threads);
		thread = (uint32_t)track->nr_threads++;
	} else {
		track->free_thread = track->threads[thread].next_free;
	}
	track->threads[thread] = (struct track_strand){ .thread = true, .key = key };
	return thread;
}

uint32_t track_thread(struct track *track, const struct event *ev)
{
	uint64_t key = thread_key(ev);
	uint32_t *at = hash_at(&track->thread_by_key, (struct hash_key){ key, 0 });

	/* The strand of a thread that has ended may belong to another one by now. */
	if (!*at || track->threads[*at - 1].key != key)
		*at = new_thread(track, key) + 1;
	track->last_thread = *at - 1;
	return TRACK_FIRST_THREAD + track->last_thread;
}

uint32_t track_find_thread(const struct track *track, const struct event *ev)
{
	uint64_t key = thread_key(ev);
	uint32_t at = hash_get(&track->thread_by_key, (struct hash_key){ key, 0 });

	return at && track->threads[at - 1].key == key ? TRACK_FIRST_THREAD + at - 1
						       : TRACK_NO_STRAND;
}

void thread_free(struct track *track, uint32_t strand)
{
	uint32_t thread = strand - TRACK_FIRST_THREAD;

	track->threads[thread].key = NO_KEY;
	track->threads[thread].next_free = track->free_thread;
	track->free_thread = thread;
	if (track->last_thread == thread)
		track->last_thread = TRACK_NO_STRAND;
}

/* Code that is not called */

static bool is_start(const struct track *track, const struct event *ev)
{
	return track_function(track, ev, ev->branch.to) == ev->branch.to;
}

/*
 * Finds the caller that handles an exception in a part of its code that the compiler has moved away. `from` is the
 * code before: if that is the same function, it is not an exception.
 */
static size_t find_whole(const struct track *track, const struct track_task *task, uint32_t from,
			 const struct event *ev)
{
	uint32_t whole = track->ops->whole(track->data, ev);
	size_t i = task->nr;

	if (!whole || track->ops->name(track->data, from) == whole)
		return task->nr;
	while (i-- > 0) {
		if (track->ops->name(track->data, task->frames[i].mark) == whole)
			return i;
	}
	return task->nr;
}

/*
 * Finds the caller to which longjmp() or an exception of C++ leads: the innermost one that is in the function of
 * this place. Returns task->nr if there is none: a jump to the start of a function is a tail call, even if the
 * function is also a caller, and a jump to the function that was called last comes from a part of it that the
 * compiler has moved away.
 */
static size_t find_caller(const struct track *track, const struct track_task *task, uint32_t from,
			  const struct event *ev)
{
	uint64_t start = track->ops->target(track->data, ev);
	size_t i = task->nr;

	if (start == ev->branch.to || (i && task->frames[i - 1].target == start))
		return task->nr;
	while (i-- > 0) {
		if (task->frames[i].context == ev->branch.context &&
		    track->ops->start(track->data, task->frames[i].mark) == start)
			return i;
	}
	return find_whole(track, task, from, ev);
}

/* Goes on in another function, which may be that of a caller. from: the mark of the code before. */
static bool goes_to_caller(struct track *track, struct track_task *task, uint32_t from,
			   const struct event *ev)
{
	size_t frame = find_caller(track, task, from, ev);

	if (frame == task->nr)
		return false;
	task_pop(task, frame);
	task_go(track, task, ev);
	return true;
}

void thread_jump(struct track *track, struct track_strand *strand, const struct event *ev)
{
	struct track_task *task = strand->task;
	uint32_t mark = task->mark;
	struct track_frame *top;

	task_go(track, task, ev);
	if (task->mark == mark || (!ev->branch.direct && goes_to_caller(track, task, mark, ev)))
		return;
	top = top_frame(task);
	if (top && track->ops->target(track->data, ev) == ev->branch.to)
		top->target = ev->branch.to;
}

/* All calls are over: their callers are from before the trace. */
static void go_beyond(struct track *track, struct track_task *task, const struct event *ev)
{
	if (task->nr)
		task_pop(task, 0);
	track->at->beyond++;
	task->beyond++;
	task->rooted = false;
	task_go(track, task, ev);
}

void thread_return(struct track *track, struct track_strand *strand, const struct event *ev)
{
	struct track_task *task = strand->task;
	bool ends_handler = just_entered(task) && ev->branch.context == IP_USER;

	if (jump_by_rule(strand, ev) || ends_handler || is_start(track, ev)) {
		track->at->returns--;
		track->at->jumps++;
		thread_jump(track, strand, ev);
	} else if (goes_to_caller(track, task, task->mark, ev)) {
		track->at->found++;
	} else {
		track->at->returns--;
		go_beyond(track, task, ev);
	}
}

/* Exceptions, and code that is not traced */

/* An instruction whose system call is made again, after a signal handler or at once. */
static size_t find_restart(const struct track_task *task, const struct event *ev)
{
	for (size_t i = task->nr; i-- > 0;) {
		const struct track_frame *frame = &task->frames[i];

		if (frame->kind == TRACK_TRAP && frame->context == ev->branch.context &&
		    ev->branch.to < frame->resume && frame->resume - ev->branch.to <= RULE_RESTART)
			return i;
	}
	return task->nr;
}

/* A signal handler that has returned may have changed where the interrupted function goes on. */
static size_t find_interrupted(const struct track *track, const struct track_task *task,
			       const struct event *ev)
{
	uint64_t start = track->ops->target(track->data, ev);

	if (start == ev->branch.to)
		return task->nr;
	for (size_t i = task->nr; i-- > 0;) {
		const struct track_frame *frame = &task->frames[i];

		if (frame->kind == TRACK_TRAP && frame->context == ev->branch.context &&
		    track->ops->start(track->data, frame->mark) == start)
			return i;
	}
	return task->nr;
}

void thread_leave(struct track *track, struct track_strand *strand, const struct event *ev)
{
	struct track_task *task = strand->task;
	size_t restart = find_restart(task, ev), trap = trap_in(task, ev->branch.context);
	size_t interrupted = find_interrupted(track, task, ev);

	if (restart < task->nr)
		end_trap(track, strand, restart, ev);
	else if (interrupted < task->nr)
		end_trap(track, strand, interrupted, ev);
	else if (trap < task->nr && task->frames[trap].context == IP_USER)
		call_handler(track, strand, trap, ev);
	else
		go_beyond(track, task, ev);
}

/* Finds the frame that is resumed here. Returns task->nr if there is none. */
static size_t find_resumed(const struct track_task *task, uint64_t to)
{
	size_t i = task->nr;

	while (i-- > 0) {
		if (task->frames[i].resume == to)
			return i;
	}
	return task->nr;
}

/* Whether the thread may go on anywhere after this, except in a signal handler. */
static bool is_open(const struct track *track, const struct track_frame *frame,
		    const struct event *ev)
{
	return !frame->resume &&
	       (frame->kind != TRACK_TRAP || frame->interrupt || !is_start(track, ev));
}

/* The thread comes back from code that is not traced. */
static void come_back(struct track *track, struct track_strand *strand, const struct event *ev)
{
	struct track_task *task = strand->task;
	const struct track_frame *top = top_frame(task);
	size_t frame = find_resumed(task, ev->branch.to);

	track->at->leaves += ev->branch.kind == BRANCH_LEAVE;
	if (frame < task->nr) {
		track->at->leaves_found += task->frames[frame].kind == TRACK_TRAP;
		task_pop(task, frame);
	} else if (top && is_open(track, top, ev)) {
		task_pop(task, task->nr - 1);
		thread_jump(track, strand, ev);
	} else if (top && top->kind == TRACK_TRAP) {
		thread_leave(track, strand, ev);
	} else if (top && is_start(track, ev)) { /* called by what was called */
		task_push(track, strand, ev, TRACK_CALL, 0);
	} else {
		thread_jump(track, strand, ev);
	}
}

/* The trace pauses, at some point after the last branch. */
static void push_pause(struct track *track, struct track_strand *strand, const struct event *away)
{
	task_push(track, strand, away, TRACK_TRAP, 0);
	top_frame(strand->task)->interrupt = true;
}

/* Only the part of a program that is traced has returned. */
static void return_away(struct track *track, struct track_strand *strand, const struct event *away)
{
	struct track_task *task = strand->task;
	struct event to = *away;

	if (!task->nr || just_entered(task)) {
		task_go(track, task, away);
		return;
	}
	to.branch.next = top_frame(task)->resume;
	task_pop(task, task->nr - 1);
	if (track->ops->start(track->data, task->mark)) /* the caller is traced */
		push_pause(track, strand, &to);
}

/* The thread goes on in code that is not traced. */
static void go_away(struct track *track, struct track_strand *strand, const struct event *ev)
{
	struct track_task *task = strand->task;
	size_t user = trap_in(task, IP_USER);
	struct event away = *ev;

	away.branch.to = 0;
	away.branch.context = 0; /* of unknown code */
	switch (ev->branch.kind) {
	case BRANCH_CALL: task_push(track, strand, &away, TRACK_CALL, 0); break;
	case BRANCH_JUMP: task_go(track, task, &away); break;
	case BRANCH_RETURN: return_away(track, strand, &away); break;
	case BRANCH_LEAVE:
		if (task->nr)
			task_pop(task, user < task->nr ? user : 0);
		task_go(track, task, &away);
		break;
	default: push_pause(track, strand, &away); break;
	}
}

bool thread_branch(struct track *track, struct track_strand *strand, const struct event *ev)
{
	const struct event_branch *b = &ev->branch;
	bool away = !b->to || b->kind == BRANCH_END;

	if (b->over)
		return false;
	if (strand->away) {
		if (!away)
			come_back(track, strand, ev);
	} else if (b->kind == BRANCH_ENTER) {
		track->at->traps++;
		task_push(track, strand, ev, TRACK_TRAP, 0);
	} else if (away) {
		go_away(track, strand, ev);
	} else {
		return false;
	}
	strand->away = away;
	return true;
}

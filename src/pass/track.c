// SPDX-License-Identifier: GPL-2.0-or-later
#include "pass/track.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "pass/track_parts.h"
#include "pass/track_rules.h"

#define MIN_LOST 16 /* returns that show that RULE_LOST applies */

void track_init(struct track *track, const struct track_ops *ops, void *data)
{
	memset(track, 0, sizeof(*track));
	track->ops = ops;
	track->data = data;
	track->at = &track->stats;
	track->last_thread = track->free_thread = TRACK_NO_STRAND;
	track->forks = xcalloc(TRACK_FORKS, sizeof(*track->forks));
	track->sites = xcalloc(TRACK_SITES, sizeof(*track->sites));
}

void track_release(struct track *track)
{
	for (size_t i = 0; i < track->nr_cpus; i++)
		task_free(track->cpus[i].task);
	for (size_t i = 0; i < track->nr_threads; i++)
		task_free(track->threads[i].task);
	for (size_t i = 0; i < track->nr_left; i++)
		task_free(track->left[i]);
	for (size_t i = 0; track->forks && i < TRACK_FORKS; i++)
		free(track->forks[i].frames);
	free(track->forks);
	free(track->sites);
	free(track->cpus);
	free(track->threads);
	hash_release(&track->thread_by_key);
	free(track->left);
	memset(track, 0, sizeof(*track));
}

uint64_t track_function(const struct track *track, const struct event *ev, uint64_t address)
{
	return track->ops->function(track->data, address, ev->branch.context, ev->pid);
}

bool is_in_caller(const struct track *track, struct track_task *task, const struct event *ev)
{
	return track_function(track, ev, ev->branch.to) ==
	       track_function(track, ev, top_frame(task)->resume - 1);
}

/* Calls */

static bool is_near(const struct track *track, const struct event *ev)
{
	const struct event_branch *b = &ev->branch;

	if (b->to < b->next || b->to - b->next > RULE_NEAR)
		return false;
	return track_function(track, ev, b->to) != b->to;
}

static void on_call(struct track *track, struct track_strand *strand, const struct event *ev)
{
	const struct event_branch *b = &ev->branch;
	struct track_task *task = strand->task;
	const struct track_frame *top;
	uint64_t sp = strand->sp ? strand->sp + b->pushed : 0;
	bool near;

	track->pushed = b->pushed;
	task_prune(task, sp);
	top = top_frame(task);
	near = !sp && is_near(track, ev);
	/* One of a series of calls that only fill the cpu's return predictor. */
	if (near && top && top->kind == TRACK_NEAR && distance(top->target, b->from) < RULE_NEAR)
		task_pop(task, task->nr - 1);
	task_push(track, strand, ev, near ? TRACK_NEAR : TRACK_CALL, sp);
	if (near)
		strand->since_near = 0;
}

/* Returns */

/* Whether the return address of a call is unknown, and may be this one. */
static bool is_before(const struct track_frame *frame, uint64_t to)
{
	return !frame->resume && frame->after && to - frame->after - 1 < RULE_CALL;
}

/* Finds the frame of the call that returns to `to` at sp. Returns task->nr if there is none. */
static size_t find_call(struct track_task *task, uint64_t to, uint64_t sp)
{
	size_t bottom = top_stack(task)->depth, found = task->nr;

	for (size_t i = task->nr; i-- > 0;) {
		const struct track_frame *frame = &task->frames[i];
		bool known = sp && frame->sp;

		if (frame->kind == TRACK_TRAP)
			break;
		if (frame->resume != to && !is_before(frame, to))
			continue;
		if (!known || frame->sp == sp)
			return i;
		/* Callees may remove arguments; entry code copies its return address to another stack. */
		if (found == task->nr && (i >= bottom || i + 1 == task->nr))
			found = i;
	}
	return found;
}

/* A retpoline calls the code right after it, which replaces its return address and returns. */
static bool is_retpoline(const struct track_strand *strand)
{
	const struct track_frame *top = top_frame(strand->task);

	return top && top->kind == TRACK_NEAR && strand->since_near <= RULE_RETPOLINE;
}

/* If a function only extended its stack, by a dynamic array, the extension ends with its return. */
static void drop_extension(struct track_task *task, const struct track_strand *strand)
{
	while (task->nr_stacks > 1 && top_stack(task)->site && top_stack(task)->depth == task->nr &&
	       stack_has(top_stack(task) - 1, top_stack(task)->space, strand->sp)) {
		task_end_stacks(task, task->nr_stacks - 1);
		task->fresh = NOT_FRESH;
	}
}

static void return_to(struct track *track, struct track_strand *strand, size_t frame)
{
	struct track_task *task = strand->task;

	track->at->found++;
	if (!strand->sp)
		strand->sp = task->frames[frame].sp;
	task_pop(task, frame);
	drop_extension(task, strand);
}

bool jump_by_rule(struct track_strand *strand, const struct event *ev)
{
	const struct event_branch *b = &ev->branch;
	struct track_task *task = strand->task;

	if (is_retpoline(strand)) {
		task_pop(task, task->nr - 1);
		return true;
	}
	return b->to > b->from && b->to - b->from <= RULE_ONWARD;
}

/* Drops the calls since the last exception: their callers are no longer known. */
static void forget_callers(struct track *track, struct track_task *task)
{
	size_t nr = above_trap(task);

	if (!nr) {
		task_forget(track, task, task->nr);
		return;
	}
	task->rooted = false;
	if (nr < task->nr)
		task_pop(task, nr);
}

/* Without a return address on the stack, a function returns at the sp of its caller. */
static bool returns_to_caller(struct track_task *task, uint64_t sp)
{
	const struct track_frame *top = top_frame(task);

	return sp && task->nr > top_stack(task)->depth && top->kind != TRACK_TRAP && !top->pushed &&
	       top->sp == sp;
}

/* Whether a resumed task continues elsewhere in the caller: after its setjmp(). */
static bool jumps_back(const struct track *track, const struct track_strand *strand,
		       const struct event *ev)
{
	struct track_task *task = strand->task;

	return task->known && returns_to_caller(task, strand->sp) && is_in_caller(track, task, ev);
}

/* Code pushed the return address only to jump there: sp is where it was before. */
static bool returns_by_jump(const struct track *track, const struct track_strand *strand)
{
	return track->pushed && strand->sp && !strand->rose;
}

static void return_elsewhere(struct track *track, struct track_strand *strand,
			     const struct event *ev)
{
	struct track_task *task = strand->task;
	bool bare = !task->nr;

	track->at->returns--;
	if (strand->sp) {
		task_prune(task, strand->sp);
		if (returns_to_caller(task, strand->sp))
			task_pop(task, task->nr - 1);
	}
	if (bare && !returns_by_jump(track, strand)) {
		track->at->beyond++;
		task->beyond++;
		/* Without calls, it may have been a jump. */
		task->rooted &= !task->met || (!task->called && !strand->rose);
	} else if (strand->sp || jump_by_rule(strand, ev) ||
		   (top_frame(task)->kind == TRACK_TRAP && ev->branch.context == IP_USER)) {
		track->at->jumps++; /* the last case: the end of a signal handler */
	} else {
		track->at->returns++;
		forget_callers(track, task);
		strand->lost++;
		strand->flat =
			strand->lost > MIN_LOST && strand->lost > strand->returns / RULE_LOST;
	}
	task_go(track, task, ev);
}

static void on_return(struct track *track, struct track_strand *strand, const struct event *ev)
{
	struct track_task *task = strand->task;
	size_t frame = find_call(task, ev->branch.to, strand->sp);

	track->at->returns++;
	strand->returns++;
	if (frame < task->nr) {
		return_to(track, strand, frame);
		return;
	}
	while (!strand->sp && !is_retpoline(strand) && task->nr &&
	       top_frame(task)->kind == TRACK_NEAR)
		task_pop(task, task->nr - 1); /* it was not a real call */
	if (strand->thread) {
		thread_return(track, strand, ev);
		return;
	}
	if (task_is_fresh(task) && !jumps_back(track, strand, ev)) {
		track->at->returns--;
		task_start(track, strand, ev);
		return;
	}
	return_elsewhere(track, strand, ev);
}

/* Jumps */

/* Whether code jumps to another function on a new stack: nothing called that function. */
static bool begins_task(const struct track *track, struct track_task *task, const struct event *ev)
{
	if (!ev->branch.taken || !task_is_fresh(task) || task->known || task->nr_stacks == 1 ||
	    just_entered(task))
		return false;
	return track_function(track, ev, ev->branch.to) !=
	       track_function(track, ev, ev->branch.from);
}

/* Whether longjmp() ends with a jump, into the caller of the last call that is not over. */
static bool jumps_to_caller(const struct track *track, const struct track_strand *strand,
			    const struct event *ev)
{
	uint64_t to;

	if (!ev->branch.taken || !returns_to_caller(strand->task, strand->sp))
		return false;
	to = track_function(track, ev, ev->branch.to);
	return to != track_function(track, ev, ev->branch.from) &&
	       to == track_function(track, ev, top_frame(strand->task)->resume - 1);
}

static void on_jump(struct track *track, struct track_strand *strand, const struct event *ev)
{
	if (begins_task(track, strand->task, ev)) {
		task_start(track, strand, ev);
		return;
	}
	task_prune(strand->task, strand->sp);
	if (jumps_to_caller(track, strand, ev))
		task_pop(strand->task, strand->task->nr - 1);
	task_go(track, strand->task, ev);
}

/* Begin and end */

/* Finds the task of this process whose trace ended in user code. Returns NULL if there is none. */
static struct track_task *find_ended(const struct track *track, const struct event *ev)
{
	struct track_task *task = ev->branch.context == IP_USER ? track->newest : NULL;

	while (task && !(task->ended && task->pid == ev->pid))
		task = task->older;
	return task;
}

static void on_begin(struct track *track, struct track_strand *strand, const struct event *ev)
{
	struct track_task *ended = find_ended(track, ev);

	if (!ended) {
		strand->task = task_new(track, ev);
		strand->task->met = strand->task->first = true;
		strand->firmware = ev->branch.context == IP_KERNEL &&
				   !track->ops->kernel(track->data, ev->branch.to);
		return;
	}
	task_take(track, ended);
	strand->task = ended;
	task_prune(strand->task, ev->branch.sp);
	task_go(track, strand->task, ev);
}

static void begin(struct track *track, struct track_strand *strand, const struct event *ev)
{
	if (strand->thread) {
		strand->task = task_new(track, ev);
		strand->task->met = strand->task->first = true;
		strand->away = !ev->branch.to;
		strand->pid = ev->pid;
		return;
	}
	on_begin(track, strand, ev);
	strand->sp = ev->branch.sp;
	strand->guest = ev->branch.guest;
}

static void on_end(struct track *track, struct track_strand *strand, const struct event *ev)
{
	if (ev->branch.over) {
		task_end(track, strand->task);
		strand->task = NULL;
		return;
	}
	strand->task->ended = strand->context == IP_USER;
	strand->task->pid = strand->pid;
	leave_stack(top_stack(strand->task), strand->sp);
	task_leave(track, strand->task);
	strand->task = NULL;
}

static struct track_strand *cpu_of(struct track *track, uint32_t cpu)
{
	track->cpu = cpu;
	if (cpu >= track->nr_cpus) {
		track->cpus = xrealloc(track->cpus, cpu + 1, sizeof(*track->cpus));
		memset(track->cpus + track->nr_cpus, 0,
		       (cpu + 1 - track->nr_cpus) * sizeof(*track->cpus));
		track->nr_cpus = cpu + 1;
	}
	return &track->cpus[cpu];
}

static inline void charge(struct track *track, struct track_task *task, uint64_t instructions)
{
	struct track_stack *stack = top_stack(task);

	track->at->instructions += instructions;
	if (track->at == &track->unselected)
		return;
	track->ops->run(track->data, task->mark, instructions);
	if (task->doubt != SIZE_MAX) {
		track->stats.doubtful += instructions;
		return;
	}
	stack->ran += instructions;
	if (task->rooted) {
		stack->rooted += instructions;
		track->stats.rooted += instructions;
	}
}

static void set_sp(struct track_strand *strand, uint64_t sp, bool same_stack)
{
	struct track_stack *stack = top_stack(strand->task);

	strand->sp = sp;
	strand->rose = same_stack && sp > stack->high;
	if (strand->rose)
		stack->high = sp;
}

/* Finds the stack pointer at the event's target, and compares it with what is known. */
static void follow_sp(struct track *track, struct track_strand *strand,
		      const struct event_branch *b)
{
	uint64_t sp = moved_sp(strand, b);
	bool same = b->kind != BRANCH_ENTER && b->kind != BRANCH_LEAVE && !b->taken;

	if (b->sp && sp && same && sp != b->sp) {
		track->at->strayed++;
		strand->task->doubt = strand->task->nr;
	}
	set_sp(strand, b->sp ? b->sp : sp, same);
}

/* Firmware hands over to the kernel, and does not wait for it to return. */
static bool is_hand_over(const struct track *track, const struct track_strand *strand,
			 const struct event *ev)
{
	return strand->firmware && ev->branch.context == IP_KERNEL &&
	       track->ops->kernel(track->data, ev->branch.to);
}

static void start_kernel(struct track *track, struct track_strand *strand, const struct event *ev)
{
	task_end(track, strand->task);
	strand->task = task_new(track, ev);
	strand->task->first = true;
	strand->sp = ev->branch.sp;
	strand->firmware = false;
}

/* Callers cannot be known: keeps only the code that runs. */
static void flat_step(struct track *track, struct track_strand *strand, const struct event *ev)
{
	if (strand->task->nr)
		task_forget(track, strand->task, strand->task->nr);
	strand->task->rooted = false;
	task_go(track, strand->task, ev);
	strand->sp = 0;
}

/* There are neither stack pointers nor firmware. */
static void on_thread_branch(struct track *track, struct track_strand *strand,
			     const struct event *ev)
{
	if (strand->away || !ev->branch.to || ev->branch.kind > BRANCH_RETURN) {
		if (thread_branch(track, strand, ev))
			return;
	}
	switch (ev->branch.kind) {
	case BRANCH_JUMP: thread_jump(track, strand, ev); break;
	case BRANCH_CALL: on_call(track, strand, ev); break;
	case BRANCH_RETURN: on_return(track, strand, ev); break;
	case BRANCH_LEAVE: on_leave(track, strand, ev); break;
	case BRANCH_END: on_end(track, strand, ev); break;
	default: break;
	}
}

static void on_cpu_branch(struct track *track, struct track_strand *strand, const struct event *ev)
{
	const struct event_branch *b = &ev->branch;

	/* A fast path for most branches: does what the code below would do. */
	if (b->kind == BRANCH_JUMP && !b->sp && !b->taken && !strand->firmware && !strand->flat) {
		set_sp(strand, moved_sp(strand, b), true);
		task_prune(strand->task, strand->sp);
		task_go(track, strand->task, ev);
		return;
	}
	if (b->kind != BRANCH_END && is_hand_over(track, strand, ev)) {
		start_kernel(track, strand, ev);
		return;
	}
	if (b->sp) {
		strand->returns = strand->lost = 0;
		strand->flat = false;
	}
	if (strand->flat && b->kind != BRANCH_END) {
		flat_step(track, strand, ev);
		return;
	}
	if (b->kind == BRANCH_ENTER) {
		on_enter(track, strand, ev);
		return;
	}
	if (b->taken && b->kind != BRANCH_LEAVE)
		stack_replaced(track, strand, ev, b->left, b->taken);
	follow_sp(track, strand, b);
	switch (b->kind) {
	case BRANCH_JUMP: on_jump(track, strand, ev); break;
	case BRANCH_CALL: on_call(track, strand, ev); break;
	case BRANCH_RETURN: on_return(track, strand, ev); break;
	case BRANCH_LEAVE: on_leave(track, strand, ev); break;
	case BRANCH_END: on_end(track, strand, ev); break;
	default: break;
	}
}

/* Where the strand is after the event. */
static inline void note_place(struct track_strand *strand, const struct event *ev)
{
	strand->at = ev->branch.to;
	strand->context = ev->branch.context;
	strand->space = ev->branch.space;
	if (ev->branch.context == IP_USER || !strand->pid)
		strand->pid = ev->pid;
}

static inline void run_task(struct track *track, struct track_strand *strand, uint64_t instructions)
{
	charge(track, strand->task, instructions);
	strand->since_near += instructions;
}

/* Begins a task. If there is one already, part of its trace is missing. */
static void begin_anew(struct track *track, struct track_strand *strand, const struct event *ev)
{
	if (ev->branch.kind == BRANCH_BEGIN)
		task_end(track, strand->task);
	strand->task = NULL;
	if (ev->branch.kind != BRANCH_END)
		begin(track, strand, ev);
}

static void add_of_thread(struct track *track, const struct event *ev)
{
	uint32_t number = thread_number(track, ev);
	struct track_strand *strand = thread_at(track, number);

	if (!strand->task ||
	    (ev->branch.kind == BRANCH_BEGIN && (!strand->away || ev->branch.over))) {
		begin_anew(track, strand, ev);
	} else {
		run_task(track, strand, ev->branch.instructions);
		on_thread_branch(track, strand, ev);
	}
	if (strand->task)
		note_place(strand, ev);
	else
		thread_free(track, number);
}

static void add_of_cpu(struct track *track, const struct event *ev)
{
	struct track_strand *strand = cpu_of(track, track_cpu_number(ev->cpu));
	struct event complete;

	if (ev->branch.kind == BRANCH_LEAVE && !ev->branch.to && strand->task) {
		complete = *ev;
		complete_leave(track, strand, &complete);
		ev = &complete;
	}
	if (!strand->task || ev->branch.kind == BRANCH_BEGIN) {
		begin_anew(track, strand, ev);
	} else {
		run_task(track, strand, ev->branch.instructions);
		on_cpu_branch(track, strand, ev);
	}
	if (strand->task)
		note_place(strand, ev);
}

void track_add(struct track *track, const struct event *ev)
{
	track->at =
		ev->outside & (OUTSIDE_WHEN | OUTSIDE_WHERE) ? &track->unselected : &track->stats;
	track->at->branches++;
	if (ev->branch.by_thread)
		add_of_thread(track, ev);
	else
		add_of_cpu(track, ev);
}

/* For the listener */

static void task_marks(struct track_task *task, uint32_t (*each)(void *data, uint32_t mark),
		       void *data)
{
	for (size_t i = 0; task && i < task->nr; i++)
		task->frames[i].mark = each(data, task->frames[i].mark);
	if (task)
		task->mark = each(data, task->mark);
}

void track_marks(struct track *track, uint32_t (*each)(void *data, uint32_t mark), void *data)
{
	for (size_t i = 0; i < track->nr_cpus; i++)
		task_marks(track->cpus[i].task, each, data);
	for (size_t i = 0; i < track->nr_threads; i++)
		task_marks(track->threads[i].task, each, data);
	for (size_t i = 0; i < track->nr_left; i++)
		task_marks(track->left[i], each, data);
	for (size_t i = 0; i < TRACK_FORKS; i++)
		track->forks[i].resume = 0;
}

/* NULL: it has no task. */
static const struct track_strand *busy_strand(const struct track *track, uint32_t number)
{
	uint32_t thread = number - TRACK_FIRST_THREAD;
	const struct track_strand *strand = NULL;

	if (number < track->nr_cpus)
		strand = &track->cpus[number];
	else if (number >= TRACK_FIRST_THREAD && thread < track->nr_threads)
		strand = &track->threads[thread];
	return strand && strand->task ? strand : NULL;
}

bool track_view(struct track *track, uint32_t number, struct track_view *view)
{
	const struct track_strand *strand = busy_strand(track, number);
	struct track_task *task = strand ? strand->task : NULL;

	if (!task)
		return false;
	*view = (struct track_view){ .id = task->id,
				     .mark = task->mark,
				     .frames = task->frames,
				     .nr = task->nr,
				     .kept = task->kept,
				     .beyond = task->beyond,
				     .own = &task->own };
	task->kept = task->nr;
	return true;
}

bool track_away(const struct track *track, uint32_t number)
{
	const struct track_strand *strand = busy_strand(track, number);

	return strand && strand->away;
}

void *track_own(const struct track *track, uint32_t number)
{
	const struct track_strand *strand = busy_strand(track, number);

	return strand ? strand->task->own : NULL;
}

uint64_t track_at(const struct track *track, uint32_t number)
{
	const struct track_strand *strand = busy_strand(track, number);

	return strand ? strand->at : 0;
}

struct track_place track_place(const struct track *track, uint32_t number)
{
	const struct track_strand *strand = busy_strand(track, number);

	if (!strand)
		return (struct track_place){ 0 };
	return (struct track_place){ strand->at, strand->context, strand->pid };
}

uint32_t track_running(const struct track *track, uint32_t number, bool *rooted, bool *first)
{
	const struct track_strand *strand = busy_strand(track, number);
	const struct track_task *task = strand ? strand->task : NULL;

	*rooted = task && task->rooted;
	*first = task && task->first;
	return task ? task->mark : 0;
}

// SPDX-License-Identifier: GPL-2.0-or-later
#include "pass/calls.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "model/world.h"
#include "pass/calls_parts.h"
#include "stage.h"

#define MAX_CPUS 4096
#define NEAR 16	 /* bytes: a call over this distance may not be a real call */
#define ONWARD 3 /* bytes: a return this far ahead goes to the next instruction: a jump */
#define RETPOLINE \
	8 /* maximum number of instructions between the call of a retpoline and its return */
#define FIXUP 65536 /* bytes: maximum distance between a fault and its fixup code */

void calls_init(struct calls *calls)
{
	memset(calls, 0, sizeof(*calls));
	calls->at = &calls->stats;
	calls->version = 1;
	calls->forks = xcalloc(CALLS_FORKS, sizeof(*calls->forks));
	sums_init(calls);
}

void calls_release(struct calls *calls)
{
	for (size_t i = 0; i < calls->nr_cpus; i++)
		task_free(calls->cpus[i].task);
	for (size_t i = 0; i < calls->nr_left; i++)
		task_free(calls->left[i]);
	for (size_t i = 0; calls->forks && i < CALLS_FORKS; i++)
		free(calls->forks[i].frames);
	free(calls->forks);
	free(calls->cpus);
	free(calls->left);
	sums_release(calls);
	memset(calls, 0, sizeof(*calls));
}

static bool is_near(const struct calls *calls, const struct event *ev)
{
	const struct event_branch *b = &ev->branch;

	if (b->to < b->next || b->to - b->next > NEAR)
		return false;
	if (!calls->function)
		return true;
	return calls->function(calls->data, b->to, b->context, ev->pid) != b->to;
}

static void on_call(struct calls *calls, struct calls_cpu *cpu, const struct event *ev)
{
	struct calls_task *task = cpu->task;
	const struct calls_frame *top = task->nr ? &task->frames[task->nr - 1] : NULL;
	bool near = is_near(calls, ev);

	/* A series of calls that only fill the cpu's return predictor. */
	if (near && top && top->kind == CALLS_NEAR && distance(top->target, ev->branch.from) < NEAR)
		task_pop(task, task->nr - 1);
	task_push(calls, cpu, ev, near ? CALLS_NEAR : CALLS_CALL);
	if (near)
		cpu->since_near = 0;
}

/* Finds the frame of the call that returns to `to`. Returns task->nr if there is none. */
static size_t find_call(const struct calls_task *task, uint64_t to)
{
	for (size_t i = task->nr; i-- > 0;) {
		if (task->frames[i].kind == CALLS_TRAP)
			break;
		if (task->frames[i].resume == to)
			return i;
	}
	return task->nr;
}

/* A retpoline calls the code right after it, which replaces its return address and returns. */
static bool is_retpoline(const struct calls_cpu *cpu)
{
	const struct calls_task *task = cpu->task;

	return task->nr && task->frames[task->nr - 1].kind == CALLS_NEAR &&
	       cpu->since_near <= RETPOLINE;
}

/* Whether a return is only a jump, to an address that was pushed for it. */
static bool is_jump(const struct calls_cpu *cpu, const struct event *ev)
{
	const struct event_branch *b = &ev->branch;

	return is_retpoline(cpu) || (b->to > b->from && b->to - b->from <= ONWARD);
}

static void on_return(struct calls *calls, struct calls_cpu *cpu, const struct event *ev)
{
	struct calls_task *task = cpu->task;
	size_t frame = find_call(task, ev->branch.to);

	calls->at->returns++;
	if (frame < task->nr) {
		calls->at->found++;
		task_pop(task, frame);
		return;
	}
	if (is_jump(cpu, ev)) {
		calls->at->returns--;
		calls->at->jumps++;
		if (is_retpoline(cpu))
			task_pop(task, task->nr - 1);
		task->counter = counter_beside(calls, task->counter, ev);
		return;
	}
	while (task->nr && task->frames[task->nr - 1].kind == CALLS_NEAR)
		task_pop(task, task->nr - 1); /* it was not a real call */
	if (task_at_mark(task)) {
		calls->at->returns--;
		task_start(calls, cpu, ev);
		return;
	}
	if (!task->nr) {
		calls->at->returns--;
		calls->at->beyond++;
		task->rooted &= !task->called; /* without calls, it was a jump */
	} else if (task->frames[task->nr - 1].kind == CALLS_TRAP && ev->branch.context == IP_USER) {
		calls->at->returns--; /* the end of a signal handler */
		calls->at->jumps++;
	}
	task->counter = counter_beside(calls, task->counter, ev);
}

/* Whether this event may end a trap. After a fault or signal, code may continue elsewhere. */
static bool may_end(const struct calls_frame *frame, const struct event *ev, bool exact)
{
	const struct event_branch *b = &ev->branch;

	if (frame->kind != CALLS_TRAP || frame->context != b->context)
		return false;
	if (frame->context == IP_USER && frame->pid != ev->pid)
		return false;
	if (frame->resume == b->to)
		return true;
	return !exact && (!frame->resume || frame->context == IP_USER ||
			  distance(frame->resume, b->to) < FIXUP);
}

/* Finds the task's trap that ends here. Returns task->nr if there is none. */
static size_t find_trap(const struct calls_task *task, const struct event *ev, bool exact)
{
	for (size_t i = task->nr; i-- > 0;) {
		if (may_end(&task->frames[i], ev, exact))
			return i;
	}
	return task->nr;
}

/* Resumes a task that left its cpu without a stack switch, if its system call ends here. */
static bool resume_waiting(struct calls *calls, struct calls_cpu *cpu, const struct event *ev)
{
	for (size_t i = calls->nr_left; i-- > 0;) {
		struct calls_task *task = calls->left[i];
		size_t frame = task->sp ? task->nr : find_trap(task, ev, true);

		if (frame == task->nr)
			continue;
		task = task_take(calls, i);
		task_leave(calls, cpu->task, 0);
		cpu->task = task;
		task_pop(task, frame);
		return true;
	}
	return false;
}

static struct calls_fork *fork_at(struct calls *calls, uint64_t resume)
{
	return &calls->forks[resume * 0x9e3779b97f4a7c15ull >> 58];
}

/* Saves the callers of a system call, for a child: the parent may be elsewhere by then. */
static void note_fork(struct calls *calls, const struct calls_task *task, uint64_t resume)
{
	struct calls_fork *fork = fork_at(calls, resume);

	GROW(fork->frames, task->nr, fork->cap);
	if (task->nr)
		memcpy(fork->frames, task->frames, task->nr * sizeof(*fork->frames));
	fork->nr = task->nr;
	fork->resume = resume;
	fork->counter = task->counter;
	fork->rooted = task->rooted;
}

/* A new process returns from its parent's system call, so it gets the parent's callers. */
static struct calls_task *fork_task(struct calls *calls, const struct event *ev)
{
	struct calls_task *task = task_new(calls, ev);
	const struct calls_fork *fork = fork_at(calls, ev->branch.to);

	if (!fork->resume || fork->resume != ev->branch.to)
		return task;
	GROW(task->frames, fork->nr, task->cap);
	if (fork->nr)
		memcpy(task->frames, fork->frames, fork->nr * sizeof(*task->frames));
	task->nr = fork->nr;
	task->counter = fork->counter;
	task->rooted = fork->rooted;
	return task;
}

static void on_enter(struct calls *calls, struct calls_cpu *cpu, const struct event *ev)
{
	calls->at->traps++;
	if (cpu->context == IP_USER && ev->branch.next > ev->branch.from)
		note_fork(calls, cpu->task, ev->branch.next);
	task_push(calls, cpu, ev, CALLS_TRAP);
}

/* A trap returns to a place where the task has no trap. */
static void leave_elsewhere(struct calls *calls, struct calls_cpu *cpu, const struct event *ev,
			    bool switched)
{
	struct calls_task *task = cpu->task;

	if (ev->branch.context == IP_USER) { /* a new program or process */
		cpu->task = fork_task(calls, ev);
		task_free(task);
	} else if (switched && task_at_mark(task)) {
		task_start(calls, cpu, ev);
	} else {
		task->counter = counter_beside(calls, task->counter, ev);
	}
}

/* Pushes a signal handler, which interrupted a program at `resume`. */
static void call_handler(struct calls *calls, struct calls_cpu *cpu, const struct event *ev,
			 uint64_t resume)
{
	struct event handler = *ev;

	handler.branch.next = resume;
	cpu->context = IP_USER;
	cpu->pid = ev->pid;
	task_push(calls, cpu, &handler, CALLS_TRAP);
}

static void on_leave(struct calls *calls, struct calls_cpu *cpu, const struct event *ev,
		     bool switched)
{
	const struct event_branch *b = &ev->branch;
	struct calls_task *task = cpu->task;
	size_t frame = find_trap(task, ev, true);

	/* Linux uses iret to the next instruction to serialize the cpu. */
	if (b->context == cpu->context && b->to > b->from && b->to - b->from <= NEAR) {
		task->counter = counter_beside(calls, task->counter, ev);
		return;
	}
	calls->at->leaves++;
	if (frame == task->nr && resume_waiting(calls, cpu, ev)) {
		calls->at->leaves_found++;
		return;
	}
	if (frame == task->nr)
		frame = find_trap(task, ev, false);
	if (frame == task->nr) {
		leave_elsewhere(calls, cpu, ev, switched);
		return;
	}
	calls->at->leaves_found++;
	task_pop(task, frame);
	if (task->frames[frame].resume == b->to)
		return;
	if (b->context == IP_USER && task->frames[frame].resume)
		call_handler(calls, cpu, ev, task->frames[frame].resume);
	else
		task->counter = counter_beside(calls, task->counter, ev);
}

/* Finds the task of this process whose trace ended in user code. Returns nr_left if none. */
static size_t find_ended(const struct calls *calls, const struct event *ev)
{
	size_t i;

	if (ev->branch.context != IP_USER)
		return calls->nr_left;
	for (i = 0; i < calls->nr_left; i++) {
		const struct calls_counter *at = &calls->counters[calls->left[i]->counter];

		if (calls->left[i]->ended && at->context == IP_USER &&
		    calls->paths[at->path].pid == ev->pid)
			break;
	}
	return i;
}

static void on_begin(struct calls *calls, struct calls_cpu *cpu, const struct event *ev)
{
	size_t ended = find_ended(calls, ev);

	if (ended == calls->nr_left) {
		cpu->task = task_new(calls, ev);
		return;
	}
	cpu->task = task_take(calls, ended);
	cpu->task->counter = counter_beside(calls, cpu->task->counter, ev);
}

static void on_end(struct calls *calls, struct calls_cpu *cpu)
{
	cpu->task->ended = true;
	task_leave(calls, cpu->task, 0);
	cpu->task = NULL;
}

static struct calls_cpu *cpu_of(struct calls *calls, uint32_t number)
{
	uint32_t cpu = number < MAX_CPUS ? number : MAX_CPUS;

	if (cpu >= calls->nr_cpus) {
		calls->cpus = xrealloc(calls->cpus, cpu + 1, sizeof(*calls->cpus));
		memset(calls->cpus + calls->nr_cpus, 0,
		       (cpu + 1 - calls->nr_cpus) * sizeof(*calls->cpus));
		calls->nr_cpus = cpu + 1;
	}
	return &calls->cpus[cpu];
}

static void charge(struct calls *calls, const struct calls_task *task, uint64_t instructions)
{
	calls->at->instructions += instructions;
	if (calls->at == &calls->unselected)
		return;
	calls->counters[task->counter].count += instructions;
	if (task->rooted || (task->nr_marks && !task->marks[0].resumed))
		calls->at->rooted += instructions;
}

static void on_branch(struct calls *calls, struct calls_cpu *cpu, const struct event *ev)
{
	const struct event_branch *b = &ev->branch;
	bool switched = false;

	charge(calls, cpu->task, b->instructions);
	cpu->since_near += b->instructions;
	if (b->sp && cpu->sp && b->kind != BRANCH_ENTER)
		switched = task_switch(calls, cpu, b->sp);
	switch (b->kind) {
	case BRANCH_JUMP: cpu->task->counter = counter_beside(calls, cpu->task->counter, ev); break;
	case BRANCH_CALL: on_call(calls, cpu, ev); break;
	case BRANCH_RETURN: on_return(calls, cpu, ev); break;
	case BRANCH_ENTER: on_enter(calls, cpu, ev); break;
	case BRANCH_LEAVE: on_leave(calls, cpu, ev, switched); break;
	case BRANCH_END: on_end(calls, cpu); break;
	default: break;
	}
}

void calls_add(struct calls *calls, const struct event *ev)
{
	const struct event_branch *b = &ev->branch;
	struct calls_cpu *cpu = cpu_of(calls, ev->cpu);

	calls->at = ev->outside & OUTSIDE_WHEN ? &calls->unselected : &calls->stats;
	calls->at->branches++;
	if (b->kind == BRANCH_BEGIN) { /* if there is a task, part of the trace is missing */
		task_free(cpu->task);
		cpu->task = NULL;
	}
	if (cpu->task)
		on_branch(calls, cpu, ev);
	else if (b->kind != BRANCH_END)
		on_begin(calls, cpu, ev);
	else
		return;
	cpu->sp = b->sp;
	cpu->context = b->context;
	cpu->entered = b->kind == BRANCH_ENTER;
	if (b->context == IP_USER || !cpu->pid)
		cpu->pid = ev->pid;
}

void calls_check(struct calls *calls, const struct event *ev)
{
	(void)ev;
	calls->stats.checks++;
}

/* ---- the stage ---- */

struct calls_stage {
	struct calls calls; /* must be first: chain_find() returns it */
	uint32_t source;    /* 0: not announced yet */
};

static uint64_t function_at(void *data, uint64_t address, uint64_t context, uint32_t pid)
{
	return world_function(data, pid, context, address);
}

static uint32_t frame_at(void *data, uint64_t address, uint64_t context, uint32_t pid,
			 bool is_return)
{
	struct event at = { .pid = pid };

	return world_frame(data, &at, context, address, is_return);
}

static int calls_open(struct stage *s)
{
	struct calls_stage *cs = s->priv;

	calls_init(&cs->calls);
	cs->calls.function = function_at;
	cs->calls.frame = frame_at;
	cs->calls.data = s->chain->world;
	return 0;
}

/* The stack of the current sample, from the frames that were stored while it ran. */
static uint32_t stack_of(struct stacks *stacks, const struct calls *calls)
{
	uint32_t stack = 0;

	for (size_t i = calls->nr_frames; i-- > 0;)
		stack = stack_push(stacks, stack, calls->frames[i]);
	return stack;
}

/* Emits the instructions so far as samples, one for each stack. */
static int emit_sums(struct stage *s)
{
	static const struct event_source source = {
		.id = 2,
		.name = "instructions",
		.type = SOURCE_HARDWARE,
		.config = 1,
		.unit = "instructions",
		.lacks = LACKS_TIME | LACKS_CPU,
	};
	struct calls_stage *cs = s->priv;
	struct event ev;

	if (cs->calls.stats.branches && !cs->source && stage_source(s, &source, &cs->source) < 0)
		return -1;
	/* Also if nothing is selected so far: the last calls_sample() empties the tables. */
	stage_event(s, &ev, EVENT_SAMPLE);
	while (calls_sample(&cs->calls, &ev)) {
		ev.sample.source = cs->source;
		ev.sample.stack = stack_of(&s->chain->world->stacks, &cs->calls);
		if (stage_emit(s, &ev) < 0)
			return -1;
	}
	return 0;
}

static int calls_push(struct stage *s, struct event *ev)
{
	struct calls *calls = &((struct calls_stage *)s->priv)->calls;

	calls->version = s->chain->world->version;
	if (ev->kind == EVENT_CHECK) {
		calls_check(calls, ev);
		return 0;
	}
	calls_add(calls, ev);
	return calls_full(calls) ? emit_sums(s) : 0;
}

static int calls_flush(struct stage *s, uint64_t until)
{
	return until == UINT64_MAX ? emit_sums(s) : 0;
}

static void calls_close(struct stage *s)
{
	calls_release(&((struct calls_stage *)s->priv)->calls);
}

const struct stage_ops stage_calls = {
	.name = "calls",
	.takes = EVENT_BIT(EVENT_BRANCH) | EVENT_BIT(EVENT_CHECK),
	.makes = EVENT_BIT(EVENT_SOURCE) | EVENT_BIT(EVENT_SAMPLE),
	.priv_size = sizeof(struct calls_stage),
	.open = calls_open,
	.push = calls_push,
	.flush = calls_flush,
	.close = calls_close,
};

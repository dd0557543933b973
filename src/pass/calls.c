// SPDX-License-Identifier: GPL-2.0-or-later
#include "pass/calls.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define MAX_CPUS 4096
#define MAX_DEPTH 8192	       /* calls that never return must not grow for ever */
#define MAX_LEFT 4096	       /* tasks that do not run */
#define MAX_ENTRIES (4u << 20) /* paths or counters, before they are handed out */
#define MEMO_SIZE 65536
#define NEAR 16 /* bytes: a call this short may be no call at all */
#define ONWARD \
	3 /* bytes: a return this far ahead is one to the next line, whose address it pushed */
#define RETPOLINE 8	/* instructions between such a call and its return */
#define SAME_STACK 4096 /* bytes: a smaller step of the stack pointer is no switch */
#define FIXUP 65536	/* bytes: so far away a fault may be mended */
#define SLACK 1024	/* bytes: what a switch saves on the stack */

/* 0 is no path, and no counter. */
static void empty_tables(struct calls *calls)
{
	calls->nr_paths = calls->nr_counters = 1;
	GROW(calls->paths, 1, calls->cap_paths);
	GROW(calls->counters, 1, calls->cap_counters);
	calls->paths[0] = (struct calls_path){ 0 };
	calls->counters[0] = (struct calls_counter){ 0 };
}

void calls_init(struct calls *calls)
{
	memset(calls, 0, sizeof(*calls));
	calls->memo = xcalloc(MEMO_SIZE, sizeof(*calls->memo));
	empty_tables(calls);
}

static void free_task(struct calls_task *task)
{
	if (task)
		free(task->frames);
	free(task);
}

void calls_release(struct calls *calls)
{
	for (size_t i = 0; i < calls->nr_cpus; i++)
		free_task(calls->cpus[i].task);
	for (size_t i = 0; i < calls->nr_left; i++)
		free_task(calls->left[i]);
	for (size_t i = 0; i < CALLS_FORKS; i++)
		free(calls->forks[i].frames);
	free(calls->cpus);
	free(calls->left);
	free(calls->paths);
	free(calls->counters);
	free(calls->memo);
	free(calls->chain);
	hash_release(&calls->path_by_key);
	hash_release(&calls->counter_by_key);
	memset(calls, 0, sizeof(*calls));
}

void calls_source(struct calls *calls, struct event *ev)
{
	calls->told = true;
	*ev = (struct event){
		.kind = EVENT_SOURCE, .time = NO_TIME, .cpu = NO_CPU, .pid = NO_TASK, .tid = NO_TASK
	};
	ev->source = (struct event_source){
		.id = CALLS_SOURCE,
		.name = "instructions",
		.type = SOURCE_HARDWARE,
		.config = 1,
		.unit = "instructions",
		.lacks = LACKS_TIME | LACKS_CPU,
	};
}

static uint64_t distance(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

/* Paths and counters */

static uint32_t path_of(struct calls *calls, const struct calls_path *want)
{
	struct hash_key key = { want->resume ^ (uint64_t)want->trap << 63,
				(uint64_t)want->parent << 32 | want->pid };
	uint32_t *handle;

	if (!want->parent)
		key.a = want->tid;
	handle = hash_at(&calls->path_by_key, key);
	if (!*handle) {
		GROW(calls->paths, calls->nr_paths + 1, calls->cap_paths);
		calls->paths[calls->nr_paths] = *want;
		*handle = (uint32_t)calls->nr_paths++;
	}
	return *handle;
}

static uint32_t counter_at(struct calls *calls, uint32_t path, uint64_t leaf, uint64_t context)
{
	struct hash_key key = { leaf, (uint64_t)path << 1 | (context == IP_USER) };
	uint32_t *handle = hash_at(&calls->counter_by_key, key);

	if (!*handle) {
		GROW(calls->counters, calls->nr_counters + 1, calls->cap_counters);
		calls->counters[calls->nr_counters] =
			(struct calls_counter){ .leaf = leaf, .context = context, .path = path };
		*handle = (uint32_t)calls->nr_counters++;
	}
	return *handle;
}

static uint64_t leaf_of(const struct calls *calls, uint64_t address, uint64_t context, uint32_t pid)
{
	uint64_t start = calls->function ? calls->function(calls->data, address, context, pid) : 0;

	return start ? start : address;
}

static struct calls_memo *memo_of(struct calls *calls, uint32_t from, uint64_t resume, uint64_t to)
{
	uint64_t hash = (to ^ resume * 31 ^ (uint64_t)from << 20) * 0x9e3779b97f4a7c15ull;

	return &calls->memo[hash >> 48 & (MEMO_SIZE - 1)];
}

static bool is_memo(const struct calls_memo *memo, uint32_t from, uint64_t resume, uint64_t to)
{
	return memo->counter && memo->from == from && memo->resume == resume && memo->to == to;
}

/* The counter of another leaf on the same path. */
static uint32_t beside(struct calls *calls, uint32_t from, const struct event *ev)
{
	const struct event_branch *b = &ev->branch;
	struct calls_memo *memo = memo_of(calls, from, 0, b->to);

	if (!is_memo(memo, from, 0, b->to)) {
		uint64_t leaf = leaf_of(calls, b->to, b->context, ev->pid);
		uint32_t counter = counter_at(calls, calls->counters[from].path, leaf, b->context);

		*memo = (struct calls_memo){ 0, b->to, from, counter };
	}
	return memo->counter;
}

/* The counter of what was called, or interrupted, to go on at `resume` some day. */
static uint32_t below(struct calls *calls, uint32_t from, uint64_t resume, bool trap,
		      uint64_t context, const struct event *ev)
{
	const struct event_branch *b = &ev->branch;
	uint64_t key = resume ^ (uint64_t)trap << 63;
	struct calls_memo *memo = memo_of(calls, from, key, b->to);

	if (!is_memo(memo, from, key, b->to)) {
		struct calls_path path = { .resume = resume,
					   .context = context,
					   .parent = calls->counters[from].path,
					   .trap = trap };
		uint64_t leaf = leaf_of(calls, b->to, b->context, ev->pid);
		uint32_t counter = counter_at(calls, path_of(calls, &path), leaf, b->context);

		*memo = (struct calls_memo){ key, b->to, from, counter };
	}
	return memo->counter;
}

static uint32_t root_counter(struct calls *calls, const struct event *ev)
{
	struct calls_path root = { .pid = ev->pid, .tid = ev->tid };
	uint64_t leaf = leaf_of(calls, ev->branch.to, ev->branch.context, ev->pid);

	return counter_at(calls, path_of(calls, &root), leaf, ev->branch.context);
}

/* Tasks */

static struct calls_task *new_task(struct calls *calls, const struct event *ev, bool rooted)
{
	struct calls_task *task = xcalloc(1, sizeof(*task));

	task->counter = root_counter(calls, ev);
	task->rooted = rooted;
	calls->stats.tasks++;
	return task;
}

static void evict_oldest(struct calls *calls)
{
	size_t oldest = 0;

	for (size_t i = 1; i < calls->nr_left; i++) {
		if (calls->left[i]->used < calls->left[oldest]->used)
			oldest = i;
	}
	free_task(calls->left[oldest]);
	calls->left[oldest] = calls->left[--calls->nr_left];
}

/* No two tasks are on one stack: those that were left there before have ended. */
static void drop_ended(struct calls *calls, uint64_t sp)
{
	for (size_t i = calls->nr_left; sp && i-- > 0;) {
		if (!calls->left[i]->sp || distance(calls->left[i]->sp, sp) > SLACK / 2)
			continue;
		free_task(calls->left[i]);
		calls->left[i] = calls->left[--calls->nr_left];
	}
}

static void leave_task(struct calls *calls, struct calls_task *task, uint64_t sp)
{
	drop_ended(calls, sp);
	if (calls->nr_left == MAX_LEFT)
		evict_oldest(calls);
	task->sp = sp;
	task->used = ++calls->stats.switches;
	GROW(calls->left, calls->nr_left + 1, calls->cap_left);
	calls->left[calls->nr_left++] = task;
}

static struct calls_task *take_task(struct calls *calls, size_t i)
{
	struct calls_task *task = calls->left[i];

	calls->left[i] = calls->left[--calls->nr_left];
	task->ended = false;
	return task;
}

static void add_mark(struct calls_task *task, uint64_t sp, bool resumed)
{
	if (task->nr_marks == CALLS_MARKS) {
		memmove(task->marks, task->marks + 1, (CALLS_MARKS - 1) * sizeof(task->marks[0]));
		task->nr_marks--;
	}
	task->marks[task->nr_marks++] = (struct calls_mark){ task->nr, sp, resumed };
}

/* Marks of frames that are gone. */
static void drop_marks(struct calls_task *task)
{
	while (task->nr_marks && task->marks[task->nr_marks - 1].depth > task->nr)
		task->nr_marks--;
}

/* The task that was left nearest to a stack pointer; nr_left if none was left near it. */
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
	struct calls_task *next = take_task(calls, i);

	leave_task(calls, cpu->task, cpu->sp);
	cpu->task = next;
	next->nr_marks = 0;
	add_mark(next, 0, true);
}

/* The mark where the task left a stack near a stack pointer; nr_marks if there is none. */
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

/* The stack pointer went from one place to another between two events. True: to a new stack. */
static bool check_switch(struct calls *calls, struct calls_cpu *cpu, uint64_t sp)
{
	struct calls_task *task = cpu->task;
	uint64_t step = distance(sp, cpu->sp), to_task, to_mark;
	unsigned mark = nearest_mark(task, sp, &to_mark);
	size_t other = nearest_task(calls, sp, &to_task);

	if (step < SAME_STACK && step <= to_task)
		return false;
	if (mark < task->nr_marks && to_mark <= to_task) {
		task->nr_marks = mark; /* back from a stack for interrupts */
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

/* The task at hand turned out to be another one, which nobody has seen before. */
static void start_task(struct calls *calls, struct calls_cpu *cpu, const struct event *ev)
{
	const struct calls_mark *mark = &cpu->task->marks[cpu->task->nr_marks - 1];
	struct calls_task *old = cpu->task;
	uint64_t sp = mark->sp;

	if (mark->resumed) { /* the one that was left here is gone */
		free_task(old);
	} else {
		old->nr_marks--;
		leave_task(calls, old, sp);
	}
	cpu->task = new_task(calls, ev, true);
}

/* What each kind of branch does */

static void pop_to(struct calls_task *task, size_t depth)
{
	task->nr = depth;
	task->counter = task->frames[depth].counter;
	drop_marks(task);
}

/* The same leaf on another path. */
static uint32_t moved(struct calls *calls, uint32_t counter, uint32_t path)
{
	struct calls_counter old = calls->counters[counter];

	return counter_at(calls, path, old.leaf, old.context);
}

/* Too deep: what remains is the newest half, as if it began there. */
static void forget_half(struct calls *calls, struct calls_task *task)
{
	uint32_t path = calls->counters[task->frames[0].counter].path;

	task->nr -= MAX_DEPTH / 2;
	memmove(task->frames, task->frames + MAX_DEPTH / 2, task->nr * sizeof(*task->frames));
	task->nr_marks = 0;
	task->rooted = false;
	for (size_t i = 0; i < task->nr; i++) {
		struct calls_frame *frame = &task->frames[i];
		struct calls_path next = { .resume = frame->resume,
					   .context = frame->context,
					   .parent = path,
					   .trap = frame->kind == CALLS_TRAP };

		frame->counter = moved(calls, frame->counter, path);
		path = path_of(calls, &next);
	}
	task->counter = moved(calls, task->counter, path);
}

static void push(struct calls *calls, struct calls_cpu *cpu, const struct event *ev,
		 enum calls_kind kind)
{
	const struct event_branch *b = &ev->branch;
	struct calls_task *task = cpu->task;
	struct calls_frame frame = { b->next, b->to, cpu->context, task->counter, cpu->pid, kind };
	bool trap = kind == CALLS_TRAP;

	if (task->nr == MAX_DEPTH) {
		forget_half(calls, task);
		frame.counter = task->counter;
	}
	task->called = true;
	GROW(task->frames, task->nr + 1, task->cap);
	task->frames[task->nr++] = frame;
	task->counter =
		below(calls, task->counter, b->next ? b->next : b->from, trap, cpu->context, ev);
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

	/* Calls that only fill the cpu's return predictor, one after the other. */
	if (near && top && top->kind == CALLS_NEAR && distance(top->target, ev->branch.from) < NEAR)
		pop_to(task, task->nr - 1);
	push(calls, cpu, ev, near ? CALLS_NEAR : CALLS_CALL);
	if (near)
		cpu->since_near = 0;
}

static bool is_at_mark(const struct calls_task *task)
{
	return task->nr_marks && task->marks[task->nr_marks - 1].depth == task->nr;
}

/* The frame that a return leads back to; task->nr if there is none. */
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

/* A call to the next lines, which put another address in the place of theirs and return to it. */
static bool is_retpoline(const struct calls_cpu *cpu)
{
	const struct calls_task *task = cpu->task;

	return task->nr && task->frames[task->nr - 1].kind == CALLS_NEAR &&
	       cpu->since_near <= RETPOLINE;
}

/* A return that is only a jump, to an address that was pushed for it. */
static bool is_jump(const struct calls_cpu *cpu, const struct event *ev)
{
	const struct event_branch *b = &ev->branch;

	return is_retpoline(cpu) || (b->to > b->from && b->to - b->from <= ONWARD);
}

static void on_return(struct calls *calls, struct calls_cpu *cpu, const struct event *ev)
{
	struct calls_task *task = cpu->task;
	size_t frame = find_call(task, ev->branch.to);

	calls->stats.returns++;
	if (frame < task->nr) {
		calls->stats.found++;
		pop_to(task, frame);
		return;
	}
	if (is_jump(cpu, ev)) {
		calls->stats.returns--;
		calls->stats.jumps++;
		if (is_retpoline(cpu))
			pop_to(task, task->nr - 1);
		task->counter = beside(calls, task->counter, ev);
		return;
	}
	while (task->nr && task->frames[task->nr - 1].kind == CALLS_NEAR)
		pop_to(task, task->nr - 1); /* it was no call */
	if (is_at_mark(task)) {
		calls->stats.returns--;
		start_task(calls, cpu, ev);
		return;
	}
	if (!task->nr) {
		calls->stats.returns--;
		calls->stats.beyond++;
		task->rooted &= !task->called; /* what never called was jumped to */
	} else if (task->frames[task->nr - 1].kind == CALLS_TRAP && ev->branch.context == IP_USER) {
		calls->stats.returns--; /* the end of a signal's handler */
		calls->stats.jumps++;
	}
	task->counter = beside(calls, task->counter, ev);
}

/* Whether a trap may end where control goes now. Faults may go on elsewhere, and signals do. */
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

/* The trap that ends, among those of a task; task->nr if there is none. */
static size_t find_trap(const struct calls_task *task, const struct event *ev, bool exact)
{
	for (size_t i = task->nr; i-- > 0;) {
		if (may_end(&task->frames[i], ev, exact))
			return i;
	}
	return task->nr;
}

/* A task that left the cpu without a switch of stacks waits for its system call to end here. */
static bool resume_waiting(struct calls *calls, struct calls_cpu *cpu, const struct event *ev)
{
	for (size_t i = calls->nr_left; i-- > 0;) {
		struct calls_task *task = calls->left[i];
		size_t frame = task->sp ? task->nr : find_trap(task, ev, true);

		if (frame == task->nr)
			continue;
		task = take_task(calls, i);
		leave_task(calls, cpu->task, 0);
		cpu->task = task;
		pop_to(task, frame);
		return true;
	}
	return false;
}

static struct calls_fork *fork_at(struct calls *calls, uint64_t resume)
{
	return &calls->forks[resume * 0x9e3779b97f4a7c15ull >> 58];
}

/* A program calls the system. If a process comes of it, the parent may be elsewhere by then. */
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

/* A new process returns from the system call that its parent made: it has the parent's callers. */
static struct calls_task *fork_task(struct calls *calls, const struct event *ev)
{
	struct calls_task *task = new_task(calls, ev, true);
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
	calls->stats.traps++;
	if (cpu->context == IP_USER && ev->branch.next > ev->branch.from)
		note_fork(calls, cpu->task, ev->branch.next);
	push(calls, cpu, ev, CALLS_TRAP);
}

/* A trap returns to where no trap came from. */
static void leave_elsewhere(struct calls *calls, struct calls_cpu *cpu, const struct event *ev,
			    bool switched)
{
	struct calls_task *task = cpu->task;

	if (ev->branch.context == IP_USER) { /* a program begins, or a process */
		cpu->task = fork_task(calls, ev);
		free_task(task);
	} else if (switched && is_at_mark(task)) {
		start_task(calls, cpu, ev);
	} else {
		task->counter = beside(calls, task->counter, ev);
	}
}

/* A program was interrupted by a signal; when its handler is done, the system returns there. */
static void call_handler(struct calls *calls, struct calls_cpu *cpu, const struct event *ev,
			 uint64_t resume)
{
	struct event handler = *ev;

	handler.branch.next = resume;
	cpu->context = IP_USER;
	cpu->pid = ev->pid;
	push(calls, cpu, &handler, CALLS_TRAP);
}

static void on_leave(struct calls *calls, struct calls_cpu *cpu, const struct event *ev,
		     bool switched)
{
	const struct event_branch *b = &ev->branch;
	struct calls_task *task = cpu->task;
	size_t frame = find_trap(task, ev, true);

	/* Linux does it to itself, to serialize. */
	if (b->context == cpu->context && b->to > b->from && b->to - b->from <= NEAR) {
		task->counter = beside(calls, task->counter, ev);
		return;
	}
	calls->stats.leaves++;
	if (frame == task->nr && resume_waiting(calls, cpu, ev)) {
		calls->stats.leaves_found++;
		return;
	}
	if (frame == task->nr)
		frame = find_trap(task, ev, false);
	if (frame == task->nr) {
		leave_elsewhere(calls, cpu, ev, switched);
		return;
	}
	calls->stats.leaves_found++;
	pop_to(task, frame);
	if (task->frames[frame].resume == b->to)
		return;
	if (b->context == IP_USER && task->frames[frame].resume)
		call_handler(calls, cpu, ev, task->frames[frame].resume);
	else
		task->counter = beside(calls, task->counter, ev);
}

static void on_begin(struct calls *calls, struct calls_cpu *cpu, const struct event *ev)
{
	for (size_t i = 0; i < calls->nr_left; i++) {
		const struct calls_task *task = calls->left[i];
		const struct calls_counter *at = &calls->counters[task->counter];

		if (!task->ended || at->context != ev->branch.context)
			continue;
		if (calls->paths[at->path].pid != ev->pid && ev->branch.context == IP_USER)
			continue;
		if (ev->branch.context != IP_USER)
			continue;
		cpu->task = take_task(calls, i);
		cpu->task->counter = beside(calls, cpu->task->counter, ev);
		return;
	}
	cpu->task = new_task(calls, ev, true);
}

static void on_end(struct calls *calls, struct calls_cpu *cpu)
{
	cpu->task->ended = true;
	leave_task(calls, cpu->task, 0);
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
	calls->stats.instructions += instructions;
	calls->counters[task->counter].count += instructions;
	if (task->rooted || (task->nr_marks && !task->marks[0].resumed))
		calls->stats.rooted += instructions;
}

void calls_add(struct calls *calls, const struct event *ev)
{
	const struct event_branch *b = &ev->branch;
	struct calls_cpu *cpu = cpu_of(calls, ev->cpu);
	bool switched = false;

	calls->stats.branches++;
	if (b->kind == BRANCH_BEGIN && cpu->task) { /* something is missing before */
		free_task(cpu->task);
		cpu->task = NULL;
	}
	if (!cpu->task) {
		if (b->kind == BRANCH_END)
			return;
		on_begin(calls, cpu, ev);
		goto done;
	}
	charge(calls, cpu->task, b->instructions);
	cpu->since_near += b->instructions;
	if (b->sp && cpu->sp && b->kind != BRANCH_ENTER)
		switched = check_switch(calls, cpu, b->sp);
	switch (b->kind) {
	case BRANCH_JUMP: cpu->task->counter = beside(calls, cpu->task->counter, ev); break;
	case BRANCH_CALL: on_call(calls, cpu, ev); break;
	case BRANCH_RETURN: on_return(calls, cpu, ev); break;
	case BRANCH_ENTER: on_enter(calls, cpu, ev); break;
	case BRANCH_LEAVE: on_leave(calls, cpu, ev, switched); break;
	case BRANCH_END: on_end(calls, cpu); break;
	default: break;
	}
done:
	cpu->sp = b->sp;
	cpu->context = b->context;
	cpu->entered = b->kind == BRANCH_ENTER;
	if (b->context == IP_USER || !cpu->pid)
		cpu->pid = ev->pid;
}

/* Samples */

bool calls_full(const struct calls *calls)
{
	return calls->nr_paths > MAX_ENTRIES || calls->nr_counters > MAX_ENTRIES;
}

static void add_ip(struct calls *calls, size_t *nr, uint64_t ip)
{
	GROW(calls->chain, *nr + 1, calls->cap_chain);
	calls->chain[(*nr)++] = ip;
}

/* The chain of a counter, leaf first, with markers; returns the root of its path. */
static const struct calls_path *make_chain(struct calls *calls, const struct calls_counter *counter,
					   size_t *nr)
{
	const struct calls_path *path = &calls->paths[counter->path];
	uint64_t context = counter->context;

	*nr = 0;
	add_ip(calls, nr, context);
	add_ip(calls, nr, counter->leaf);
	for (; path->parent; path = &calls->paths[path->parent]) {
		bool fresh = path->context != context;

		if (fresh)
			add_ip(calls, nr, path->context);
		context = path->context;
		/* Callers are looked up a byte before; what was interrupted is no caller. */
		add_ip(calls, nr, path->resume + (path->trap && !fresh));
	}
	return path;
}

/* The tables as they were, and where their paths are now. 0: nowhere. */
struct remap {
	struct calls_path *paths;
	struct calls_counter *counters;
	size_t nr_paths;
	uint32_t *path;
};

static void need_path(struct remap *map, uint32_t path)
{
	for (; path && !map->path[path]; path = map->paths[path].parent)
		map->path[path] = 1;
}

static void need_paths(struct remap *map, const struct calls_task *task)
{
	if (!task)
		return;
	for (size_t i = 0; i < task->nr; i++)
		need_path(map, map->counters[task->frames[i].counter].path);
	need_path(map, map->counters[task->counter].path);
}

/* A path comes after its parent, in both tables. */
static void copy_paths(struct calls *calls, struct remap *map)
{
	for (size_t i = 1; i < map->nr_paths; i++) {
		struct calls_path path = map->paths[i];

		if (!map->path[i])
			continue;
		path.parent = map->path[path.parent];
		map->path[i] = path_of(calls, &path);
	}
}

static void remap_counter(struct calls *calls, const struct remap *map, uint32_t *counter)
{
	const struct calls_counter *old = &map->counters[*counter];

	*counter = counter_at(calls, map->path[old->path], old->leaf, old->context);
}

static void remap_task(struct calls *calls, const struct remap *map, struct calls_task *task)
{
	if (!task)
		return;
	for (size_t i = 0; i < task->nr; i++)
		remap_counter(calls, map, &task->frames[i].counter);
	remap_counter(calls, map, &task->counter);
}

/* Empty tables, in which only the stacks of the tasks are. */
static void start_anew(struct calls *calls)
{
	struct remap map = { calls->paths, calls->counters, calls->nr_paths,
			     xcalloc(calls->nr_paths, sizeof(uint32_t)) };

	memset(calls->memo, 0, MEMO_SIZE * sizeof(*calls->memo));
	calls->paths = NULL;
	calls->counters = NULL;
	calls->cap_paths = calls->cap_counters = 0;
	empty_tables(calls);
	for (size_t i = 0; i < calls->nr_cpus; i++)
		need_paths(&map, calls->cpus[i].task);
	for (size_t i = 0; i < calls->nr_left; i++)
		need_paths(&map, calls->left[i]);
	for (size_t i = 0; i < CALLS_FORKS; i++)
		calls->forks[i].resume = 0;
	copy_paths(calls, &map);
	for (size_t i = 0; i < calls->nr_cpus; i++)
		remap_task(calls, &map, calls->cpus[i].task);
	for (size_t i = 0; i < calls->nr_left; i++)
		remap_task(calls, &map, calls->left[i]);
	free(map.paths);
	free(map.counters);
	free(map.path);
	calls->emitted = 0;
}

bool calls_sample(struct calls *calls, struct event *ev)
{
	const struct calls_counter *counter;
	const struct calls_path *root;
	size_t nr;

	/* Nothing is looked up while the sums are handed out, and then all begins anew. */
	hash_release(&calls->path_by_key);
	hash_release(&calls->counter_by_key);
	while (calls->emitted < calls->nr_counters && !calls->counters[calls->emitted].count)
		calls->emitted++;
	if (calls->emitted == calls->nr_counters) {
		start_anew(calls);
		return false;
	}
	counter = &calls->counters[calls->emitted++];
	root = make_chain(calls, counter, &nr);
	*ev = (struct event){ .kind = EVENT_SAMPLE,
			      .time = NO_TIME,
			      .cpu = NO_CPU,
			      .pid = root->pid,
			      .tid = root->tid };
	ev->sample = (struct event_sample){
		.ips = calls->chain,
		.nr = (uint32_t)nr,
		.source = CALLS_SOURCE,
		.weight = counter->count,
		.context = counter->context,
	};
	return true;
}

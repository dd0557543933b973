// SPDX-License-Identifier: GPL-2.0-or-later
#include <string.h>

#include "base/mem.h"
#include "pass/track_parts.h"
#include "pass/track_rules.h"

/* How well a return from an exception fits the interrupted place; the highest wins. */
enum fit { FIT_NONE, FIT_NEAR, FIT_SP, FIT_OPEN, FIT_EXACT };

static enum fit fit_of(const struct track_frame *frame, const struct event *ev)
{
	const struct event_branch *b = &ev->branch;
	bool same = frame->resume == b->to;

	if (frame->kind != TRACK_TRAP || frame->context != b->context ||
	    frame_space(frame) != branch_space(b))
		return FIT_NONE;
	if (frame->sp && b->sp) {
		if (frame->sp != b->sp)
			return FIT_NONE;
		if (same)
			return FIT_EXACT;
		/* FIT_SP: a fixed-up fault, a restarted call, or the exception below ends, too. */
		return frame->resume ? FIT_SP : FIT_OPEN;
	}
	if (same)
		return FIT_EXACT;
	if (!frame->resume ||
	    (b->context != IP_USER && distance(frame->resume, b->to) < RULE_FIXUP))
		return FIT_NEAR;
	return FIT_NONE;
}

/* Finds the task's own exception that ends here. Returns task->nr if there is none. */
static size_t own_trap(const struct track_task *task, const struct event *ev, enum fit *best)
{
	size_t found = task->nr;

	*best = FIT_NONE;
	for (size_t i = task->nr; i-- > 0 && *best < FIT_EXACT;) {
		enum fit fit = fit_of(&task->frames[i], ev);

		if (fit > *best) {
			*best = fit;
			found = i;
		}
	}
	return found;
}

/* A task that waits where it was interrupted. */
struct waiting {
	struct track_task *task; /* NULL: none */
	size_t frame; /* the exception: the last one, unless another thread counted as its handler */
	enum fit fit;
};

static void better_waiting(const struct track *track, const struct event *ev,
			   struct track_task *task, struct waiting *best)
{
	enum fit fit;
	size_t trap = just_entered(task) ? own_trap(task, ev, &fit) : task->nr;

	/* Another thread may go on elsewhere only if returns are known to switch threads. */
	if (trap < task->nr && fit > best->fit && (fit == FIT_EXACT || track->leaves_switch))
		*best = (struct waiting){ task, trap, fit };
}

static struct waiting find_waiting(const struct track *track, const struct event *ev)
{
	const struct event_branch *b = &ev->branch;
	/* Nearly always, it waits on the stack to which the exception returns. */
	struct track_task *task = task_at(track, branch_space(b), b->sp);
	struct waiting best = { 0 };

	if (task)
		better_waiting(track, ev, task, &best);
	for (task = track->newest; task && best.fit < FIT_EXACT; task = task->older)
		better_waiting(track, ev, task, &best);
	return best;
}

/* System calls that create a process */

static struct track_fork *fork_at(struct track *track, uint64_t resume)
{
	return &track->forks[resume * 0x9e3779b97f4a7c15ull >> 58];
}

/* Saves the callers of a system call, for a child: the parent may be elsewhere by then. */
static void note_fork(struct track *track, const struct track_task *task, uint64_t resume,
		      uint64_t sp)
{
	struct track_fork *fork = fork_at(track, resume);

	GROW(fork->frames, task->nr, fork->cap);
	if (task->nr)
		memcpy(fork->frames, task->frames, task->nr * sizeof(*fork->frames));
	fork->nr = task->nr;
	fork->resume = resume;
	fork->sp = sp;
	fork->mark = task->mark;
	fork->doubt = task->doubt;
	fork->rooted = task->rooted;
}

/* A new process returns from its parent's system call, so it gets the parent's callers. */
static struct track_task *fork_task(struct track *track, const struct event *ev)
{
	struct track_task *task = task_new(track, ev);
	const struct track_fork *fork = fork_at(track, ev->branch.to);

	if (!fork->resume || fork->resume != ev->branch.to ||
	    (fork->sp && ev->branch.sp && fork->sp != ev->branch.sp))
		return task;
	GROW(task->frames, fork->nr, task->cap);
	if (fork->nr)
		memcpy(task->frames, fork->frames, fork->nr * sizeof(*task->frames));
	task->nr = fork->nr;
	task->mark = fork->mark;
	task->doubt = fork->doubt;
	task->rooted = fork->rooted;
	return task;
}

/* Guests of a hypervisor */

/* Finds the task that ran in a guest when that left, or the hypervisor that entered the guest. */
static struct track_task *take_side(struct track *track, uint16_t guest, bool hypervisor)
{
	struct track_task *task = guest ? track->newest : NULL;

	while (task && (task->guest != guest || task->hypervisor != hypervisor))
		task = task->older;
	if (task)
		task_take(track, task);
	return task;
}

static void leave_side(struct track *track, struct track_task *task, uint16_t guest,
		       bool hypervisor)
{
	task->guest = guest;
	task->hypervisor = hypervisor;
	task_leave(track, task);
}

/* The cpu's task, in a guest, was interrupted. The hypervisor goes on. */
static void leave_guest(struct track *track, struct track_strand *strand, const struct event *ev)
{
	struct track_task *hypervisor = take_side(track, strand->guest, true);

	leave_side(track, strand->task, strand->guest, false);
	strand->task = hypervisor ? hypervisor : task_new(track, ev);
	strand->guest = ev->branch.guest;
	task_prune(strand->task, ev->branch.sp);
	task_go(track, strand->task, ev);
}

void on_enter(struct track *track, struct track_strand *strand, const struct event *ev)
{
	const struct event_branch *b = &ev->branch;
	struct track_task *task = strand->task;
	struct event trap = *ev;
	size_t nr = task->nr;
	uint64_t sp = moved_sp(strand, b);
	bool fresh;

	/* The machine itself handled the call, as QEMU does for PSCI and semihosting. */
	if (b->to == b->next && b->context == strand->context && b->guest == strand->guest) {
		task_go(track, task, ev);
		strand->sp = b->sp ? b->sp : sp;
		return;
	}
	if (b->left)
		sp = b->left;
	track->at->traps++;
	task_prune(task, sp);
	if (!b->next && task->nr < nr)
		trap.branch.from = task->frames[task->nr].resume; /* it has returned there */
	if (!trap.branch.from)
		trap.branch.from = strand->at;
	if (strand->context == IP_USER && b->next > b->from)
		note_fork(track, task, b->next, sp);
	leave_stack(top_stack(task), sp);
	fresh = task_is_fresh(task);
	task_push(track, strand, &trap, TRACK_TRAP, sp);
	top_frame(task)->fresh = fresh;
	task->fresh = NOT_FRESH;
	if (b->guest == strand->guest)
		task_use_stack(task, ev, b->sp, 0);
	else
		leave_guest(track, strand, ev);
	strand->sp = b->sp;
}

/* Returns from exceptions */

/* Removes the stacks that were used since the exception at this frame. */
static void drop_stacks(struct track_task *task, size_t frame)
{
	while (task->nr_stacks > 1 && top_stack(task)->depth > frame)
		task_end_stacks(task, task->nr_stacks - 1);
}

/* Adds the call or return right before an exception, known only at its end. */
static void finish_step(struct track *track, struct track_strand *strand,
			const struct track_frame *trap, const struct event *ev)
{
	struct track_task *task = strand->task;
	const struct track_frame *top = top_frame(task);
	struct event call = *ev;

	if (top && top->kind != TRACK_TRAP && top->sp && top->sp == ev->branch.sp &&
	    (top->resume == ev->branch.to || (trap->fresh && is_in_caller(track, task, ev)))) {
		task_pop(task, task->nr - 1);
		return;
	}
	if (!trap->after ||
	    track_function(track, ev, ev->branch.to) == track_function(track, ev, trap->after)) {
		task_go(track, task, ev);
		return;
	}
	call.branch.next = trap->after;
	call.branch.pushed = track->pushed;
	strand->context = trap->context;
	strand->space = trap->space;
	task_push(track, strand, &call, TRACK_CALL,
		  ev->branch.sp ? ev->branch.sp + track->pushed : 0);
}

/*
 * The kernel goes on in another function than the interrupted one. Either an exception table says so, or
 * this return ended the exception below, too, or firmware passed the exception on to the kernel.
 */
static void doubt_return(struct track *track, struct track_task *task,
			 const struct track_frame *trap, const struct event *ev)
{
	size_t below = above_trap(task);

	if (trap->context == IP_USER ||
	    track_function(track, ev, ev->branch.to) == track_function(track, ev, trap->resume))
		return;
	task->doubt = below ? below : task->nr;
}

void end_trap(struct track *track, struct track_strand *strand, size_t frame,
	      const struct event *ev)
{
	struct track_task *task = strand->task;
	struct track_frame trap = task->frames[frame];

	track->at->leaves_found++;
	drop_stacks(task, frame);
	task_pop(task, frame);
	task->fresh = NOT_FRESH;
	if (!ev->branch.to || trap.resume == ev->branch.to)
		return;
	if (!trap.resume) {
		finish_step(track, strand, &trap, ev);
		return;
	}
	doubt_return(track, task, &trap, ev);
	task_go(track, task, ev);
}

/* The cpu's task, of a hypervisor, enters a guest: for the first time, or where the guest left. */
static void enter_guest(struct track *track, struct track_strand *strand, const struct event *ev)
{
	struct track_task *guest = take_side(track, ev->branch.guest, false);

	track->at->leaves++;
	if (ev->branch.left)
		leave_stack(top_stack(strand->task), ev->branch.left);
	leave_side(track, strand->task, ev->branch.guest, true);
	strand->task = guest ? guest : task_new(track, ev);
	strand->guest = ev->branch.guest;
	if (!guest || !just_entered(guest))
		return;
	end_trap(track, strand, guest->nr - 1, ev);
	task_prune(guest, ev->branch.sp);
}

size_t trap_in(const struct track_task *task, uint64_t context)
{
	size_t found = task->nr;

	for (size_t i = task->nr; i-- > 0;) {
		if (task->frames[i].kind != TRACK_TRAP)
			continue;
		if (task->frames[i].context == context)
			return i;
		if (found == task->nr)
			found = i;
	}
	return found;
}

/*
 * The kernel returns to another task. This one waits where it was interrupted; the kernel's frames above
 * are over, as in kernels with one stack per cpu. A task that was not interrupted has ended, unless it
 * left its stack just now.
 */
static void wait_in_trap(struct track *track, struct track_task *task, const struct event *ev)
{
	size_t trap = trap_in(task, ev->branch.context);

	if (trap == task->nr && ev->branch.taken) {
		leave_stack(top_stack(task), ev->branch.left);
		task_leave(track, task);
		return;
	}
	if (trap == task->nr) {
		task_end(track, task);
		return;
	}
	drop_stacks(task, trap);
	task_cut(task, trap + 1);
	task_leave(track, task);
}

/* Code that counted as a signal handler of the interrupted program becomes a task. */
static void split_thread(struct track *track, struct track_task *task, size_t frame, bool doubtful)
{
	unsigned stack = task->nr_stacks;

	while (stack > 1 && task->stacks[stack - 1].depth > frame)
		stack--;
	if (doubtful)
		task_doubt_stacks(track, task, stack);
	task_leave(track, task_split(track, task, frame + 1, stack));
}

static void resume_waiting(struct track *track, struct track_strand *strand, struct waiting next,
			   const struct event *ev)
{
	task_take(track, next.task);
	track->leaves_switch = true;
	if (next.frame + 1 < next.task->nr)
		split_thread(track, next.task, next.frame, true);
	wait_in_trap(track, strand->task, ev);
	strand->task = next.task;
	strand->task->known = true;
	end_trap(track, strand, next.frame, ev);
}

/*
 * The task returns to the code of its exception `frame`. If a program was interrupted again since then,
 * either a signal handler ended, or the program above is another thread, to which the kernel returns
 * later.
 */
static void return_from(struct track *track, struct track_strand *strand, size_t frame,
			const struct event *ev)
{
	struct track_task *task = strand->task;
	size_t inner = trap_in(task, ev->branch.context);

	if (inner > frame && inner < task->nr && ev->branch.context == IP_USER) {
		bool thread = task->frames[inner].interrupt; /* handlers end by a system call */

		track->leaves_switch |= thread;
		drop_stacks(task, inner);
		task_cut(task, inner + 1);
		split_thread(track, task, frame, thread);
	}
	end_trap(track, strand, frame, ev);
}

void call_handler(struct track *track, struct track_strand *strand, size_t frame,
		  const struct event *ev)
{
	struct track_task *task = strand->task;
	struct track_frame trap = task->frames[frame];
	struct event handler = *ev;

	track->at->leaves_found++;
	drop_stacks(task, frame);
	task_pop(task, frame);
	handler.branch.next = handler.branch.from = trap.resume;
	if (!trap.resume) /* somewhere in the function */
		handler.branch.from = track->ops->start(track->data, trap.mark);
	strand->context = trap.context;
	strand->space = trap.space;
	strand->pid = ev->pid;
	task_push(track, strand, &handler, TRACK_TRAP, trap.sp);
	top_frame(task)->interrupt = true;
	task_use_stack(task, ev, ev->branch.sp, 0);
}

/*
 * Whether a program continues in a signal handler: lower on the stack of the code that the task's
 * exception `frame` interrupted. In a kernel with one stack per cpu, it is more likely another thread.
 */
static bool is_handler(const struct track *track, const struct track_task *task, size_t frame,
		       const struct event *ev)
{
	const struct track_frame *trap;

	if (frame >= task->nr)
		return false;
	trap = &task->frames[frame];
	return trap->context == IP_USER && !track->leaves_switch &&
	       trap->space == ev->branch.space && trap->resume &&
	       (!trap->sp || !ev->branch.sp || ev->branch.sp < trap->sp);
}

/* The kernel returns to a program that the trace has not seen, or not at this place. */
static void leave_to_program(struct track *track, struct track_strand *strand,
			     const struct event *ev)
{
	struct track_task *task = strand->task;
	size_t trap = trap_in(task, IP_USER);

	/* A kernel that abandons its own calls to return to a program has one stack per cpu. */
	track->leaves_switch |= trap + 1 < task->nr;
	if (is_handler(track, task, trap, ev)) {
		call_handler(track, strand, trap, ev);
		return;
	}
	if (trap == task->nr && task_is_fresh(task) && !task->known && task->nr_stacks > 1) {
		task_end_stacks(task, task->nr_stacks - 1);
		task_leave(track, task);
	} else {
		wait_in_trap(track, task, ev);
	}
	strand->task = fork_task(track, ev);
}

/* To serialize, Linux returns from an exception that did not happen, to the next instruction. */
static bool is_serializing(const struct track_strand *strand, const struct event *ev)
{
	const struct event_branch *b = &ev->branch;

	return !b->left && b->context == strand->context && b->to > b->from &&
	       b->to - b->from <= RULE_SERIALIZE &&
	       (!b->sp || b->sp <= top_stack(strand->task)->high);
}

/* Whether this is where the exception entered the kernel, or what the cpu pushed above it. */
static bool is_near_entry(const struct track_frame *trap, const struct track_stack *entry,
			  const struct event *ev, uint8_t word)
{
	uint64_t sp = ev->branch.sp;

	if (entry->site || !entry->high || sp < entry->high ||
	    entry->space != branch_space(&ev->branch))
		return false;
	if (frame_space(trap) == entry->space)
		return sp <= trap->sp;
	return sp - entry->high <= RULE_ENTRY * word;
}

/*
 * Finds the exception whose handler returns to a place near its entry. Returns nr if there is none.
 * In the kernel, it may have lowered the stack pointer to return to: Linux on x86 emulates calls
 * this way.
 */
static size_t changed_trap(const struct track *track, const struct track_task *task,
			   const struct event *ev, unsigned *stack)
{
	size_t trap = trap_in(task, ev->branch.context);

	if (!track->pushed || trap == task->nr)
		return task->nr;
	for (*stack = task->nr_stacks; *stack > 0;) {
		const struct track_stack *at = &task->stacks[--*stack];

		if (at->depth == trap + 1 &&
		    is_near_entry(&task->frames[trap], at, ev, track->pushed))
			return trap;
	}
	return task->nr;
}

/*
 * Whether the exception returns to the entry of another one, which interrupted the same code: the
 * code to which it returned was interrupted again at once, or it came before the other one's
 * handler ran. An emulated call pushes only a return address.
 */
static bool is_entry(const struct track *track, const struct track_frame *trap,
		     const struct event *ev)
{
	return frame_space(trap) != branch_space(&ev->branch) ||
	       trap->sp - ev->branch.sp > track->pushed;
}

static void interrupt_again(struct track *track, struct track_task *task, size_t trap,
			    unsigned stack, const struct event *ev)
{
	const struct track_frame *frame = &task->frames[trap];

	task_cut(task, trap + 1);
	task_end_stacks(task, stack + 1);
	task->stacks[stack].high = ev->branch.sp;
	task->mark = track->ops->below(track->data, frame->mark, frame, ev);
}

/* The kernel returns to code of its own that no exception has interrupted. */
static void leave_to_kernel(struct track *track, struct track_strand *strand,
			    const struct event *ev)
{
	struct track_task *task = strand->task;
	unsigned stack = 0;
	size_t trap = changed_trap(track, task, ev, &stack);
	bool doubtful;

	/* If this return replaced the stack, it is not the stack to which the task switched before. */
	if (task_is_fresh(task) && !ev->branch.left) {
		task_start(track, strand, ev);
		return;
	}
	if (trap < task->nr && is_entry(track, &task->frames[trap], ev)) {
		interrupt_again(track, task, trap, stack, ev);
		return;
	}
	if (trap < task->nr) {
		end_trap(track, strand, trap, ev);
		return;
	}
	/* The trace did not see the exception. */
	if (stack_has(top_stack(task), branch_space(&ev->branch), ev->branch.sp)) {
		task_prune(task, ev->branch.sp);
		task_go(track, task, ev);
		return;
	}
	doubtful = task->doubt != SIZE_MAX;
	wait_in_trap(track, task, ev);
	strand->task = task_new(track, ev);
	if (doubtful)
		strand->task->doubt = 0;
}

/* Whether this ends the last call: a kernel may drop to its own level this way. */
static bool ends_call(struct track_task *task, const struct event *ev)
{
	const struct track_frame *top = top_frame(task);

	return top && top->kind != TRACK_TRAP && top->resume == ev->branch.to;
}

/* The frame of an exception at this stack pointer; NULL if there is none. */
static const struct track_frame *trap_at(const struct track_task *task, uint64_t sp)
{
	for (size_t i = task->nr; i-- > 0;) {
		if (task->frames[i].kind == TRACK_TRAP && task->frames[i].sp == sp)
			return &task->frames[i];
	}
	return NULL;
}

/*
 * Another exception interrupted the target of this return before it ran, so that the trace knows only its
 * stack pointer, and the context is a guess.
 */
void complete_leave(const struct track *track, const struct track_strand *strand, struct event *ev)
{
	struct event_branch *b = &ev->branch;
	const struct track_frame *trap = b->sp ? trap_at(strand->task, b->sp) : NULL;

	for (struct track_task *task = track->newest; task && !trap && b->sp; task = task->older)
		trap = just_entered(task) ? trap_at(task, b->sp) : NULL;
	if (!trap)
		return;
	b->to = trap->resume;
	b->context = trap->context;
	b->space = trap->space;
	ev->pid = trap->pid;
}

void on_leave(struct track *track, struct track_strand *strand, const struct event *ev)
{
	struct track_task *task = strand->task;
	struct waiting other = { 0 };
	enum fit own_fit;
	size_t own;

	if (ev->branch.guest != strand->guest) {
		enter_guest(track, strand, ev);
		return;
	}
	own = own_trap(task, ev, &own_fit);
	if (own_fit < FIT_EXACT && !strand->thread)
		other = find_waiting(track, ev);
	if (own_fit == FIT_NONE && !other.task) {
		if (ends_call(task, ev)) {
			task_pop(task, task->nr - 1);
			return;
		}
		if (is_serializing(strand, ev)) {
			task_go(track, task, ev);
			return;
		}
	}
	track->at->leaves++;
	if (other.fit > own_fit)
		resume_waiting(track, strand, other, ev);
	else if (strand->thread && own_fit != FIT_NONE)
		end_trap(track, strand, own, ev);
	else if (strand->thread)
		thread_leave(track, strand, ev);
	else if (own_fit != FIT_NONE)
		return_from(track, strand, own, ev);
	else if (ev->branch.context == IP_USER)
		leave_to_program(track, strand, ev);
	else
		leave_to_kernel(track, strand, ev);
}

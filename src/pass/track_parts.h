/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Shared by the files of track.
 *
 *	track		what each kind of branch does
 *	track_stack	one task: its frames and stacks
 *	track_tasks	which task runs: how code leaves and resumes tasks
 *	track_trap	exceptions, system calls, and the returns from them
 *	track_thread	threads that the data names
 */
#ifndef KSCOPE_PASS_TRACK_PARTS_H
#define KSCOPE_PASS_TRACK_PARTS_H

#include "pass/track.h"

#define TRACK_STACKS 16
#define TRACK_FORKS 64
#define TRACK_SITES 256
#define NOT_FRESH SIZE_MAX

/* A stack that a task uses, or a part of one: each exception begins a new one. */
struct track_stack {
	size_t depth;	    /* number of frames on the stacks below */
	uint64_t low, high; /* low: where it was left; both 0 if not known */
	uint64_t space;	    /* see space_of() */
	uint64_t site;	    /* where code switched to it; 0: an exception did */
	/* Instructions on it, and on stacks above it that are over; without doubtful ones. */
	uint64_t ran, rooted;
};

struct track_task {
	struct track_frame *frames; /* from the root */
	size_t nr, cap;
	size_t kept; /* see struct track_view; those above it are new */
	size_t beyond;
	uint32_t id;
	void *own;				 /* the listener's */
	struct track_stack stacks[TRACK_STACKS]; /* at least one */
	unsigned nr_stacks;
	uint32_t mark; /* of the code that runs */
	size_t fresh;  /* its depth when code switched to it; NOT_FRESH: it has gone on */
	size_t doubt;  /* its frames are doubtful from this depth on; SIZE_MAX: none */
	struct track_task *newer, *older; /* those that were left after and before it */
	uint32_t pid;			  /* if `ended` */
	/* If it was left at a vmrun or where its guest leaves: the guest, and which of the two. */
	uint16_t guest;
	bool hypervisor;
	bool met;    /* it ran when the trace began, so it may have callers from before */
	bool first;  /* it ran when the trace or the kernel began */
	bool known;  /* code resumed it: it has run before */
	bool rooted; /* its first frame is where it began */
	bool called; /* it has made a call */
	bool ended;  /* left because its trace ended */
};

/* The callers of a system call, for a child process that may return from it, too. */
struct track_fork {
	uint64_t resume, sp;
	struct track_frame *frames;
	size_t nr, cap;
	uint32_t mark;
	size_t doubt;
	bool rooted;
};

struct track_strand {
	struct track_task *task;
	uint64_t sp; /* 0: unknown */
	uint64_t at; /* where the last branch led */
	bool rose;   /* the last branch moved it above all that was seen on its stack */
	uint64_t context, space;
	uint64_t since_near; /* instructions since the last TRACK_NEAR */
	uint32_t pid;
	uint16_t guest;
	uint64_t returns, lost; /* since the trace last had a stack pointer; lost: without a call */
	bool flat;		/* see RULE_LOST */
	bool firmware;		/* it runs code before the kernel, which is in no known binary */
	bool thread;		/* it is one, not a cpu */
	bool away;		/* of a thread: it runs code that is not traced */
	uint64_t key;		/* of a thread: see track_thread() */
	uint32_t next_free;	/* of a thread that has ended */
};

static inline uint64_t distance(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

static inline struct track_stack *top_stack(struct track_task *task)
{
	return &task->stacks[task->nr_stacks - 1];
}

static inline struct track_frame *top_frame(struct track_task *task)
{
	return task->nr ? &task->frames[task->nr - 1] : NULL;
}

/* The depth above the innermost exception that this task is in; 0: it is in none. */
static inline size_t above_trap(const struct track_task *task)
{
	size_t depth = task->nr;

	while (depth && task->frames[depth - 1].kind != TRACK_TRAP)
		depth--;
	return depth;
}

/* Whether nothing was called since the exception that this task is in. */
static inline bool just_entered(struct track_task *task)
{
	const struct track_frame *top = top_frame(task);

	return top && top->kind == TRACK_TRAP;
}

/* The stack pointer to which the code moved it, 0 if unknown. */
static inline uint64_t moved_sp(const struct track_strand *strand, const struct event_branch *b)
{
	return strand->sp && b->has_moved ? strand->sp + (uint64_t)(int64_t)b->moved : 0;
}

/*
 * Programs have stacks at the same addresses, and so have guests; all stacks of a kernel are in one
 * space.
 */
static inline uint64_t space_of(uint64_t context, uint64_t space, uint16_t guest)
{
	return context == IP_USER ? space : IP_KERNEL ^ (uint64_t)guest << 32;
}

static inline uint64_t branch_space(const struct event_branch *b)
{
	return space_of(b->context, b->space, b->guest);
}

static inline uint64_t frame_space(const struct track_frame *frame)
{
	return space_of(frame->context, frame->space, frame->guest);
}

/* The code leaves this stack, for another one or an exception. */
static inline void leave_stack(struct track_stack *stack, uint64_t sp)
{
	stack->low = sp;
	if (stack->high < sp)
		stack->high = sp;
}

/* Whether a stack pointer is in the used part of this stack. */
static inline bool stack_has(const struct track_stack *stack, uint64_t space, uint64_t sp)
{
	return stack->low && stack->space == space && sp >= stack->low && sp <= stack->high;
}

/* On x86 the return address lies below frame->sp, so a call that runs has a lower sp. */
static inline bool is_over(const struct track_frame *frame, uint64_t sp)
{
	return frame->sp && (frame->pushed ? sp >= frame->sp : sp > frame->sp);
}

void task_prune_calls(struct track_task *task, uint64_t sp);

/* The task's stack pointer is here: calls below it are over. Usually, none is. */
static inline void task_prune(struct track_task *task, uint64_t sp)
{
	if (sp && task->nr && is_over(&task->frames[task->nr - 1], sp))
		task_prune_calls(task, sp);
}

/* Other code runs below the same callers. */
static inline void task_go(struct track *track, struct track_task *task, const struct event *ev)
{
	task->mark = track->ops->beside(track->data, task->mark, ev);
}

/* track */

/* The start of the function at an address in the event's context; 0 if unknown. */
uint64_t track_function(const struct track *track, const struct event *ev, uint64_t address);
/* Whether the event leads into the function that made the last call. */
bool is_in_caller(const struct track *track, struct track_task *task, const struct event *ev);

/* For a return that matches no call, without a stack pointer. True: it is only a jump. */
bool jump_by_rule(struct track_strand *strand, const struct event *ev);

/* track_stack */

/* Creates a task that begins at an event's target. Its cpu owns it, or the list `left`. */
struct track_task *task_new(struct track *track, const struct event *ev);
void task_free(struct track_task *task);
/* Tells the listener, and frees it. */
void task_end(struct track *track, struct track_task *task);
/* Removes the frames from this depth on, without going on in the caller of the first one. */
static inline void task_cut(struct track_task *task, size_t depth)
{
	task->nr = depth;
	if (task->kept > depth)
		task->kept = depth;
}

void task_push(struct track *track, struct track_strand *strand, const struct event *ev,
	       enum track_kind kind, uint64_t sp);
/* Removes the frames from this depth on; the caller of the first one continues. */
void task_pop(struct track_task *task, size_t depth);
/* Adds the stack of an event's target. site: where code switched to it; 0: an exception did. */
void task_use_stack(struct track_task *task, const struct event *ev, uint64_t sp, uint64_t site);
/* The stacks from this one on are over. */
void task_end_stacks(struct track_task *task, unsigned first);
/* What ran on the stacks from this one on turns out to be doubtful. */
void task_doubt_stacks(struct track *track, struct track_task *task, unsigned first);
/* Moves the frames from `depth` on, and the stacks from first_stack on, to a new task. */
struct track_task *task_split(struct track *track, struct track_task *task, size_t depth,
			      unsigned first_stack);
/* Forgets the first frames: their callers are unknown, or there are too many. */
void task_forget(struct track *track, struct track_task *task, size_t nr);

/* track_tasks */

/* Adds a task to `left`: it no longer runs. */
void task_leave(struct track *track, struct track_task *task);
/* Removes a task from `left`. */
void task_take(struct track *track, struct track_task *task);
/* Finds the task that was left on the stack at sp. Returns NULL if there is none. */
struct track_task *task_at(const struct track *track, uint64_t space, uint64_t sp);
/* An instruction replaced the stack pointer `left` by `taken`. */
void stack_replaced(struct track *track, struct track_strand *strand, const struct event *ev,
		    uint64_t left, uint64_t taken);
/* The code that has run since the last switch of stacks turned out to be a new task. */
void task_start(struct track *track, struct track_strand *strand, const struct event *ev);
/* Whether the task is at the depth at which code switched to it, and never returned from there. */
bool task_is_fresh(const struct track_task *task);
void note_site(struct track *track, uint64_t site);

/* track_trap */

void on_enter(struct track *track, struct track_strand *strand, const struct event *ev);
/* Finds the innermost exception in code of this context, else any. Returns nr if there is none. */
size_t trap_in(const struct track_task *task, uint64_t context);
/* Ends the exception at this frame: the interrupted code goes on. */
void end_trap(struct track *track, struct track_strand *strand, size_t frame,
	      const struct event *ev);
/* Pushes a signal handler, which interrupted the program where the exception `frame` did. */
void call_handler(struct track *track, struct track_strand *strand, size_t frame,
		  const struct event *ev);
void complete_leave(const struct track *track, const struct track_strand *strand, struct event *ev);
void on_leave(struct track *track, struct track_strand *strand, const struct event *ev);

/* track_thread */

/* Each cpu has an idle thread of its own, and they all have the tid 0. */
static inline uint64_t thread_key(const struct event *ev)
{
	bool many = !ev->tid || ev->tid == NO_TASK;

	return (many ? (uint64_t)ev->cpu + 1 : 0) << 32 | ev->tid;
}

/* The strand of an event's thread, which is usually that of the event before. */
static inline uint32_t thread_number(struct track *track, const struct event *ev)
{
	uint32_t last = track->last_thread;

	if (last != TRACK_NO_STRAND && track->threads[last].key == thread_key(ev))
		return TRACK_FIRST_THREAD + last;
	return track_thread(track, ev);
}

static inline struct track_strand *thread_at(struct track *track, uint32_t strand)
{
	return &track->threads[strand - TRACK_FIRST_THREAD];
}

/* The thread has ended: another one may get its strand. */
void thread_free(struct track *track, uint32_t strand);
void thread_jump(struct track *track, struct track_strand *strand, const struct event *ev);
/* A return to an address from which nothing was called. */
void thread_return(struct track *track, struct track_strand *strand, const struct event *ev);
/* A return from an exception that the trace has not seen, or to another place than where it came. */
void thread_leave(struct track *track, struct track_strand *strand, const struct event *ev);
/* Other branches that differ from those of a cpu. Returns false if this one does not. */
bool thread_branch(struct track *track, struct track_strand *strand, const struct event *ev);

#endif

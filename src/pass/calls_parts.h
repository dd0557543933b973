/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the files of calls share.
 *
 *	calls		what each kind of branch does
 *	calls_tasks	tasks, their stacks of calls, and which of them runs
 *	calls_sums	instructions by path and leaf, and the samples made of them
 */
#ifndef KSCOPE_PASS_CALLS_PARTS_H
#define KSCOPE_PASS_CALLS_PARTS_H

#include "pass/calls.h"

#define CALLS_MARKS 8
#define CALLS_FORKS 64

struct calls_path { /* from the root: where the callers go on */
	uint64_t resume;
	uint64_t context;
	uint32_t parent;
	uint32_t frame;	   /* the handle of `resume` */
	uint32_t pid, tid; /* of the root */
	bool trap;	   /* interrupted there, and did not call */
};

struct calls_counter {
	uint64_t leaf, context;
	uint64_t count;
	uint32_t path;
	uint32_t frame; /* the handle of `leaf` */
};

struct calls_memo {
	uint64_t resume, to;
	uint32_t from, counter;
	uint32_t version;
};

enum calls_kind { CALLS_CALL, CALLS_NEAR, CALLS_TRAP };

struct calls_frame {
	uint64_t resume; /* where it returns to; 0 if not known */
	uint64_t target; /* what was called */
	uint64_t context;
	uint32_t counter; /* of the caller */
	uint32_t pid;	  /* of the caller */
	enum calls_kind kind;
};

struct calls_mark { /* where a task went on another stack */
	size_t depth;
	uint64_t sp; /* that it left */
	bool resumed;
};

struct calls_task {
	struct calls_frame *frames; /* from the root */
	size_t nr, cap;
	struct calls_mark marks[CALLS_MARKS];
	unsigned nr_marks;
	uint32_t counter; /* that runs */
	uint64_t sp;	  /* where it was left; 0: not by a switch of stacks */
	uint64_t used;	  /* when it was left, in switches */
	bool rooted;	  /* its first frame is where it began */
	bool called;	  /* it did, ever */
	bool ended;	  /* left because the trace did not go on */
};

/* The callers of a system call, for the child that may return from it, too. */
struct calls_fork {
	uint64_t resume;
	struct calls_frame *frames;
	size_t nr, cap;
	uint32_t counter;
	bool rooted;
};

struct calls_cpu {
	struct calls_task *task;
	uint64_t sp; /* of the event before, if it had one */
	uint64_t context;
	uint64_t since_near; /* instructions since a short call */
	uint32_t pid;
	bool entered; /* the event before was a trap */
};

static inline uint64_t distance(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

void sums_init(struct calls *calls);
void sums_release(struct calls *calls);
/* The path, or counter, like `want`; there is one of each. */
uint32_t path_at(struct calls *calls, const struct calls_path *want);
uint32_t counter_at(struct calls *calls, const struct calls_counter *want);
/* The counter of the first thing that a task does. */
uint32_t counter_root(struct calls *calls, const struct event *ev);
/* The counter of another leaf on the same path. */
uint32_t counter_beside(struct calls *calls, uint32_t from, const struct event *ev);
/* The counter of what was called, or interrupted, by a caller that goes on where `caller` says. */
uint32_t counter_below(struct calls *calls, uint32_t from, const struct calls_frame *caller,
		       const struct event *ev);

/* A task that nobody has seen before; the cpu that runs it owns it, or the list of those left. */
struct calls_task *task_new(struct calls *calls, const struct event *ev);
void task_free(struct calls_task *task);
/* It does not run any more. sp: where it left its stack; 0 if that is not known. */
void task_leave(struct calls *calls, struct calls_task *task, uint64_t sp);
/* One of those that were left. */
struct calls_task *task_take(struct calls *calls, size_t i);
/* The task at hand turned out to be another one, which nobody has seen before. */
void task_start(struct calls *calls, struct calls_cpu *cpu, const struct event *ev);
/* The stack pointer went from one place to another between two events. True: to a new stack. */
bool task_switch(struct calls *calls, struct calls_cpu *cpu, uint64_t sp);
/* Nothing was called since the task came to this stack. */
bool task_at_mark(const struct calls_task *task);
void task_push(struct calls *calls, struct calls_cpu *cpu, const struct event *ev,
	       enum calls_kind kind);
/* Back to the frame at this depth, which is gone, too. */
void task_pop(struct calls_task *task, size_t depth);

#endif

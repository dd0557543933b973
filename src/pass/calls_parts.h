/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Shared by the files of calls.
 *
 *	calls		what each kind of branch does
 *	calls_tasks	tasks, their stacks of calls, and which of them runs
 *	calls_sums	instructions by path and leaf, and the samples made from them
 */
#ifndef KSCOPE_PASS_CALLS_PARTS_H
#define KSCOPE_PASS_CALLS_PARTS_H

#include "pass/calls.h"

#define CALLS_MARKS 8
#define CALLS_FORKS 64

struct calls_path { /* a node in the tree of return addresses */
	uint64_t resume;
	uint64_t context;
	uint32_t parent;
	uint32_t frame;	   /* the handle of `resume` */
	uint32_t pid, tid; /* of the root */
	bool trap;	   /* interrupted there, without a call */
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

struct calls_mark { /* where a task switched to another stack */
	size_t depth;
	uint64_t sp; /* of the stack that it left */
	bool resumed;
};

struct calls_task {
	struct calls_frame *frames; /* from the root */
	size_t nr, cap;
	struct calls_mark marks[CALLS_MARKS];
	unsigned nr_marks;
	uint32_t counter; /* of the code that runs */
	uint64_t sp;	  /* when it was left; 0: not by a stack switch */
	uint64_t used;	  /* calls->nr_switches when it was left */
	bool rooted;	  /* its first frame is where it began */
	bool called;	  /* it has made a call */
	bool ended;	  /* left because its trace ended */
};

/* The callers of a system call, for a child process that may return from it, too. */
struct calls_fork {
	uint64_t resume;
	struct calls_frame *frames;
	size_t nr, cap;
	uint32_t counter;
	bool rooted;
};

struct calls_cpu {
	struct calls_task *task;
	uint64_t sp; /* of the previous event, if it had one */
	uint64_t context;
	uint64_t since_near; /* instructions since the last CALLS_NEAR */
	uint32_t pid;
	bool entered; /* the previous event was a trap */
};

static inline uint64_t distance(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

void sums_init(struct calls *calls);
void sums_release(struct calls *calls);
/* Finds or adds the path, or counter, that equals `want`. */
uint32_t path_at(struct calls *calls, const struct calls_path *want);
uint32_t counter_at(struct calls *calls, const struct calls_counter *want);
/* The counter of the code that a task begins with. */
uint32_t counter_root(struct calls *calls, const struct event *ev);
/* The counter of another leaf on the same path. */
uint32_t counter_beside(struct calls *calls, uint32_t from, const struct event *ev);
/* The counter of code that `caller` called, or that interrupted it. */
uint32_t counter_below(struct calls *calls, uint32_t from, const struct calls_frame *caller,
		       const struct event *ev);

/* Creates a task. The cpu that runs it owns it, or the list `left`. */
struct calls_task *task_new(struct calls *calls, const struct event *ev);
void task_free(struct calls_task *task);
/* Adds a task to `left`. sp: its stack pointer; 0 if unknown. */
void task_leave(struct calls *calls, struct calls_task *task, uint64_t sp);
/* Removes a task from `left`. */
struct calls_task *task_take(struct calls *calls, size_t i);
/* The code that runs since the task's last mark turned out to be a new task. */
void task_start(struct calls *calls, struct calls_cpu *cpu, const struct event *ev);
/* The stack pointer changed between two events. True: to another task's or to a new stack. */
bool task_switch(struct calls *calls, struct calls_cpu *cpu, uint64_t sp);
/* Whether nothing was called since the task switched to this stack. */
bool task_at_mark(const struct calls_task *task);
void task_push(struct calls *calls, struct calls_cpu *cpu, const struct event *ev,
	       enum calls_kind kind);
/* Removes the frames from this depth on. */
void task_pop(struct calls_task *task, size_t depth);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * track: keeps the stack of calls of every task, from the branches of a control flow trace. It knows
 * neither names nor tables: it tells a listener which code runs below which callers, and for how long.
 *
 * A trace does not say which task runs, but the stack pointers do, exactly:
 *
 *	- Every stack has an extent, from the stack pointer at which its task left it to the highest
 *	  stack pointer seen on it. An instruction that sets the stack pointer to an address in the
 *	  extent of another task's stack resumes that task. Programs in different address spaces use
 *	  the same addresses, so the extent of a program's stack belongs to its address space.
 *	- The return from an exception resumes the task that was interrupted at that stack pointer.
 *	- A hypervisor and each of its guests are tasks: when a guest leaves, its hypervisor goes on with the
 *	  task that entered the guest.
 *	- On a stack that nobody used before, a return to an address from which nothing was called
 *	  starts a new task; any other code, such as an interrupt handler, continues on behalf of the
 *	  task that switched to this stack.
 *	- A call is over when the stack pointer is above it, however the code got there.
 *
 * If the data names the threads, each of them is a task, and its branches need no stack pointer
 * (track_thread.c).
 *
 * Where the stack pointer is unknown, the rules of thumb in track_rules.h decide. The tracker leaves out
 * a caller that it does not know, and never invents one; if the rules fail, it leaves out all callers.
 */
#ifndef KSCOPE_PASS_TRACK_H
#define KSCOPE_PASS_TRACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"
#include "model/event.h"

struct track_stats {
	uint64_t branches, instructions;
	uint64_t doubtful; /* instructions in stacks that something contradicts */
	uint64_t rooted;   /* other instructions, in stacks that begin where their task began */
	uint64_t returns, found; /* found: those with a matching call */
	uint64_t jumps;		 /* returns that are jumps: retpolines */
	uint64_t beyond;	 /* returns to callers from before the trace */
	uint64_t traps, leaves, leaves_found;
	uint64_t switches, tasks;
	uint64_t strayed; /* stack pointers that were not where the code moved them */
};

enum track_kind {
	TRACK_CALL,
	TRACK_NEAR, /* a call to the code right after it, which may not be a real call */
	TRACK_TRAP, /* interrupted there, without a call */
};

struct track_frame {
	uint64_t resume; /* where it returns to; 0 if not known */
	uint64_t target; /* what was called */
	uint64_t sp;	 /* after the return; 0 if not known */
	uint64_t after;	 /* see struct event_branch; of a call without `resume`: its address */
	uint64_t context, space;
	uint32_t mark; /* of the caller */
	uint32_t pid;  /* of the caller */
	uint8_t kind;  /* enum track_kind */
	uint8_t pushed;
	uint16_t guest; /* of the caller, see struct event_branch */
	bool interrupt; /* no instruction caused it */
	bool fresh;	/* the task has just been resumed */
	bool guessed;	/* the listener gets a `resume` that is only near the real one */
};

/*
 * The listener. A mark is its handle for a piece of code below certain callers; the tracker keeps one in
 * each frame and one for the code that runs.
 */
struct track_ops {
	/* The code at which a task begins. */
	uint32_t (*root)(void *data, const struct event *ev);
	/* Other code below the same callers. */
	uint32_t (*beside)(void *data, uint32_t mark, const struct event *ev);
	/* Code that `caller` called, or that interrupted it. */
	uint32_t (*below)(void *data, uint32_t mark, const struct track_frame *caller,
			  const struct event *ev);
	/* The callers of a task's first frame are gone: replaces the marks of its frames, and *mark. */
	void (*reroot)(void *data, struct track_frame *frames, size_t nr, uint32_t *mark);
	/* The code ran for this many instructions. */
	void (*run)(void *data, uint32_t mark, uint64_t instructions);
	/* The start of the function at an address, 0 if unknown. */
	uint64_t (*function)(void *data, uint64_t address, uint64_t context, uint32_t pid);
	/* The same of an event's target, and of a mark; the address itself if unknown. */
	uint64_t (*target)(void *data, const struct event *ev);
	uint64_t (*start)(void *data, uint32_t mark);
	/*
	 * The whole function of an event's target, of which it may be a part that the compiler has moved away, and
	 * the function of a mark, as the same handles; 0: unknown.
	 */
	uint32_t (*whole)(void *data, const struct event *ev);
	uint32_t (*name)(void *data, uint32_t mark);
	/* Whether this is kernel code at its final address, not where early code runs. */
	bool (*kernel)(void *data, uint64_t address);
	/* Optional: a task has ended; see struct track_view. */
	void (*ended)(void *data, void *own);
};

/* A task's stack of calls, for listeners that compare it with what it was before the last event. */
struct track_view {
	uint32_t id; /* of the task; no other task ever has it */
	uint32_t mark;
	const struct track_frame *frames; /* from the root */
	size_t nr;
	size_t kept;   /* of the frames, these were there when it was viewed last */
	size_t beyond; /* how often it returned to a caller from before the trace */
	void **own;    /* for the listener; NULL at first */
};

struct track {
	const struct track_ops *ops;
	void *data;
	struct track_strand *cpus, *threads; /* see track_strand() */
	size_t nr_cpus, nr_threads, cap_threads;
	struct hash thread_by_key;
	uint32_t last_thread,
		free_thread;	  /* indexes: of the last event, and of the first free one */
	uint32_t cpu;		  /* of the current event */
	struct track_task **left; /* tasks that are not running, in the order of their stacks */
	size_t nr_left, cap_left;
	struct track_task *newest, *oldest; /* the one that was left last, and first */
	struct track_fork *forks;	    /* by return address */
	uint64_t *sites; /* where code switches from one task to another; a hash */
	struct track_stats stats, unselected;
	struct track_stats *at; /* the one to which the current event counts */
	uint32_t last_id;	/* of a task */
	uint8_t pushed;		/* by a call: the size of a return address on the stack; 0: none */
	bool leaves_switch; /* returns from exceptions switch tasks: a kernel with one stack per cpu */
};

/* Numbers above this share one cpu. */
#define TRACK_CPUS 4096

static inline uint32_t track_cpu_number(uint32_t cpu)
{
	return cpu < TRACK_CPUS ? cpu : TRACK_CPUS;
}

/*
 * A strand is what has its branches in order: a cpu, on which tasks take turns, or a thread, if the data names
 * the threads. Its number holds until its thread ends.
 */
#define TRACK_FIRST_THREAD (TRACK_CPUS + 1)
#define TRACK_NO_STRAND UINT32_MAX

uint32_t track_thread(struct track *track, const struct event *ev);
/* The strand of an event's thread, if that had branches before; else TRACK_NO_STRAND. */
uint32_t track_find_thread(const struct track *track, const struct event *ev);

static inline uint32_t track_strand(struct track *track, const struct event *ev)
{
	if (ev->kind != EVENT_BRANCH || !ev->branch.by_thread)
		return track_cpu_number(ev->cpu);
	return track_thread(track, ev);
}

void track_init(struct track *track, const struct track_ops *ops, void *data);
void track_release(struct track *track); /* also accepts a zeroed struct */
/*
 * Adds an EVENT_BRANCH. Those of one strand must be in order, those of several in order of time. The
 * instructions of an event that is outside the selected time and cpus are not counted.
 */
void track_add(struct track *track, const struct event *ev);
/* Calls `each` for every mark of a task, and stores what it returns. */
void track_marks(struct track *track, uint32_t (*each)(void *data, uint32_t mark), void *data);
/* Where the last branch of a strand led; 0: unknown, or it is not traced. */
uint64_t track_at(const struct track *track, uint32_t strand);
struct track_place {
	uint64_t address, context;
	uint32_t pid; /* of code in user mode */
};
struct track_place track_place(const struct track *track, uint32_t strand);
/* The task that runs in the strand. False: the strand is not traced. */
bool track_view(struct track *track, uint32_t strand, struct track_view *view);
/* Whether it is a thread that runs code which is not traced. */
bool track_away(const struct track *track, uint32_t strand);
/* What the listener stored in its view; NULL: nothing, or the strand is not traced. */
void *track_own(const struct track *track, uint32_t strand);
/*
 * The running task's mark, 0 if the strand is not traced. rooted: its first caller is known; first: it ran
 * when the trace or the kernel began.
 */
uint32_t track_running(const struct track *track, uint32_t strand, bool *rooted, bool *first);

#endif

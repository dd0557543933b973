/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * calls: counts the instructions that were executed in each call stack of a control flow trace. It
 * listens to pass/track, which knows the stacks. Instructions are summed up for each path (the return
 * addresses) and leaf, so memory depends on the code, not on the length of the trace. If the tables
 * still get too large, calls_full() returns true, and the caller takes the sums.
 */
#ifndef KSCOPE_PASS_CALLS_H
#define KSCOPE_PASS_CALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"
#include "model/event.h"
#include "pass/inlines.h"
#include "pass/slices.h"
#include "pass/track.h"

#define CALLS_MAX (4u << 20) /* paths or counters, before they are emitted */

/* How many samples inside the trace agree with the tracker's stacks. */
struct calls_checks {
	uint64_t equal;	    /* all callers are the same */
	uint64_t partial;   /* equal up to the end of the shorter one, which is incomplete */
	uint64_t different; /* one of the two is wrong */
};

struct calls {
	/*
	 * Optional: returns the start of the function at an address, 0 if unknown. With it,
	 * instructions are counted by function instead of by jump target.
	 */
	uint64_t (*function)(void *data, uint64_t address, uint64_t context, uint32_t pid);
	/* Optional: whether this is kernel code at its final address, not where early code runs. */
	bool (*kernel)(void *data, uint64_t address);
	/*
	 * Optional: returns the handle of the frame at an address, by the current maps. The sums
	 * store it, so that code keeps its name after it is unmapped.
	 */
	uint32_t (*frame)(void *data, uint64_t address, uint64_t context, uint32_t pid,
			  bool is_return);
	/*
	 * Optional: whether two frames may be of one function, although function() did not find its
	 * start: they have the same name, or none.
	 */
	bool (*same)(void *data, uint32_t frame, uint32_t other);
	/*
	 * Optional: the handle of the name of a frame's function, and of the whole function, if the frame's is only
	 * a part of it that the compiler has moved away.
	 */
	uint32_t (*name)(void *data, uint32_t frame);
	uint32_t (*whole)(void *data, uint32_t frame);
	/* Optional: returns the handle of a stack, from the one of its callers (0: none) and a frame. */
	uint32_t (*stack)(void *data, uint32_t callers, uint32_t frame);
	void *data;
	uint32_t version; /* of the maps; the caller updates it */

	struct track track;
	struct slices *slices;	 /* also gets all events; NULL: none */
	struct inlines *inlines; /* of which slices are made, too; NULL: none */
	struct calls_checks checks;
	uint64_t notes[NOTE_KINDS]; /* that are selected */
	struct calls_path *paths;
	size_t nr_paths, cap_paths;
	struct calls_counter *counters;
	size_t nr_counters, cap_counters;
	struct hash path_by_key, counter_by_key;
	struct calls_memo *memo;
	struct calls_place *places;
	uint64_t *chain; /* of the current sample, leaf first */
	size_t cap_chain;
	size_t emitted; /* counters that were returned as samples */
};

void calls_init(struct calls *calls);
void calls_release(struct calls *calls); /* also accepts a zeroed struct */
/* Compares an unwound EVENT_CHECK with the trace. It must come in order with its cpu's branches. */
void calls_check(struct calls *calls, const struct event *ev);
/* The start of the function at an address, 0 if unknown. */
uint64_t calls_function(const struct calls *calls, uint64_t address, uint64_t context,
			uint32_t pid);
/* Before and after track_add() of a branch, if there are slices. */
void calls_before_branch(struct calls *calls, const struct event *ev, uint32_t strand);
void calls_after_branch(struct calls *calls, const struct event *ev, uint32_t strand);
/* Adds an EVENT_BRANCH, see track_add(). */
static inline void calls_add(struct calls *calls, const struct event *ev)
{
	uint32_t strand;

	if (!calls->slices) {
		track_add(&calls->track, ev);
		return;
	}
	strand = track_strand(&calls->track, ev);
	calls_before_branch(calls, ev, strand);
	track_add(&calls->track, ev);
	calls_after_branch(calls, ev, strand);
}

/* Adds an EVENT_MASK, if there are slices. It must come in order with its cpu's branches. */
void calls_mask(struct calls *calls, const struct event *ev);
/* Adds an EVENT_NOTE. It must come in order with its thread's branches. */
void calls_note(struct calls *calls, const struct event *ev);
/* The handle of the whole stack at a mark; 0: unknown. */
uint32_t calls_stack(struct calls *calls, uint32_t mark);
/* The marks of open slices are no longer those of the tracker. */
void calls_forget_marks(struct calls *calls);
/* If there are inlines: the code before the branch, and the one after it, in the task's innermost call. */
void calls_run_inlines(struct calls *calls, const struct event *ev, uint32_t strand,
		       struct slices_task *task);
void calls_go_inlines(struct calls *calls, struct slices_task *task, uint32_t strand);
/* How many slices are open if those of inlined functions in the innermost call are not. */
static inline size_t calls_slices(const struct slices_task *task)
{
	size_t nr = task->nr;

	while (nr && task->open[nr - 1].kind == SLICE_INLINE)
		nr--;
	return nr;
}
/* The function at a mark: its handle and its start. */
uint32_t calls_leaf(const struct calls *calls, uint32_t mark, uint64_t *start);
/* The code at a mark: its leaf, and the addresses that it returns to, innermost first. */
struct calls_caller {
	uint64_t address, context;
	bool guessed; /* only near it */
	bool trap;    /* interrupted there */
	bool exact;   /* of a sample: not the address after a call */
};
size_t calls_callers(const struct calls *calls, uint32_t mark, uint64_t *leaf,
		     struct calls_caller *callers, size_t max);
/* The tables are too large: call calls_sample() until it returns false. */
static inline bool calls_full(const struct calls *calls)
{
	return calls->nr_paths > CALLS_MAX || calls->nr_counters > CALLS_MAX;
}
/* Fills in the next sum as a sample. Returns false after the last one, and resets the sums. */
bool calls_sample(struct calls *calls, struct event *ev);

#endif

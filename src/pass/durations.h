/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * durations: sums and quantiles of slices, by function, and of system calls and traps also by program.
 * Memory depends on the code and the tasks that ran, not on the number of calls.
 *
 * All sums of parts that partition a trace add up to those of the whole trace. So a caller from before
 * the trace, which is known only when the task returns to it, counts from then on.
 */
#ifndef KSCOPE_PASS_DURATIONS_H
#define KSCOPE_PASS_DURATIONS_H

#include "base/histogram.h"
#include "model/world.h"

enum durations_kind { DURATIONS_FUNCTION, DURATIONS_SYSCALL, DURATIONS_TRAP, DURATIONS_KINDS };

struct durations_row {
	enum durations_kind kind;
	uint32_t name, binary; /* of the function; of a system call or trap: of its handler */
	uint32_t program;      /* of a system call or trap: the name of its process */
	bool inlined;	       /* the function, where it is not called */
	uint64_t count;	       /* calls that begin in the selection */
	uint64_t open;	       /* of them, those that do not end in it */
	/* The total of a recursive function has only the outer calls. */
	uint64_t self_time, total_time;	      /* in ns */
	uint64_t self_running, total_running; /* of it, the time in which the task did not wait */
	uint64_t self_instructions, total_instructions;
	struct histogram times; /* of the calls that begin and end in the selection */
	/* How many calls are open in this task; in others, it is not known. */
	uint32_t task;
	size_t depth;
	bool from, to; /* of the pair */
};

struct durations {
	struct world *world; /* borrowed */
	struct durations_row *rows;
	size_t nr, cap;
	struct hash index;	  /* of rows */
	struct hash row_of_frame; /* of functions */
	struct durations_task *tasks;
	size_t nr_tasks, cap_tasks;
	struct hash task_index;
	/* Of everything that is selected: */
	uint64_t calls, inlined; /* inlined ones are not calls */
	uint64_t time, running, instructions;
	size_t nr_selected; /* tasks */
	bool counted;	    /* the data has instructions */
	bool has_runs;	    /* the data says when tasks run; else none waits */
	uint64_t gaps, gap_time;
	uint64_t begun, ended; /* slices of functions that are selected */
	/*
	 * The time from each entry of a function to the next entry of another one in the same task. If the
	 * first one is entered again before that, only the later entry counts. NULL: not asked for.
	 */
	const char *from, *to;
	uint64_t entries; /* of the first one */
	struct histogram between;
};

void durations_init(struct durations *durations, struct world *world);
void durations_release(struct durations *durations);
/* Adds an EVENT_SLICE. Those of one task must be nested. One that is `outside` does not count. */
void durations_add(struct durations *durations, const struct event *ev);

enum durations_sort {
	DURATIONS_BY_SELF,
	DURATIONS_BY_TOTAL,
	DURATIONS_BY_CALLS,
	DURATIONS_BY_MAX,
	DURATIONS_BY_NAME
};

/* Sorts the rows, by time or by instructions. No event may follow. */
void durations_sort_rows(struct durations *durations, enum durations_sort sort, bool instructions);

#endif

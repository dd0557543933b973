/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * slices: calls on a time axis, as EVENT_SLICE. A stage that knows when calls begin and end (see
 * calls_slices.c) reports them here; slices emits those that are selected, with their instructions and
 * their footprint.
 *
 * A slice goes on while another task runs. Where the selection begins or ends, slices are cut. So the slices
 * of selections that partition a recording add up to the whole.
 */
#ifndef KSCOPE_PASS_SLICES_H
#define KSCOPE_PASS_SLICES_H

#include "base/hash.h"
#include "model/event.h"
#include "pass/footprint.h"
#include "pass/tids.h"

#define SLICES_FIRST_TID 1000 /* of tasks without one: readers number processes from 1 on */
/* Of threads that share a tid, such as the idle threads of cpus: larger than those of any kernel. */
#define SLICES_SHARED_TID 1000000000
#define SLICE_WORDS 2 /* of bits, for the first lines of a function */

struct slice {		/* a call that is not over */
	uint64_t time;	/* when it began */
	uint32_t frame; /* see struct event_slice */
	uint32_t mark;	/* for the caller */
	uint32_t depth; /* likewise */
	uint64_t start; /* of its function */
	enum slice_kind kind;
	bool cut;      /* it began before */
	unsigned gate; /* enum slices_gate */
	/* While it is shown: */
	uint64_t since;	  /* see struct event_slice */
	uint64_t began;	  /* likewise */
	uint64_t before;  /* instructions of its task before it */
	uint64_t callees; /* instructions of what it called */
	uint64_t cycles_before, callees_cycles;
	uint64_t sampled; /* samples of its task before it */
	uint64_t number;  /* for its footprint */
	int64_t lines;	  /* its lines, less those that count for its caller already */
	uint64_t own_lines;
	uint64_t own[SLICE_WORDS];
};

struct slices_task {
	struct slices_task *next, **link; /* link: what points to it */
	struct slice *open;		  /* from the root */
	size_t nr, cap;
	size_t shown; /* of them, those whose begin was emitted and whose end was not */
	uint64_t instructions, cycles, samples;
	uint64_t first;	      /* its place on the axis of instructions or cycles */
	uint64_t last_number; /* of a slice */
	struct footprint footprint;
	uint64_t began, left; /* when it was first seen, and when it last ran */
	uint64_t last;	      /* the place of the last begin or end that was shown */
	uint64_t least;	      /* where the last task with its tid ended */
	uint32_t pid, tid, cpu;
	uint32_t kind; /* see struct slices */
	bool announced;
	bool lost; /* with part of the trace of its cpu */
	bool late,
		due; /* to be shown from where the selected time begins, and hidden where it ends */
	bool hidden; /* it is not selected */
	bool thread; /* the data names it: it may move between cpus at any time, or have none */
	bool named;  /* its tid is that of the data, and so is its name */
	size_t beyond; /* for the caller */
};

/* A cpu's interrupts. */
struct slices_mask {
	enum event_interrupts interrupts;
	struct slices_masked {
		uint32_t frame, stack; /* where they went off */
		uint32_t pid, tid;
		bool cut; /* they went off before */
	} off;
	/* While it is shown: its place, its time, and the instructions before it. */
	uint64_t since, began, before;
	uint64_t last; /* the place of the last begin or end */
	uint64_t run;  /* instructions before the last change that do not count yet */
	bool shown;
};

struct slices_cpu {
	struct slices_task *task;  /* the one that runs; NULL: none */
	struct slices_task *shown; /* the one that is shown to run */
	uint64_t since, began;	   /* of that, see struct event_slice */
	uint64_t last;		   /* the place where the last one began or ended, or a gap ended */
	uint64_t before, instructions;
	uint64_t cycles_before, cycles;
	uint64_t rate_since, rate_before; /* the same of its rate */
	uint64_t time;			  /* of its last event */
	uint32_t number;
	bool traced, selected; /* traced: it had an event */
	bool rated;	       /* its rate is being measured */
	bool lost;	       /* between slices_lose() and slices_gap() */
	struct slices_mask mask;
};

enum slices_gate { GATE_START = 1, GATE_END = 2 }; /* bits */

struct slices {
	/* A task is about to have its first slice, below this function. Both return 0, or -1 to stop. */
	int (*announce)(void *data, const struct event *ev, uint32_t frame);
	int (*emit)(void *data, struct event *ev);
	/* Optional: tasks of the same process and kind, below this function, get the same tid if they do not overlap. */
	uint32_t (*kind)(void *data, uint32_t pid, uint32_t frame);
	/* Optional: whether the entry of a function begins the selection, and whether its return ends it. */
	unsigned (*gate)(const struct slices *slices, uint32_t frame);
	/* Optional: sets the selected time. Called until it returns true, before which nothing is selected. */
	bool (*window)(void *data, uint64_t *from, uint64_t *until);
	uint32_t start, end; /* for gate(): names of functions; 0: none */
	void *data;
	uint64_t from, until; /* the selected time; `until` is excluded */
	uint64_t length;      /* of a part, in ns; 0: one part */
	enum slice_axis axis;
	uint8_t knows; /* enum slice_knows */
	bool closed;   /* the gate; set it if a function begins the selection */
	bool inlines;  /* for the caller: inlined functions are slices, too */

	struct slices_task *tasks;
	struct tids ended, threads; /* threads: by their tids, instead of kinds */
	struct slices_cpu *cpus;
	size_t nr_cpus;
	uint64_t now;		       /* the time of the current event */
	uint64_t border;	       /* the end of this part */
	uint64_t opened;	       /* when the gate was */
	uint64_t instructions, cycles; /* of all tasks */
	bool live;		       /* the time is selected, and the gate is open */
	bool started;		       /* a function has begun the selection */
	bool finished, failed;
};

void slices_release(struct slices *slices);

/* The axis on which an EVENT_SLICE or EVENT_STRETCH is nested with others: of its task, or one of its cpu. */
struct hash_key slices_axis(const struct event *ev);

/* Call this first for each event. If the time is unknown, or earlier than the last, no time has passed. */
void slices_advance(struct slices *slices, uint64_t time);
/* All slices end. */
int slices_finish(struct slices *slices);

struct slices_task *slices_task(struct slices *slices, uint32_t pid, uint32_t tid, uint32_t cpu);
/* The task has ended, at the time at which it last ran. */
void slices_end_task(struct slices *slices, struct slices_task *task);
/* A slice begins, with the fields up to `cut`. It is shown by slices_run() or slices_show(). */
void slices_open(struct slices *slices, struct slices_task *task, struct slice slice);
/* The slices from this depth on are over. */
void slices_close(struct slices *slices, struct slices_task *task, size_t depth);
/*
 * An outermost slice that began when the task was first seen is open, too. It is shown `early` ns before that, or
 * from now on, if there is no room in the selection. selected: the task is.
 */
void slices_open_early(struct slices *slices, struct slices_task *task, struct slice slice,
		       uint64_t early, bool selected);

/* From now on, the task runs on the cpu; NULL: none does. If the cpu is selected, shows its slices. */
void slices_run(struct slices *slices, uint32_t cpu, struct slices_task *task, bool selected);
/* The same for a task whose cpu is unknown. */
void slices_show(struct slices *slices, struct slices_task *task, bool selected);
/* The same of a task that goes on where it runs: shows what was opened since. */
void slices_go_on(struct slices *slices, struct slices_task *task);
struct slices_code {	   /* that ran */
	uint64_t from, to; /* addresses; 0: unknown */
	uint64_t instructions, cycles;
};

/*
 * The task that runs on the cpu executed this code. A cpu may have no task (NULL), and the cpu of a task may be
 * unknown (NO_CPU).
 */
void slices_charge(struct slices *slices, uint32_t cpu, struct slices_task *task,
		   const struct slices_code *code);
/* The same of a run in parts, between which slices begin and end: call the second one after the last part. */
void slices_charge_part(struct slices *slices, uint32_t cpu, struct slices_task *task,
			const struct slices_code *code);
void slices_charged(struct slices *slices, uint32_t cpu, const struct slices_task *task);
/*
 * The cpu's interrupts are on or off from now on, after this many instructions that were not charged yet.
 * `frame` and `stack` are where they were switched; see struct event_slice.
 */
void slices_mask(struct slices *slices, uint32_t cpu, enum event_interrupts interrupts,
		 uint64_t instructions, uint32_t frame, uint32_t stack);
/*
 * Emits a note of a running task, placed by its instructions or cycles since the last charge. It changes no
 * slice. `task` may be a temporary one, for a thread without slices.
 */
void slices_note(struct slices *slices, const struct slices_task *task, const struct event *note,
		 uint32_t frame);
/*
 * The task was in so many samples, which count instructions, if these are known. The cpu that it ran on is
 * NO_CPU if unknown.
 */
void slices_sample(struct slices *slices, struct slices_task *task, uint32_t cpu, uint64_t samples,
		   uint64_t instructions);
/*
 * Part of the cpu's trace is missing. Call slices_gap() after slices_advance(), and slices_lose() before that, if the
 * loss is known then. What ran on the cpu is cut at its last event, where a gap begins. If the selection ended in
 * between, and an event of another cpu said so first, what ran is shown up to there: whether it went on was unknown.
 */
void slices_lose(struct slices *slices, uint32_t cpu);
void slices_gap(struct slices *slices, uint32_t cpu);
/* The same of a thread's trace, if the data names the threads. The thread ends then. */
void slices_lose_thread(struct slices *slices, struct slices_task *task);
void slices_gap_thread(struct slices *slices, struct slices_task *task);

#endif

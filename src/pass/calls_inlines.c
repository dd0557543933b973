// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Slices of inlined functions. They are inside the slice of the function whose code they are part of, as long as
 * the task is in their code. When that is in the middle of a straight run is found by the number of instructions
 * before it.
 */
#include "pass/calls.h"

/* The functions in which the task is from now on, in its innermost call. */
static void go(struct slices *slices, struct slices_task *task, const struct inlines_part *part)
{
	size_t nr = calls_slices(task), same = 0;

	while (same < part->nr && nr + same < task->nr &&
	       task->open[nr + same].mark == part->in[same].call)
		same++;
	slices_close(slices, task, nr + same);
	for (; nr && same < part->nr; same++)
		slices_open(slices, task,
			    (struct slice){ .time = slices->now,
					    .frame = part->in[same].frame,
					    .mark = part->in[same].call,
					    .depth = task->open[nr - 1].depth,
					    .start = part->in[same].start,
					    .kind = SLICE_INLINE });
}

/* The part of a time, or of cycles, that so many of the instructions of a run take. */
static uint64_t share(uint64_t of, uint64_t done, uint64_t all)
{
	return of / all * done + of % all * done / all;
}

/* A run that passes through several inlined functions. */
static void run_parts(struct slices *slices, struct slices_task *task, uint64_t since,
		      const struct inlines_run *run, const struct event *ev)
{
	uint64_t all = ev->branch.instructions, done = 0, now = slices->now;
	uint64_t cycles = ev->branch.cycles;

	for (size_t i = 0; i < run->nr && (!i || done < all); i++) {
		const struct inlines_part *part = &run->parts[i];
		uint64_t end = i + 1 < run->nr ? inlines_before(run, i + 1, all) : all;

		slices->now = since + share(now - since, done, all);
		if (i) {
			go(slices, task, part);
			slices_go_on(slices, task);
		}
		slices->now = now;
		slices_charge_part(slices, ev->cpu, task,
				   &(struct slices_code){ .from = part->from,
							  .to = part->to,
							  .instructions = end - done,
							  .cycles = share(cycles, end, all) -
								    share(cycles, done, all) });
		done = end;
	}
	slices_charged(slices, ev->cpu, task);
}

/* When the run began: the time of the last event of its strand. */
static uint64_t began(struct slices *slices, const struct slices_task *task, uint32_t cpu)
{
	return task->thread ? task->left : slices->cpus[track_cpu_number(cpu)].time;
}

void calls_run_inlines(struct calls *calls, const struct event *ev, uint32_t strand,
		       struct slices_task *task)
{
	struct track_place from = track_place(&calls->track, strand);
	struct slices *slices = calls->slices;
	uint64_t all = ev->branch.instructions;
	struct inlines_run run = { 0 };

	if (from.address && task && all && all <= UINT32_MAX)
		run = inlines_run(calls->inlines, &from, ev->branch.from);
	if (run.nr > 1)
		run_parts(slices, task, began(slices, task, ev->cpu), &run, ev);
	else
		slices_charge(slices, ev->cpu, task,
			      &(struct slices_code){ .from = from.address,
						     .to = ev->branch.from,
						     .instructions = all,
						     .cycles = ev->branch.cycles });
}

void calls_go_inlines(struct calls *calls, struct slices_task *task, uint32_t strand)
{
	struct track_place at = track_place(&calls->track, strand);
	struct inlines_run run = inlines_run(calls->inlines, &at, at.address);

	go(calls->slices, task, &run.parts[0]);
}

// SPDX-License-Identifier: GPL-2.0-or-later
/* What is shown of a cpu: the tasks that it runs, when interrupts are off, and how busy it is. */
#include "base/mem.h"
#include "pass/slices_parts.h"

void slices_add_cpus(struct slices *s, uint32_t last)
{
	s->cpus = xrealloc(s->cpus, last + 1, sizeof(*s->cpus));
	for (size_t i = s->nr_cpus; i <= last; i++) /* the last one stands for many */
		s->cpus[i] = (struct slices_cpu){ .number = i < TRACK_CPUS ? (uint32_t)i : NO_CPU };
	s->nr_cpus = last + 1;
}

static uint64_t cpu_place(const struct slices *s, const struct slices_cpu *cpu, uint64_t time)
{
	switch (s->axis) {
	case AXIS_TIME: return time;
	case AXIS_CYCLES: return cpu->cycles;
	default: return cpu->instructions;
	}
}

void slices_show_run(struct slices *s, struct slices_cpu *cpu, uint64_t time)
{
	if (cpu->shown || !cpu->task || !cpu->selected)
		return;
	cpu->shown = cpu->task;
	cpu->since = slices_at_least(&cpu->last, cpu_place(s, cpu, time));
	cpu->began = slices_time_at(s, cpu->since, time);
	cpu->before = cpu->instructions;
	cpu->cycles_before = cpu->cycles;
	slices_emit(s, cpu->task, cpu->number, cpu->since,
		    (struct event_slice){ .kind = SLICE_RUN });
}

void slices_hide_run(struct slices *s, struct slices_cpu *cpu, uint64_t time, bool cut)
{
	const struct slices_task *task = cpu->shown;
	uint64_t place;

	if (!task)
		return;
	cpu->shown = NULL;
	place = slices_at_least(&cpu->last, cpu_place(s, cpu, time));
	slices_emit(s, task, cpu->number, place,
		    (struct event_slice){ .kind = SLICE_RUN,
					  .leave = true,
					  .cut = cut,
					  .knows = s->knows,
					  .since = cpu->since,
					  .began = cpu->began,
					  .ended = slices_end_time(s, cpu->began, place, time),
					  .instructions = cpu->instructions - cpu->before,
					  .cycles = cpu->cycles - cpu->cycles_before });
}

/* Interrupts */

static uint64_t mask_place(const struct slices *s, struct slices_cpu *cpu, uint64_t time)
{
	uint64_t place = cpu_place(s, cpu, time);

	if (s->axis == AXIS_INSTRUCTIONS)
		place += cpu->mask.run;

	return slices_at_least(&cpu->mask.last, place);
}

static void emit_mask(struct slices *s, const struct slices_cpu *cpu, uint64_t place,
		      struct event_slice slice)
{
	struct slices_task task = { .pid = cpu->mask.off.pid, .tid = cpu->mask.off.tid };

	slice.kind = SLICE_MASKED;
	slice.frame = cpu->mask.off.frame;
	slices_emit(s, &task, cpu->number, place, slice);
}

void slices_show_mask(struct slices *s, struct slices_cpu *cpu, uint64_t time)
{
	struct slices_mask *mask = &cpu->mask;

	if (mask->shown || mask->interrupts != INTERRUPTS_OFF || !s->live || !cpu->selected)
		return;
	mask->shown = true;
	mask->since = mask_place(s, cpu, time);
	mask->began = slices_time_at(s, mask->since, time);
	mask->before = cpu->instructions + mask->run;
	emit_mask(s, cpu, mask->since, (struct event_slice){ .cut = mask->off.cut });
}

void slices_hide_mask(struct slices *s, struct slices_cpu *cpu, uint64_t time, uint32_t frame,
		      bool cut)
{
	struct slices_mask *mask = &cpu->mask;
	uint64_t now = cpu->instructions + mask->run, place;

	if (!mask->shown)
		return;
	mask->shown = false;
	mask->off.cut = true; /* if it is shown again */
	place = mask_place(s, cpu, time);
	emit_mask(s, cpu, place,
		  (struct event_slice){ .leave = true,
					.cut = cut,
					.knows = s->knows,
					.since = mask->since,
					.began = mask->began,
					.ended = slices_end_time(s, mask->began, place, time),
					.instructions = now > mask->before ? now - mask->before : 0,
					.end_frame = cut ? 0 : frame,
					.stack = mask->off.stack });
}

void slices_mask(struct slices *s, uint32_t number, enum event_interrupts interrupts,
		 uint64_t instructions, uint32_t frame, uint32_t stack)
{
	struct slices_cpu *cpu = slices_cpu(s, number);
	struct slices_mask *mask = &cpu->mask;
	const struct slices_task *task = cpu->task;
	bool cut = mask->interrupts == INTERRUPTS_UNKNOWN;

	if (interrupts == mask->interrupts)
		return;
	mask->run = instructions;
	if (mask->interrupts == INTERRUPTS_OFF)
		slices_hide_mask(s, cpu, s->now, frame, interrupts == INTERRUPTS_UNKNOWN);
	mask->interrupts = interrupts;
	mask->off = (struct slices_masked){ .frame = frame,
					    .stack = stack,
					    .pid = task ? task->pid : NO_TASK,
					    .tid = task ? task->tid : NO_TASK,
					    .cut = cut };
	slices_show_mask(s, cpu, s->now);
}

/* Rates: how busy a cpu is */

void slices_emit_rate(struct slices *s, struct slices_cpu *cpu, uint64_t time)
{
	uint64_t since = cpu->rate_since;

	cpu->rate_since = time > since ? time : since;
	slices_emit(s, NULL, cpu->number, cpu->rate_since,
		    (struct event_slice){ .kind = SLICE_RATE,
					  .since = since,
					  .instructions = cpu->instructions - cpu->rate_before });
	cpu->rate_before = cpu->instructions;
}

void slices_end_rate(struct slices *s, struct slices_cpu *cpu, uint64_t time)
{
	if (!cpu->rated)
		return;
	slices_emit_rate(s, cpu, time);
	slices_emit_rate(s, cpu, time);
	cpu->rated = false;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the files of slices share: places on the axis, and what is shown of a cpu (slices_cpu.c). */
#ifndef KSCOPE_PASS_SLICES_PARTS_H
#define KSCOPE_PASS_SLICES_PARTS_H

#include "pass/slices.h"
#include "pass/track.h"

/*
 * On one axis, places do not run backwards. A task that waited when the selection began, and turns out to have
 * ended before, ends where it began.
 */
static inline uint64_t slices_at_least(uint64_t *last, uint64_t place)
{
	if (*last < place)
		*last = place;
	return *last;
}

/* The time at a place that slices_at_least() may have moved. */
static inline uint64_t slices_time_at(const struct slices *s, uint64_t place, uint64_t time)
{
	return s->axis == AXIS_TIME ? place : time;
}

/* A task that turns out to have ended before it was shown has no time span. */
static inline uint64_t slices_end_time(const struct slices *s, uint64_t began, uint64_t place,
				       uint64_t time)
{
	time = slices_time_at(s, place, time);
	return time > began ? time : began;
}

void slices_emit(struct slices *s, const struct slices_task *task, uint32_t cpu, uint64_t place,
		 struct event_slice slice);

/* Cpus */

void slices_add_cpus(struct slices *s, uint32_t last);

static inline struct slices_cpu *slices_cpu(struct slices *s, uint32_t number)
{
	uint32_t cpu = track_cpu_number(number);

	if (cpu >= s->nr_cpus)
		slices_add_cpus(s, cpu);
	return &s->cpus[cpu];
}

/* The task that runs on the cpu. cut: it goes on. */
void slices_show_run(struct slices *s, struct slices_cpu *cpu, uint64_t time);
void slices_hide_run(struct slices *s, struct slices_cpu *cpu, uint64_t time, bool cut);
/* Interrupts, while they are off. cut: they are still off, or it is not known. */
void slices_show_mask(struct slices *s, struct slices_cpu *cpu, uint64_t time);
void slices_hide_mask(struct slices *s, struct slices_cpu *cpu, uint64_t time, uint32_t frame,
		      bool cut);

/*
 * The rate: how busy the cpu is. It is measured over this many instructions, but not together with a time in which
 * the cpu waits.
 */
#define RATE_INSTRUCTIONS 10000
#define RATE_WAIT 100000 /* ns */

void slices_emit_rate(struct slices *s, struct slices_cpu *cpu, uint64_t time);
/* It is 0 from then on, until it is known again. */
void slices_end_rate(struct slices *s, struct slices_cpu *cpu, uint64_t time);

/* Call this before charging the instructions that the cpu executed up to now. */
static inline void slices_begin_rate(struct slices *s, struct slices_cpu *cpu)
{
	if (!cpu->rated) {
		cpu->rated = true;
		cpu->rate_since = cpu->last;
		cpu->rate_before = cpu->instructions;
	}
	if (s->now - cpu->time >= RATE_WAIT && cpu->time > cpu->rate_since)
		slices_emit_rate(s, cpu, cpu->time);
}

static inline void slices_add_rate(struct slices *s, struct slices_cpu *cpu)
{
	if (cpu->instructions - cpu->rate_before >= RATE_INSTRUCTIONS ||
	    s->now - cpu->rate_since >= RATE_WAIT)
		slices_emit_rate(s, cpu, s->now);
}

#endif

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The scheduler's tick and the profiler's timer, on machines with one timer for each cpu: it is
 * set to the earlier one.
 */
#include "kernel.h"

static struct timer {
	uint64_t tick, sample; /* when they are due; 0: never */
	uint64_t set;	       /* what the machine's timer is set to; 0: it has expired */
} timers[MAX_CPUS];

static void set_earlier(struct timer *t, uint64_t now)
{
	uint64_t due = t->sample && t->sample < t->tick ? t->sample : t->tick;

	if (due == t->set)
		return;
	t->set = due;
	timer_set(due > now ? due - now : 1);
}

void sample_timer(uint64_t ns)
{
	struct timer *t = &timers[current()->cpu];
	uint64_t now = time_ns();

	t->sample = ns ? now + ns : 0;
	set_earlier(t, now);
}

void tick_start(unsigned cpu)
{
	uint64_t now = time_ns();

	timers[cpu].tick = now + TICK_NS;
	set_earlier(&timers[cpu], now);
}

/* tick() comes last: it returns when this task runs again, maybe much later. */
void timer_fired(const struct interrupted *at)
{
	struct timer *t = &timers[current()->cpu];
	uint64_t now = time_ns();
	bool ticks = now >= t->tick, samples = t->sample && now >= t->sample;

	t->set = 0;
	if (ticks)
		t->tick = now + TICK_NS;
	if (samples) {
		t->sample = 0;
		sample_timer_fired(at);
	}
	set_earlier(t, now);
	if (ticks)
		tick();
}

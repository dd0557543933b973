// SPDX-License-Identifier: MIT
/*
 * profiler: the protection domain that takes samples, one for each cpu. It is the parent of what it profiles, and has
 * the highest priority of its cpu, so that nothing of it runs while a sample is taken.
 *
 * On a kernel with PMU faults, an overflow of a counter in a profiled thread is a fault message, and the kernel says who
 * was running. On other kernels there is the timer: children.c finds out who was running.
 */
#include <microkit.h>

#include "domain.h"

#define WAKE 10000000ull    /* ns: how often the profiler wakes the client */
#define LOOK 50000ull	    /* ns: how long before a sample the profiler looks, at least */
#define LOOK_FROM 500000ull /* ns: with shorter periods it does not */

static unsigned this_cpu;
static const struct system_profiler *me;
static bool looks; /* the next interrupt is for a look */
static uint64_t look_ahead = LOOK;
static uint64_t woke_client;

void profiler_init(unsigned cpu)
{
	this_cpu = cpu;
	me = &system_profilers[cpu];
#ifdef CONFIG_PROFILER_ENABLE
	for (unsigned i = 0; i < system_n_children; i++) {
		if (system_children[i].cpu == cpu)
			seL4_TCB_SetFlags(BASE_TCB_CAP + system_children[i].id, 0,
					  seL4_TCBFlag_profile);
	}
#endif
}

static void wake_client(void)
{
	uint64_t now = clock_now();

	if (now - woke_client < WAKE)
		return;
	woke_client = now;
	microkit_notify((microkit_channel)me->client);
}

/* What the time is spent on if no child runs. */
static struct kscope_at elsewhere(void)
{
	return (struct kscope_at){ .task = system_n_children + 1, .user = true };
}

/* ---- the timer: only one protection domain can have its interrupt, and it drives the others ---- */

static uint64_t period_of(unsigned cpu)
{
	return __atomic_load_n(&shared_region()->period[cpu], __ATOMIC_RELAXED);
}

/* It goes on for the others if it takes no samples itself. */
static void set_alarm(void)
{
	uint64_t ns = period_of(this_cpu);

	for (unsigned cpu = 0; !ns && cpu < system_n_profilers; cpu++)
		ns = period_of(cpu);
	looks = ns >= LOOK_FROM;
	alarm_set((unsigned)me->timer, looks ? ns - look_ahead : ns);
}

void profiler_timer(uint64_t ns)
{
	bool was_off = !period_of(this_cpu);

	if (was_off && ns)
		children_begin(this_cpu);
	__atomic_store_n(&shared_region()->period[this_cpu], ns, __ATOMIC_RELAXED);
	if (me->timer != SYSTEM_NONE)
		set_alarm();
	else if (was_off && ns && me->tick != SYSTEM_NONE)
		microkit_notify((microkit_channel)me->tick);
}

static void drive_others(void)
{
	__atomic_store_n(&shared_region()->looks, looks, __ATOMIC_RELAXED);
	for (unsigned cpu = 0; cpu < system_n_profilers; cpu++) {
		if (system_profilers[cpu].drive != SYSTEM_NONE && period_of(cpu))
			microkit_notify((microkit_channel)system_profilers[cpu].drive);
	}
}

static bool drives(unsigned channel)
{
	for (unsigned cpu = 0; cpu < system_n_profilers; cpu++) {
		if (me->timer != SYSTEM_NONE && system_profilers[cpu].drive == (int)channel)
			return true;
	}
	return false;
}

/* In the time between a look and a sample, an interrupted child has to get to run; on a slow machine this takes longer. */
static void adapt(bool doubt)
{
	if (doubt && look_ahead < LOOK_FROM / 4)
		look_ahead *= 2;
	else if (!doubt && look_ahead > LOOK)
		look_ahead -= look_ahead / 64;
}

static void take_sample(void)
{
	struct kscope_at at = elsewhere();
	bool doubt;

	if (!period_of(this_cpu))
		return;
	children_find(this_cpu, &at, &doubt);
	adapt(doubt);
	kscope_timer(&shared_region()->k, this_cpu, &at);
	wake_client();
}

static void be_timed(void)
{
	drive_others();
	if (looks) {
		children_look(this_cpu);
		looks = false;
		alarm_set((unsigned)me->timer, look_ahead);
		return;
	}
	take_sample();
	if (!period_of(this_cpu))
		set_alarm();
}

static void be_driven(void)
{
	if (__atomic_load_n(&shared_region()->looks, __ATOMIC_RELAXED))
		children_look(this_cpu);
	else
		take_sample();
}

/* ---- what happens ---- */

/* By a counter, while nothing profiled ran, or one whose fault was handled already. */
static void be_counted(void)
{
	struct kscope_at at = elsewhere();

	kscope_counter(&shared_region()->k, this_cpu, &at);
}

static void be_notified(unsigned channel)
{
	if ((int)channel == me->timer) {
		be_timed();
	} else if ((int)channel == me->counters) {
		be_counted();
	} else if ((int)channel == me->tick) {
		be_driven();
	} else if (drives(channel)) { /* the other one has switched its timer on */
		if (!period_of(this_cpu))
			set_alarm();
	} else {
		kscope_apply(&shared_region()->k, this_cpu);
		microkit_notify((microkit_channel)me->client);
	}
}

void profiler_notified(unsigned channel)
{
	if (shared_is_ready())
		be_notified(channel);
	if ((int)channel == me->timer)
		alarm_acknowledge(channel);
	else if ((int)channel == me->counters)
		microkit_irq_ack(channel);
}

/* False: the child stays where it is, as without a profiler. */
bool profiler_fault(unsigned id, uint64_t label)
{
#ifdef CONFIG_PROFILER_ENABLE
	struct kscope_at at = { .pc = microkit_mr_get(seL4_PMUEvent_PC),
				.fp = microkit_mr_get(seL4_PMUEvent_FP) };

	if (label == seL4_Fault_PMUEvent && shared_is_ready() && children_at(this_cpu, id, &at)) {
		kscope_counter(&shared_region()->k, this_cpu, &at);
		wake_client();
		return true;
	}
#else
	(void)label;
#endif
	microkit_dbg_puts("kscope: a fault of child ");
	microkit_dbg_put32(id);
	microkit_dbg_puts(", which stays stopped\n");
	return false;
}

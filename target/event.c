// SPDX-License-Identifier: MIT
/*
 * event: what triggers samples, and how often: periods, frequencies, jitter. And a limit: whatever the user asks for,
 * samples take no more than a part of a cpu's time.
 */
#include "kscope.h"
#include "divide.h"
#include "text.h"

/*
 * A sample is followed by at least this many times its own cost without one. The cost is measured inside the interrupt
 * handler, so it does not contain what the kernel does around it.
 */
#define REST 8
#define COST_STEP 1000 /* ns: see note_cost() */

/* ---- the pace of a cpu ---- */

static uint64_t random_below(struct kscope_cpu *c, uint64_t limit)
{
	uint32_t x = c->random;

	x ^= x << 13;
	x ^= x >> 17;
	x ^= x << 5;
	c->random = x;
	return (limit >> 32) * x + ((limit & UINT32_MAX) * x >> 32);
}

/* Anywhere between -jitter and +jitter percent, evenly. Without divisions of 64 bits, which take long on some cpus. */
static uint64_t jitter(const struct kscope *k, struct kscope_cpu *c, uint64_t period)
{
	uint32_t share = k->jitter * 1024 / 100;
	uint64_t range = period >> 32 ? (period >> 10) * share : period * share >> 10;

	return range ? period - range + random_below(c, 2 * range + 1) : period;
}

/* Follows the frequency, which wants a period of so many ns: events per second change with what the cpu does. */
static void adapt(struct kscope_pace *pace, uint64_t wanted, uint64_t took)
{
	uint64_t fits, scale;

	/* By no more than a factor of four at a time: one interval says little. */
	if (took > 4 * wanted)
		took = 4 * wanted;
	if (took < wanted / 4)
		took = wanted / 4;
	scale = kscope_quotient(wanted << 16, took);
	fits = pace->period >> 44 ? (pace->period >> 16) * scale : pace->period * scale >> 16;
	pace->aim = (pace->aim + fits) / 2;
	pace->aim += !pace->aim;
}

static uint64_t clamp(const struct kscope *k, unsigned i, uint64_t period)
{
	uint64_t most = i ? k->port->pmu->period_max(k->slot[i].counter) : UINT64_MAX;

	return period > most ? most : period ? period : 1;
}

/* The first period after a start. */
static uint64_t first_period(const struct kscope *k, struct kscope_cpu *c, unsigned i)
{
	const struct kscope_slot *slot = &k->slot[i];
	struct kscope_pace *pace = &c->pace[i];

	pace->last = i ? 0 : k->port->time(k->port->data);
	pace->least = 0;
	/* Of a frequency: too short a period becomes longer with each sample, but a long one may take for ever. */
	pace->aim = slot->hertz ? slot->period / 1024 + 1 : slot->period;
	return clamp(k, i, jitter(k, c, pace->aim));
}

/* Of a counter: nobody knows how long a period takes, only how long the last one took. */
static uint64_t least_events(struct kscope_cpu *c, struct kscope_pace *pace, uint64_t took)
{
	uint64_t rest = REST * c->cost;

	if (took < rest) {
		pace->least = 2 * pace->period;
		c->throttled++;
	} else if (took / 4 >= rest) {
		pace->least /= 4;
	} else {
		pace->least -= (pace->least + 7) / 8;
	}
	return pace->least;
}

static uint64_t least_time(struct kscope_cpu *c, uint64_t period)
{
	uint64_t least = REST * c->cost;

	c->throttled += period < least;
	return least;
}

static uint64_t next_period(const struct kscope *k, struct kscope_cpu *c, unsigned i, uint64_t now)
{
	const struct kscope_slot *slot = &k->slot[i];
	struct kscope_pace *pace = &c->pace[i];
	uint64_t took = now - pace->last, period, least = 0;

	if (slot->hertz && pace->last)
		adapt(pace, slot->period, took);
	period = jitter(k, c, pace->aim);
	if (!i)
		least = least_time(c, period);
	else if (pace->last)
		least = least_events(c, pace, took);
	pace->last = now;
	return clamp(k, i, period < least ? least : period);
}

/*
 * The period comes first: an interrupt of something that was switched off meanwhile has none. Event NULL: the same as
 * before, which is cheaper for some PMUs.
 */
static void set(const struct kscope *k, struct kscope_cpu *c, unsigned i,
		const struct kscope_event *event, uint64_t period)
{
	const struct kscope_port *port = k->port;

	c->pace[i].period = period;
	if (i)
		port->pmu->set(k->slot[i].counter, event, period);
	else
		port->timer(port->data, period);
}

/* ---- settings ---- */

static bool is_on(const struct kscope *k, const struct kscope_cpu *c, unsigned i)
{
	return __atomic_load_n(&k->running, __ATOMIC_ACQUIRE) && k->slot[i].on &&
	       (i || (k->port->timer && !c->off));
}

/* An event may have changed its counter since the last time: whatever counts, stops. */
static void stop_counters(const struct kscope *k)
{
	for (unsigned counter = 0; counter < k->counters; counter++)
		k->port->pmu->set(counter, NULL, 0);
}

/* Returns whether anything has changed. */
static bool apply(struct kscope *k, struct kscope_cpu *c)
{
	uint32_t generation = __atomic_load_n(&k->generation, __ATOMIC_ACQUIRE);

	if (c->applied == generation)
		return false;
	c->applied = generation;
	if (k->port->pmu && !c->counters) {
		k->port->pmu->init();
		c->counters = true;
	}
	stop_counters(k);
	for (unsigned i = 0; i < KSCOPE_EVENTS; i++) {
		if (is_on(k, c, i))
			set(k, c, i, &k->slot[i].event, first_period(k, c, i));
		else if (c->pace[i].period)
			set(k, c, i, NULL, 0);
	}
	return true;
}

void kscope_apply(struct kscope *k, unsigned cpu)
{
	if (k->port && cpu < k->port->cpus) /* a kernel may tick before kscope_init() */
		apply(k, &k->cpu[cpu]);
}

/* ---- interrupts ---- */

/* One sample may take long because a hypervisor ran something else meanwhile. */
static void note_cost(struct kscope_cpu *c, uint64_t took)
{
	uint64_t most = 4 * c->cost + COST_STEP;

	c->cost = (3 * c->cost + (took < most ? took : most)) / 4;
}

static void fire(struct kscope *k, unsigned cpu, unsigned i, const struct kscope_at *at,
		 uint64_t now)
{
	struct kscope_cpu *c = &k->cpu[cpu];
	struct kscope_pace *pace = &c->pace[i];
	/* The timer's interrupt may be late: a sample stands for the time since the last one. */
	uint64_t weight = i ? pace->period : now - pace->last;

	if (!pace->period)
		return;
	kscope_sample(k, cpu, i, weight, at);
	note_cost(c, k->port->time(k->port->data) - now);
	set(k, c, i, NULL, next_period(k, c, i, now));
}

/* If settings have changed, this interrupt belongs to the old ones. */
void kscope_timer(struct kscope *k, unsigned cpu, const struct kscope_at *at)
{
	uint64_t now;

	if (!k->port || cpu >= k->port->cpus)
		return;
	now = k->port->time(k->port->data);
	if (!apply(k, &k->cpu[cpu]))
		fire(k, cpu, 0, at, now);
}

void kscope_counter(struct kscope *k, unsigned cpu, const struct kscope_at *at)
{
	uint32_t overflows;
	uint64_t now;

	if (!k->port || cpu >= k->port->cpus || !k->port->pmu)
		return;
	now = k->port->time(k->port->data);
	overflows = k->port->pmu->overflows();
	if (apply(k, &k->cpu[cpu]))
		return;
	for (unsigned i = 1; i < KSCOPE_EVENTS; i++) {
		if (k->slot[i].on && overflows >> k->slot[i].counter & 1)
			fire(k, cpu, i, at, now);
	}
}

/* ---- events by name ---- */

static bool hex_digit(char c, unsigned *value)
{
	if (c >= '0' && c <= '9')
		*value = (unsigned)(c - '0');
	else if (c >= 'a' && c <= 'f')
		*value = (unsigned)(c - 'a' + 10);
	else if (c >= 'A' && c <= 'F')
		*value = (unsigned)(c - 'A' + 10);
	else
		return false;
	return true;
}

/* r and hexadecimal digits: the number of an event, as in perf. */
static bool raw_event(const char *name, struct kscope_event *event)
{
	uint32_t value = 0;
	unsigned nr = 0, digit;

	if (*name++ != 'r')
		return false;
	for (; hex_digit(name[nr], &digit) && nr < 8; nr++)
		value = value << 4 | digit;
	*event = (struct kscope_event){ NULL, KSCOPE_RAW, value, value };
	return nr && !name[nr];
}

bool kscope_event_find(const struct kscope *k, const char *name, struct kscope_event *event)
{
	const struct kscope_event *row = k->port->pmu ? k->port->pmu->events : NULL;

	for (; row && row->name; row++) {
		if (kscope_text_same(row->name, name)) {
			*event = *row;
			return true;
		}
	}
	return k->port->pmu && raw_event(name, event);
}

static bool counter_is_free(const struct kscope *k, unsigned counter)
{
	for (unsigned i = 1; i < KSCOPE_EVENTS; i++) {
		if (k->slot[i].on && k->slot[i].counter == counter)
			return false;
	}
	return true;
}

static int slot_of(const struct kscope *k, const struct kscope_event *event)
{
	for (unsigned i = 1; i < KSCOPE_EVENTS; i++) {
		if (k->slot[i].on && k->slot[i].event.type == event->type &&
		    k->slot[i].event.config == event->config)
			return (int)i;
	}
	for (unsigned i = 1; i < KSCOPE_EVENTS; i++) {
		if (!k->slot[i].on)
			return (int)i;
	}
	return -1;
}

int kscope_event_slot(struct kscope *k, const struct kscope_event *event)
{
	int i = slot_of(k, event);

	if (i < 0 || k->slot[i].on)
		return i;
	for (unsigned counter = 0; counter < k->counters; counter++) {
		if (counter_is_free(k, counter) && k->port->pmu->takes(counter, event)) {
			k->slot[i].event = *event;
			k->slot[i].counter = counter;
			return i;
		}
	}
	return -1;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A guest that tries the counters of its processor with target/pmu_*.c, in the kernel and in user mode. It prints what
 * came, tests/e2e/target_pmu.py compares that with what should come:
 *
 *	event NAME TYPE CONFIG COUNTERS_THAT_TAKE_IT
 *	count NAME COUNTER PERIOD OVERFLOWS IN_USER_MODE LEAST MOST
 *
 * LEAST and MOST are the nanoseconds from the start of a period to its interrupt. Under -icount shift=0, an instruction
 * and a cycle take 1 ns.
 */
#include "pmu_machine.h"

#ifndef ONLY_TOGETHER
#define ONLY_TOGETHER 0
#endif

static struct seen {
	unsigned nr, user, limit; /* overflows; it stops at the limit */
	uint64_t period, since, least, most;
} seen[KSCOPE_EVENTS];
static volatile unsigned spurious, interrupts, twice;

/* ---- output ---- */

static void text(const char *s)
{
	while (*s)
		put_char(*s++);
}

static void number(uint64_t n)
{
	char digits[21];
	unsigned i = sizeof(digits) - 1;

	digits[i] = '\0';
	do {
		digits[--i] = (char)('0' + n % 10);
	} while (n /= 10);
	text(" ");
	text(digits + i);
}

static void line(const char *name, uint64_t value)
{
	text(name);
	number(value);
	text("\n");
}

static void report(const char *name, unsigned counter)
{
	const struct seen *s = &seen[counter];

	text("count ");
	text(name);
	number(counter);
	number(s->period);
	number(s->nr);
	number(s->user);
	number(s->least);
	number(s->most);
	text("\n");
}

/* ---- counters ---- */

static const struct kscope_event *find(const char *name)
{
	for (const struct kscope_event *e = pmu->events; e->name; e++) {
		const char *a = e->name, *b = name;

		while (*a && *a == *b)
			a++, b++;
		if (*a == *b)
			return e;
	}
	line("no such event", 0);
	return NULL;
}

static void count(unsigned counter, const struct kscope_event *event, uint64_t period,
		  unsigned limit)
{
	seen[counter] = (struct seen){ .limit = limit, .period = period, .least = UINT64_MAX };
	pmu->set(counter, event, period);
	seen[counter].since = now();
}

static void overflow(unsigned counter, uint64_t time, bool user)
{
	struct seen *s = &seen[counter];
	uint64_t took = time - s->since;

	s->nr++;
	s->user += user;
	s->least = took < s->least ? took : s->least;
	s->most = took > s->most ? took : s->most;
	pmu->set(counter, NULL, s->nr < s->limit ? s->period : 0);
	s->since = now();
}

void counter_interrupt(bool user)
{
	uint64_t time = now();
	uint32_t flags = pmu->overflows();

	interrupts++;
	if (!flags)
		spurious++;
	if (OVERFLOWS_ARE_CLEARED && pmu->overflows())
		twice++;
	for (unsigned counter = 0; counter < KSCOPE_EVENTS; counter++) {
		if (flags >> counter & 1)
			overflow(counter, time, user);
	}
}

void trap_c(unsigned kind)
{
	handle_trap(kind);
}

/* ---- work ---- */

static bool is_done(unsigned counter)
{
	return *(volatile unsigned *)&seen[counter].nr >= seen[counter].limit;
}

static void work(unsigned rounds)
{
	for (unsigned i = 0; i < rounds; i++)
		__asm__ volatile("nop");
}

/* Until all overflows came, or many more should have come. */
static void work_until_done(unsigned counter)
{
	for (unsigned i = 0; i < 100000 && !is_done(counter); i++)
		work(1000);
}

static volatile unsigned user_counter;

static void user_work(void)
{
	work_until_done(user_counter);
	leave_user();
}

/* ---- tests ---- */

/* Each counter that takes the event, one at a time. */
static void test_each(const char *name, unsigned counters)
{
	const struct kscope_event *event = find(name);

	for (unsigned counter = 0; counter < counters; counter++) {
		if (!pmu->takes(counter, event))
			continue;
		count(counter, event, 100003, 20);
		interrupts_on();
		work_until_done(counter);
		interrupts_off();
		report(name, counter);
	}
}

static void test_user(const char *name, unsigned counter)
{
	count(counter, find(name), 50021, 20);
	user_counter = counter;
	run_user(user_work);
	report("user", counter);
}

/* Several counters at once, with periods of their own; those of cycles and instructions take turns. */
static void test_together(unsigned counters)
{
	uint64_t begin;

	for (unsigned counter = 0; counter < counters; counter++) {
		const struct kscope_event *event = find(counter % 2 ? "instructions" : "cycles");

		count(counter, event, 20011 + 1000 * counter, UINT32_MAX);
	}
	begin = now();
	for (unsigned counter = 0; counter < counters; counter++)
		seen[counter].since = begin;
	interrupts_on();
	work(1000000);
	interrupts_off();
	line("together", now() - begin);
	for (unsigned counter = 0; counter < counters; counter++) {
		pmu->set(counter, NULL, 0);
		report("together", counter);
	}
}

/* Asleep, the time passes at once, with QEMU's -icount sleep=off. */
static void test_long(unsigned counter, uint64_t period)
{
	count(counter, find("cycles"), period, 2);
	while (!is_done(counter)) {
		wait();
		interrupts_on();
		interrupts_off();
	}
	report("long", counter);
}

/* What is stopped or set anew does not interrupt; what overflowed before neither. */
static void test_stop(unsigned counter)
{
	unsigned before = interrupts;

	count(counter, find("cycles"), 50000, 1);
	work(1000);
	pmu->set(counter, NULL, 0);
	interrupts_on();
	work(100000);
	interrupts_off();
	line("stopped: interrupts", interrupts - before);
	line("stopped: running", are_counting());
	count(counter, find("cycles"), 1000, 1);
	work(10000);
	pmu->set(counter, NULL, 0);
	interrupts_on();
	work(100000);
	interrupts_off();
	line("stopped late: overflows", seen[counter].nr);
	count(counter, find("cycles"), 1000, 1);
	work(10000);
	count(counter, find("cycles"), 500000, 1);
	interrupts_on();
	work_until_done(counter);
	interrupts_off();
	report("again", counter);
}

static void test_takes(unsigned counters)
{
	for (const struct kscope_event *e = pmu->events; e->name; e++) {
		unsigned takes = 0;

		for (unsigned counter = 0; counter < counters; counter++)
			takes += pmu->takes(counter, e);
		text("event ");
		text(e->name);
		number(e->type);
		number(e->config);
		line("", takes);
	}
}

static void test_alone(unsigned counters)
{
	test_each("cycles", counters);
	test_each("instructions", counters);
	test_user("cycles", 0);
	test_user("instructions", counters - 1);
	for (unsigned counter = 0; counter < 2 && counter < counters; counter++) {
		line("longest", pmu->period_max(counter));
		test_long(counter, 0x7fffffff);
		test_long(counter, 0xfffffff0);
		test_long(counter, 0xffffffff);
		if (pmu->period_max(counter) > 0xffffffff) {
			test_long(counter, 0x100000001);
			test_long(counter, 0x2540be400);
		}
		test_stop(counter);
	}
}

void guest_main(void)
{
	unsigned counters;

	machine_init();
	counters = pmu->init();
	line("timer of 1000 us", time_timer(1000000));
	line("timer of 100 s", time_timer(100000000000));
	line("counters", counters);
	if (!counters)
		power_off();
	test_takes(counters);
	test_together(counters < TOGETHER ? counters : TOGETHER);
	if (!ONLY_TOGETHER)
		test_alone(counters);
	line("spurious", spurious);
	line("twice", twice);
	text("end\n");
	power_off();
}

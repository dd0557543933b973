// SPDX-License-Identifier: GPL-2.0-or-later
/* When samples are taken: a simulated clock and simulated counters, whose rates change. */
#include "target_port.h"
#include "test.h"

#define SECOND UINT64_C(1000000000)
#define ENTRY 300 /* ns that a kernel spends around a handler */

static const struct kscope_at here = { .pc = 0x1000 };

static struct {
	uint64_t samples, inside; /* ns in handlers */
	uint64_t counted;	  /* events outside of them */
	uint64_t shortest, longest;
	uint64_t phases[10];
} seen;

static uint64_t taken(unsigned cpu)
{
	return port_k.cpu[cpu].taken;
}

static void note_period(uint64_t period)
{
	if (!seen.samples || period < seen.shortest)
		seen.shortest = period;
	if (!seen.samples || period > seen.longest)
		seen.longest = period;
	seen.samples++;
}

static void handle(bool is_counter)
{
	uint64_t before = port_state.now;

	port_state.now += ENTRY / 2;
	if (is_counter)
		kscope_counter(&port_k, port_state.cpu, &here);
	else
		kscope_timer(&port_k, port_state.cpu, &here);
	port_state.now += ENTRY / 2;
	seen.inside += port_state.now - before;
	/* Nobody reads the rings in this test. */
	kscope_clear(&port_k);
}

/* Runs one cpu by its timer. */
static void run_timer(uint64_t ns, uint64_t slice)
{
	uint64_t end = port_state.now + ns;

	while (port_state.timer[port_state.cpu] && port_state.now < end) {
		note_period(port_state.timer[port_state.cpu]);
		port_state.now += port_state.timer[port_state.cpu];
		seen.phases[port_state.now % slice * 10 / slice]++;
		handle(false);
	}
}

/* Runs one cpu whose counter counts `rate` events a millisecond. */
static void run_counter(unsigned counter, uint64_t rate, uint64_t ns)
{
	uint64_t end = port_state.now + ns;

	while (port_state.now < end) {
		uint64_t period = port_state.counter[port_state.cpu][counter].period;

		if (!period)
			return;
		note_period(period);
		seen.counted += period;
		port_state.now += (uint64_t)((double)period * 1e6 / (double)rate);
		port_state.overflows[port_state.cpu] = 1u << counter;
		handle(true);
	}
}

static void open_port(const char *first, const char *second, uint64_t tick)
{
	port_open(PORT_CPUS, sizeof(port_memory));
	port_says(first);
	port_says(second);
	port_state.tick = tick;
	port_says("start");
	memset(&seen, 0, sizeof(seen));
}

static bool is_near(double value, double wanted, double percent)
{
	return value >= wanted * (1 - percent / 100) && value <= wanted * (1 + percent / 100);
}

static void test_timer(void)
{
	uint64_t begun;

	open_port("timer period 250", "jitter off", 100);
	begun = port_k.cpu[0].pace[0].last;
	run_timer(SECOND, 1000);
	check("a period", seen.shortest == 250000 && seen.longest == 250000 &&
				  is_near((double)seen.samples, 4000, 1) &&
				  taken(0) == seen.samples);
	check("the weights are the time",
	      port_k.cpu[0].pace[0].sum == port_k.cpu[0].pace[0].last - begun);
}

static void test_jitter(void)
{
	bool good = true;

	open_port("timer period 1000", "jitter 50", 10);
	run_timer(20 * SECOND, 1000000);
	check("jitter: the mean is the period", is_near((double)seen.samples, 20000, 1));
	check("jitter: bounds", seen.shortest >= 500000 && seen.shortest < 510000 &&
					seen.longest <= 1500000 && seen.longest > 1490000);
	for (size_t i = 0; i < 10; i++)
		good &= is_near((double)seen.phases[i], (double)seen.samples / 10, 15);
	check("jitter: no phase of a time slice is preferred", good);
	open_port("event cycles period 1000000000000", "jitter 90", 10);
	run_counter(0, 1000000000, 100 * SECOND);
	check("jitter: long periods", seen.shortest < 500000000000 && seen.longest > 1500000000000);
	open_port("event cycles period 7", "jitter 50", 0);
	run_counter(0, 1, SECOND);
	check("jitter: short periods", seen.shortest == 4 && seen.longest == 10);
	open_port("event cycles period 1", "jitter 90", 0);
	run_counter(0, 1, SECOND / 10);
	check("jitter: a period of 1", seen.shortest == 1 && seen.longest == 1);
}

/* The rate of a counter changes; after a while, the frequency is as wanted. */
static void change_rate(const char *name, uint64_t rate, uint64_t hertz, uint64_t settle,
			double percent)
{
	run_counter(0, rate, settle);
	memset(&seen, 0, sizeof(seen));
	run_counter(0, rate, 2 * SECOND);
	check(name, is_near((double)seen.samples, 2.0 * (double)hertz, percent));
}

static void test_frequency(const char *jitter, double percent)
{
	open_port("event cycles freq 1000", jitter, 100);
	change_rate("frequency: at first", 1000000, 1000, SECOND / 20, percent);
	change_rate("frequency: a thousand times slower", 1000, 1000, 4 * SECOND, percent);
	change_rate("frequency: a thousand times faster", 1000000, 1000, SECOND / 20, percent);
	open_port("event cycles freq 1000", jitter, 100);
	change_rate("frequency: rare events at first", 1000, 1000, SECOND, percent);
	open_port("event cycles freq 2", jitter, 100);
	change_rate("frequency: a low one", 4000000, 2, 20 * SECOND, 50);
}

static void test_counter_weights(void)
{
	open_port("event cycles period 10000", "jitter 20", 100);
	run_counter(0, 1000000, SECOND / 10);
	check("the weights are what was counted",
	      port_k.cpu[0].pace[1].sum == seen.counted && seen.samples > 1000);
}

static void test_throttle(void)
{
	open_port("timer period 1", "jitter off", 1000);
	run_timer(SECOND / 10, 1000);
	check("throttled timer: half of the time is left", seen.inside < SECOND / 20);
	check("throttled timer: it goes on", seen.samples > 1000 && port_k.cpu[0].throttled);
	open_port("event cycles period 1", "jitter off", 1000);
	run_counter(0, 3000000, SECOND / 10);
	check("throttled counter: half of the time is left", seen.inside < SECOND / 20);
	check("throttled counter: it goes on", seen.samples > 1000 && port_k.cpu[0].throttled);
	check("throttled counter: the weights are what was counted",
	      port_k.cpu[0].pace[1].sum == seen.counted);
	memset(&seen, 0, sizeof(seen));
	run_counter(0, 30, 4 * SECOND); /* 1 event takes 33 us */
	check("and back to the period", port_state.counter[0][0].period == 1);
	open_port("event cycles freq 1000000", "jitter off", 1000);
	run_counter(0, 1000000, SECOND / 10);
	check("throttled frequency: half of the time is left", seen.inside < SECOND / 20);
}

/* A hypervisor runs something else for 50 ms, in the middle of a sample. */
static void test_outlier(void)
{
	open_port("timer period 1000", "jitter off", 100);
	run_timer(SECOND / 10, 1000);
	port_state.tick = 50000000;
	handle(false);
	port_state.tick = 100;
	memset(&seen, 0, sizeof(seen));
	run_timer(SECOND / 10, 1000);
	check("one slow sample does not throttle", is_near((double)seen.samples, 100, 5));
}

static void test_off(void)
{
	open_port("timer all off", "event cycles period 1000", 0);
	check("only a counter", !port_state.timer[0] && port_state.counter[0][0].period == 1000);
	port_says("stop");
	port_serve();
	check("stop stops it",
	      !port_state.counter[0][0].period && !port_state.counter[3][0].period);
	port_says("event cycles off");
	check("nothing is left to start", !port_says("start"));
	check("one timer is enough", port_says("timer 2 on") && port_says("start"));
	check("it runs on its cpu only", port_state.timer[2] && !port_state.timer[1]);
	port_says("timer 1 on");
	port_says("timer 2 off");
	check("while it runs", port_state.timer[1] && !port_state.timer[2]);
}

static void test_no_timer(void)
{
	port_open(2, sizeof(port_memory));
	port_ops.timer = NULL;
	if (!kscope_init(&port_k, &port_ops, port_memory, sizeof(port_memory)))
		abort();
	check("a kernel that takes samples itself", port_says("start"));
	kscope_timer(&port_k, 0, &here);
	check("has no timer", !taken(0));
	kscope_sample(&port_k, 1, 0, 500, &here);
	kscope_sample(&port_k, 1, 0, 600, &here);
	check("their weights are counted", taken(1) == 2 && port_k.cpu[1].pace[0].sum == 1100);
}

static void test_cpus(void)
{
	port_open(PORT_CPUS, sizeof(port_memory));
	port_state.no_kick = true;
	port_says("event instructions period 5000");
	port_says("start");
	check("every cpu gets a kick", port_state.kicks[0] == 1 && port_state.kicks[3] == 1);
	check("but does it itself", !port_state.timer[0] && !port_state.timer[3]);
	port_state.cpu = 3;
	kscope_apply(&port_k, 3);
	check("the last cpu", port_state.timer[3] && port_state.counter[3][1].period == 5000 &&
				      port_state.inits[3] == 1 && !port_state.timer[0]);
	port_state.now += 700;
	port_state.timer[3] = 0;
	kscope_apply(&port_k, 3);
	check("nothing has changed", !port_state.timer[3] && port_state.inits[3] == 1);
	kscope_apply(&port_k, PORT_CPUS);
	kscope_timer(&port_k, KSCOPE_CPUS + 100, &here);
	kscope_counter(&port_k, UINT32_MAX, &here);
	kscope_sample(&port_k, PORT_CPUS, 0, 1, &here);
	check("cpus that do not exist", true);
	/* The cpu is late: meanwhile the slot has got another event, on another counter. */
	port_says("stop");
	port_serve();
	port_says("event instructions off");
	port_says("event cycles period 300");
	port_says("start");
	kscope_apply(&port_k, 3);
	check("an event on another counter",
	      !port_state.counter[3][1].period && port_state.counter[3][0].period == 300);
}

/* Interrupts that come late belong to no recording. */
static void test_late(void)
{
	port_open(1, sizeof(port_memory));
	port_state.no_kick = true;
	port_says("start");
	kscope_timer(&port_k, 0, &here);
	check("an interrupt from before the start", !taken(0) && port_state.timer[0]);
	port_state.now += port_state.timer[0];
	kscope_timer(&port_k, 0, &here);
	check("a sample", taken(0) == 1);
	port_says("stop");
	kscope_timer(&port_k, 0, &here);
	check("an interrupt after the stop", taken(0) == 1 && !port_state.timer[0]);
	kscope_timer(&port_k, 0, &here);
	check("and one more", taken(0) == 1 && !port_state.timer[0]);
	port_serve();
	check("done", kscope_is_done(&port_k));
	port_says("start");
	kscope_apply(&port_k, 0);
	kscope_timer(&port_k, 0, &here);
	port_says("stop");
	port_serve();
	check("again: its own counts", port_k.cpu[0].taken_sum == 1 && port_k.cpu[0].sent == 1);
}

int main(void)
{
	test_timer();
	test_jitter();
	test_frequency("jitter off", 5);
	test_frequency("jitter 80", 10);
	test_counter_weights();
	test_throttle();
	test_outlier();
	test_off();
	test_no_timer();
	test_cpus();
	test_late();
	return test_result();
}

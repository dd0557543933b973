// SPDX-License-Identifier: GPL-2.0-or-later
/* pass/slices_cpu: the rates of cpus, and where their interrupts are off. */
#include "slices_text.h"

static void test_masks(void)
{
	static const char rows[] = "begin 1000 sp=8000;"
				   "on 0;"
				   "call 1010 2000 10;"
				   "off 2;"
				   "call 2010 3000 5;"
				   "on 3;"
				   "off 4;"
				   "return 3010 2014 7;"
				   "return 2020 1014 8;"
				   "on 1;"
				   "jump 1020 1024 9;";

	slices_are("slices: interrupts off", rows,
		   "1012-1018 cpu 0 off 1 2000-3000 6\n"
		   "  1015-1022 1 3000 call 7/7 1/1\n"
		   " 1010-1030 1 2000 call 20/13 2/1\n"
		   "1019-1031 cpu 0 off 1 3000-1000 12\n"
		   "1000-~1039 cpu 0 runs 1 39\n"
		   "1000-~1039 1 1000 begin 39/19 3/1\n");
	slices_on(PUSHES, "slices: interrupts off, cut by the selected time", 1014, 1029, rows,
		  "~1014-1018 cpu 0 off 1 2000-3000 6\n"
		  "  1015-1022 1 3000 call 7/7 1/1\n"
		  "1014-~1029 cpu 0 runs 1 12\n"
		  "1019-~1029 cpu 0 off 1 3000-0 3\n"
		  " ~1014-~1029 1 2000 call 12/5 2/1\n"
		  "~1014-~1029 1 1000 begin 12/0 2/0\n");
	slices_are("slices: interrupts off from begin to end",
		   "begin 1000 sp=8000;"
		   "off 0;"
		   "jump 1020 1024 9;"
		   "end 1024 2;",
		   "1000-1011 cpu 0 runs 1 11\n"
		   "~1000-~1011 cpu 0 off 1 1000-0 11\n"
		   "1000-~1011 1 1000 begin 11/11 1/1\n");
	slices_are("slices: a loss while interrupts are off",
		   "begin 1000 sp=8000;"
		   "on 0;"
		   "off 1;"
		   "jump 1020 1024 9;"
		   "cpu 1;"
		   "begin 5000 sp=9000;"
		   "jump 5020 5024 100;"
		   "cpu 0;"
		   "begin 1000 sp=8000;"
		   "jump 1020 1024 9;"
		   "off 1;"
		   "unknown 2;"
		   "jump 1020 1024 9;",
		   "1000-~1009 cpu 0 runs 1 9\n"
		   "1001-~1009 cpu 0 off 1 1000-0 8\n"
		   "1000-~1009 1 1000 begin 9/9 1/1\n"
		   "1009-1109 cpu 0 gap\n"
		   "~1119-~1120 cpu 0 off 3 1000-0 1\n"
		   "1109-~1127 cpu 0 runs 3 18\n"
		   "1009-~1127 cpu 1 runs 2 100\n"
		   "1109-~1127 3 1000 begin 18/18 1/1\n"
		   "1009-~1127 2 5000 begin 100/100 1/1\n");
}

static int announced_nobody(void *data, const struct event *ev, uint32_t frame)
{
	(void)data, (void)ev, (void)frame;
	return 0;
}

struct rates {
	char text[1000];
	size_t len;
};

static int add_rate(void *data, struct event *ev)
{
	struct rates *rates = data;

	if (ev->slice.kind == SLICE_RATE)
		rates->len +=
			(size_t)snprintf(rates->text + rates->len, sizeof(rates->text) - rates->len,
					 "%u: %" PRIu64 "-%" PRIu64 " %" PRIu64 "\n", ev->cpu,
					 ev->slice.since, ev->time, ev->slice.instructions);
	return 0;
}

/* The task executes this many instructions up to a time. */
static void execute(struct slices *slices, struct slices_task *task, uint64_t time,
		    uint64_t instructions)
{
	slices_advance(slices, time);
	slices_charge(slices, 3, slices->nr_cpus > 3 ? slices->cpus[3].task : NULL,
		      &(struct slices_code){ .instructions = instructions });
	slices_run(slices, 3, task, true);
}

static void rates_are(const char *name, struct slices slices, const char *want)
{
	struct rates rates = { 0 };
	struct slices_task *task;

	slices.announce = announced_nobody;
	slices.emit = add_rate;
	slices.data = &rates;
	slices_advance(&slices, 1000);
	task = slices_task(&slices, 1, 1, 3);
	slices_open(&slices, task, (struct slice){ .time = 1000, .frame = 1 });
	execute(&slices, task, 1000, 0);
	execute(&slices, task, 3000, 4000);
	execute(&slices, task, 6000, 8000); /* enough */
	execute(&slices, task, 10000, 3);
	execute(&slices, task, 500000, 5); /* it waits */
	execute(&slices, task, 501000, 7);
	slices_lose(&slices, 3);
	slices_advance(&slices, 700000);
	slices_gap(&slices, 3);
	slices_run(&slices, 3, task, true);
	execute(&slices, task, 701000, 9);
	slices_finish(&slices);
	check(name, !strcmp(rates.text, want));
	if (strcmp(rates.text, want))
		printf("have:\n%swant:\n%s", rates.text, want);
	slices_release(&slices);
}

static void test_rates(void)
{
	rates_are("rates: of a busy cpu, and of one that waits",
		  (struct slices){ .until = UINT64_MAX },
		  "3: 1000-6000 12000\n"
		  "3: 6000-10000 3\n"
		  "3: 10000-500000 5\n"
		  "3: 500000-501000 7\n"
		  "3: 501000-501000 0\n"
		  "3: 700000-701000 9\n"
		  "3: 701000-701000 0\n");
	rates_are("rates: in a window", (struct slices){ .from = 4000, .until = 20000 },
		  "3: 4000-20000 8003\n"
		  "3: 20000-20000 0\n");
	rates_are("rates: not on an axis of instructions",
		  (struct slices){ .until = UINT64_MAX, .axis = AXIS_INSTRUCTIONS }, "");
}

int main(void)
{
	test_masks();
	test_rates();
	return test_result();
}

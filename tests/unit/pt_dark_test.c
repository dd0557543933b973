// SPDX-License-Identifier: GPL-2.0-or-later
/* pt/dark: threads that ran on a cpu while it had no trace. */
#include "model/event.h"
#include "pt/dark.h"
#include "test.h"

enum { PID = 10, ONE, TWO, THREE };

/* Two cpus: ONE is on both, TWO on the second one, THREE only at the end. */
static void run_threads(struct ipt_history *h)
{
	ipt_history_queue(h, NO_TASK);
	ipt_history_queue(h, NO_TASK);
	ipt_history_switch(h, 0, 100, PID, ONE);
	ipt_history_switch(h, 0, 300, PID, TWO);
	ipt_history_switch(h, 0, 500, PID, ONE);
	ipt_history_switch(h, 1, 150, PID, TWO);
	ipt_history_switch(h, 1, 200, PID, ONE);
	ipt_history_switch(h, 1, 900, PID, THREE);
	ipt_history_complete(h);
}

static void test_between(void)
{
	struct ipt_history h = { 0 };
	struct ipt_dark dark = { 0 };

	run_threads(&h);
	ipt_dark_start(&dark, &h, false);
	check("no time is dark", !ipt_dark_ran(&dark, PID, ONE, 120));
	ipt_dark_begin(&dark, 1, 180);
	ipt_dark_begin(&dark, 1, 190); /* it is already */
	check("it ran there before", !ipt_dark_ran(&dark, PID, TWO, 320));
	check("it did not run there yet", !ipt_dark_ran(&dark, PID, ONE, 199));
	ipt_dark_end(&dark, 1, 400);
	check("it ran there", ipt_dark_ran(&dark, PID, ONE, 520));
	check("it has not again", !ipt_dark_ran(&dark, PID, ONE, 600));
	check("it ran there later", !ipt_dark_ran(&dark, PID, THREE, 1000));
	check("a thread that never ran", !ipt_dark_ran(&dark, PID, PID, 1000));
	ipt_dark_release(&dark);
	ipt_history_release(&h);
}

static void test_edges(void)
{
	struct ipt_history h = { 0 };
	struct ipt_dark dark = { 0 };

	run_threads(&h);
	ipt_dark_start(&dark, &h, true);
	ipt_dark_end(&dark, 0, 300);
	check("before the first trace", ipt_dark_ran(&dark, PID, ONE, 100));
	check("up to its first branch", ipt_dark_ran(&dark, PID, TWO, 310));
	ipt_dark_end(&dark, 1, 450);
	check("on both", ipt_dark_ran(&dark, PID, ONE, 510));
	ipt_dark_begin(&dark, 1, 450);
	check("after the last trace", ipt_dark_ran(&dark, PID, THREE, UINT64_MAX));
	ipt_dark_release(&dark);
	ipt_history_release(&h);
}

static void test_nothing(void)
{
	struct ipt_history h = { 0 };
	struct ipt_dark dark = { 0 };

	ipt_history_queue(&h, ONE);
	ipt_history_complete(&h);
	ipt_dark_start(&dark, &h, true);
	ipt_dark_end(&dark, 0, 10);
	check("a trace of a thread", !ipt_dark_ran(&dark, PID, ONE, 100));
	ipt_dark_release(&dark);
	ipt_history_release(&h);
}

int main(void)
{
	test_between();
	test_edges();
	test_nothing();
	return test_result();
}

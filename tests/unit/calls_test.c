// SPDX-License-Identifier: GPL-2.0-or-later
/* Call stacks from branches: one small trace for every habit of real code that misleads. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "pass/calls.h"
#include "test.h"

static struct calls calls;
static uint32_t cpu, pid;

static void begin_test(void)
{
	calls_init(&calls);
	cpu = 0;
	pid = 1;
}

static void add_branch(struct event_branch branch)
{
	struct event ev = { .kind = EVENT_BRANCH, .cpu = cpu, .pid = pid, .tid = pid };

	ev.branch = branch;
	if (!ev.branch.context)
		ev.branch.context = IP_KERNEL;
	if (ev.branch.context == IP_USER)
		ev.branch.space = pid;
	calls_add(&calls, &ev);
}

static void add(enum branch_kind kind, uint64_t from, uint64_t to, uint64_t instructions,
		uint64_t next, uint64_t sp, bool user)
{
	add_branch((struct event_branch){ .kind = kind,
					  .from = from,
					  .to = to,
					  .instructions = instructions,
					  .next = next,
					  .sp = sp,
					  .context = user ? IP_USER : IP_KERNEL });
}

static void start(uint64_t at)
{
	add(BRANCH_BEGIN, 0, at, 0, 0, 0, false);
}

static void jump(uint64_t from, uint64_t to, uint64_t n)
{
	add(BRANCH_JUMP, from, to, n, 0, 0, false);
}

static void call(uint64_t from, uint64_t to, uint64_t n) /* 5 bytes, as on x86 */
{
	add(BRANCH_CALL, from, to, n, from + 5, 0, false);
}

static void ret(uint64_t from, uint64_t to, uint64_t n)
{
	add(BRANCH_RETURN, from, to, n, 0, 0, false);
}

/* All sums as lines "leaf caller ... : instructions", in the order that they came up. */
static const char *sums(void)
{
	static char text[4096];
	struct event ev;
	size_t at = 0;

	text[0] = '\0';
	while (calls_sample(&calls, &ev)) {
		for (uint32_t i = 0; i < ev.sample.nr && at < sizeof(text) - 32; i++) {
			if (ev.sample.ips[i] == IP_USER)
				at += (size_t)sprintf(text + at, "user ");
			else if (ev.sample.ips[i] != IP_KERNEL)
				at += (size_t)sprintf(text + at, "%" PRIx64 " ", ev.sample.ips[i]);
		}
		at += (size_t)sprintf(text + at, ": %" PRIu64 "\n", ev.sample.weight);
	}
	return text;
}

static void expect(const char *name, const char *text)
{
	const char *have = sums();
	bool good = !strcmp(have, text);

	if (!good)
		printf("# %s: have\n%s# want\n%s", name, have, text);
	check(name, good);
	calls_release(&calls);
}

static void expect_all_found(const char *name)
{
	check(name,
	      calls.track.stats.returns == calls.track.stats.found && !calls.track.stats.beyond);
}

static void test_plain(void)
{
	begin_test();
	start(0x1000);
	call(0x1010, 0x2000, 4);
	jump(0x2008, 0x2004, 3); /* a loop */
	call(0x2010, 0x3000, 5);
	ret(0x3010, 0x2015, 6);
	jump(0x2020, 0x4000, 2); /* a tail call */
	ret(0x4010, 0x1015, 7);
	add(BRANCH_END, 0x1020, 0, 1, 0, 0, false);
	expect_all_found("calls: all returns find their calls");
	check("calls: every instruction is counted", calls.track.stats.instructions == 28);
	expect("calls: calls, returns, a loop, a tail call",
	       "1000 : 5\n2000 1015 : 3\n2004 1015 : 7\n3000 2015 1015 : 6\n4000 1015 : 7\n");
}

static void test_retpoline(void)
{
	begin_test();
	start(0x1000);
	call(0x1010, 0x9000, 1); /* the thunk */
	call(0x9000, 0x9010, 1); /* puts the target in the place of its return address */
	ret(0x9014, 0x5000, 2);
	ret(0x5020, 0x1015, 10);
	jump(0x1020, 0x1000, 1);
	expect_all_found("calls: a retpoline is no return");
	check("calls: it is a jump", calls.track.stats.jumps == 1);
	expect("calls: what a retpoline calls has its caller",
	       "1000 : 2\n9000 1015 : 1\n9010 9005 1015 : 2\n5000 1015 : 10\n");
}

/* 32 calls to the next line fill the cpu's predictor; nobody returns from them. */
static void test_stuffing(void)
{
	begin_test();
	start(0x1000);
	call(0x1010, 0x2000, 1);
	for (int i = 0; i < 16; i++) {
		call(0x2000, 0x2006, 1);
		call(0x2006, 0x200c, 1);
		jump(0x2010, 0x2000, 2);
	}
	jump(0x2012, 0x3000, 50);
	ret(0x3010, 0x1015, 3);
	jump(0x1020, 0x1000, 1);
	expect_all_found("calls: stuffing of the return predictor");
	check("calls: no stack grows by it", calls.nr_paths < 8);
	calls_release(&calls);
}

/* Two tasks: each leaves its stack where it calls the switch, and goes on there. */
static void switch_stacks(uint64_t from_sp, uint64_t to_sp)
{
	add(BRANCH_CALL, 0x8010, 0x8100, 1, 0x8015, from_sp, false);
	add_branch((struct event_branch){ .kind = BRANCH_JUMP,
					  .from = 0x8120,
					  .to = 0x8200,
					  .instructions = 9,
					  .sp = to_sp,
					  .left = from_sp,
					  .taken = to_sp });
}

static void test_switches(void)
{
	begin_test();
	start(0x1000);
	call(0x1010, 0x8000, 1);
	switch_stacks(0x20000, 0x40000); /* to a stack that nobody knows */
	ret(0x8210, 0x5000, 2);		 /* and that begins elsewhere */
	call(0x5010, 0x8000, 3);
	switch_stacks(0x3fe00, 0x20000);
	ret(0x8210, 0x8015, 2);
	ret(0x8020, 0x1015, 4);
	call(0x1020, 0x8000, 1);
	switch_stacks(0x1ff00, 0x3fe00);
	ret(0x8210, 0x8015, 2);
	ret(0x8020, 0x5015, 5);
	jump(0x5020, 0x5000, 100);
	expect_all_found("calls: returns after a switch of tasks");
	check("calls: the new task was seen to begin", calls.track.stats.tasks == 2);
	check("calls: all is under the root of its task",
	      calls.track.stats.rooted == calls.track.stats.instructions);
	expect("calls: each task has its own stack",
	       "1000 : 2\n8000 1015 : 5\n8100 8015 1015 : 9\n8200 8015 1015 : 4\n5000 : 103\n"
	       "8000 5015 : 6\n8100 8015 5015 : 9\n8000 1025 : 1\n8100 8015 1025 : 9\n"
	       "8200 8015 5015 : 2\n");
}

/* The same task goes on on another cpu. */
static void test_migration(void)
{
	begin_test();
	start(0x1000);
	call(0x1010, 0x8000, 1);
	switch_stacks(0x20000, 0x40000);
	ret(0x8210, 0x5000, 2);
	cpu = 1;
	start(0x7000);
	call(0x7010, 0x8000, 1);
	switch_stacks(0x60000, 0x20000);
	ret(0x8210, 0x8015, 2);
	ret(0x8020, 0x1015, 4);
	check("calls: a task that goes on elsewhere",
	      calls.track.stats.returns == 2 && calls.track.stats.found == 2);
	calls_release(&calls);
}

/* An interrupt runs on a stack of its own, on behalf of whom it interrupted. */
static void test_interrupt(void)
{
	begin_test();
	start(0x1000);
	call(0x1010, 0x2000, 1);
	add(BRANCH_ENTER, 0x2008, 0x7000, 2, 0x2008, 0x1f000, false);
	add(BRANCH_JUMP, 0x7008, 0x7010, 3, 0, 0x1f000, false);
	add_branch((struct event_branch){ .kind = BRANCH_CALL,
					  .from = 0x7018,
					  .to = 0x7800,
					  .instructions = 1,
					  .next = 0x701d,
					  .sp = 0x90000,
					  .left = 0x1f000,
					  .taken = 0x90008,
					  .pushed = 8 });
	ret(0x7810, 0x701d, 6);
	add(BRANCH_JUMP, 0x7020, 0x7028, 1, 0, 0x90008, false);
	add_branch((struct event_branch){ .kind = BRANCH_JUMP,
					  .from = 0x7030,
					  .to = 0x7038,
					  .instructions = 1,
					  .sp = 0x1f000,
					  .left = 0x90008,
					  .taken = 0x1f000 });
	add(BRANCH_LEAVE, 0x7040, 0x2008, 1, 0, 0x1f040, false);
	ret(0x2010, 0x1015, 2);
	jump(0x1020, 0x1000, 1);
	expect_all_found("calls: returns around an interrupt");
	check("calls: an interrupt's stack is no task", calls.track.stats.tasks == 1);
	check("calls: its end was found",
	      calls.track.stats.leaves == 1 && calls.track.stats.leaves_found == 1);
	expect("calls: an interrupt has the stack that it interrupted",
	       "1000 : 2\n2000 1015 : 4\n7000 2009 1015 : 3\n7010 2009 1015 : 2\n"
	       "7800 701d 2009 1015 : 6\n7028 2009 1015 : 1\n7038 2009 1015 : 1\n");
}

/* The call was made, the first instruction of the callee was not. */
static void test_interrupt_on_edge(void)
{
	begin_test();
	start(0x1000);
	call(0x1010, 0x2000, 1);
	add(BRANCH_ENTER, 0x2000, 0x7000, 0, 0x2000, 0x1f000, false);
	add(BRANCH_LEAVE, 0x7040, 0x2000, 5, 0, 0x1f040, false);
	ret(0x2010, 0x1015, 2);
	add(BRANCH_ENTER, 0x1015, 0x7000, 0, 0x1015, 0x1f000, false);
	add(BRANCH_LEAVE, 0x7040, 0x1015, 5, 0, 0x1f040, false);
	jump(0x1020, 0x1000, 1);
	expect_all_found("calls: an interrupt between a call and its callee");
	expect("calls: and one between a return and its caller",
	       "1000 : 2\n2000 1015 : 2\n7000 2001 1015 : 5\n7000 1016 : 5\n");
}

/* Linux returns from an exception that was none, to serialize. */
static void test_return_to_self(void)
{
	begin_test();
	start(0x1000);
	call(0x1010, 0x2000, 1);
	add(BRANCH_LEAVE, 0x2010, 0x2012, 3, 0, 0x1f000, false);
	ret(0x2020, 0x1015, 2);
	expect_all_found("calls: a return from no exception, to the next line");
	check("calls: it ends none", calls.track.stats.leaves == 0);
	calls_release(&calls);
}

/* A string instruction is interrupted and goes on; a fault goes on elsewhere. */
static void test_faults(void)
{
	begin_test();
	start(0x1000);
	call(0x1010, 0x2000, 1);
	jump(0x2008, 0x2008, 1);
	jump(0x2008, 0x2008, 1);
	add(BRANCH_ENTER, 0x2008, 0x7000, 0, 0x2008, 0x1f000, false);
	add(BRANCH_LEAVE, 0x7040, 0x2008, 5, 0, 0x1f040, false);
	jump(0x2008, 0x2008, 1);
	add(BRANCH_ENTER, 0x2008, 0x7100, 0, 0x2008, 0x1f000, false);
	add(BRANCH_LEAVE, 0x7040, 0x2080, 5, 0, 0x1f040, false);
	ret(0x2090, 0x1015, 2);
	expect_all_found("calls: a string instruction, and a fault that was mended");
	calls_release(&calls);
}

static void test_longjmp(void)
{
	begin_test();
	start(0x1000);
	call(0x1010, 0x2000, 1);
	call(0x2010, 0x3000, 1);
	call(0x3010, 0x4000, 1);
	jump(0x4010, 0x2018, 1);
	ret(0x2020, 0x1015, 2);
	call(0x1020, 0x5000, 1);
	ret(0x5010, 0x1025, 1);
	expect_all_found("calls: a jump out of three functions");
	calls_release(&calls);
}

/* A program, its system calls, its child, a signal, another program in its place. */
static void test_programs(void)
{
	begin_test();
	start(0x900000);
	add(BRANCH_LEAVE, 0x900010, 0x1000, 5, 0, 0x70000, true);
	add(BRANCH_CALL, 0x1010, 0x2000, 1, 0x1015, 0, true);
	add(BRANCH_ENTER, 0x2010, 0x910000, 3, 0x2012, 0x6ff00, false);
	add(BRANCH_LEAVE, 0x910040, 0x2012, 20, 0, 0x6ff00, true);
	add(BRANCH_RETURN, 0x2020, 0x1015, 1, 0, 0, true);
	check("calls: a system call",
	      calls.track.stats.returns == 1 && calls.track.stats.found == 1);
	/* The child comes later, in another space. */
	cpu = 1;
	pid = 2;
	start(0x900000);
	add(BRANCH_LEAVE, 0x900020, 0x2012, 5, 0, 0x6ff00, true);
	add(BRANCH_RETURN, 0x2020, 0x1015, 1, 0, 0, true);
	check("calls: a child has its parent's callers",
	      calls.track.stats.returns == 2 && calls.track.stats.found == 2);
	cpu = 0;
	pid = 1;
	add(BRANCH_CALL, 0x1020, 0x3000, 1, 0x1025, 0, true);
	add(BRANCH_ENTER, 0x3008, 0x920000, 3, 0x3008, 0x6ff00, false);
	add(BRANCH_LEAVE, 0x920040, 0x4000, 20, 0, 0x6fe00, true); /* the handler */
	add(BRANCH_RETURN, 0x4010, 0x4100, 2, 0, 0, true);	   /* its trampoline */
	add(BRANCH_ENTER, 0x4108, 0x910000, 2, 0x410a, 0x6ff00, false);
	add(BRANCH_LEAVE, 0x910040, 0x3008, 20, 0, 0x6ff00, true);
	add(BRANCH_RETURN, 0x3010, 0x1025, 4, 0, 0, true);
	check("calls: a signal", calls.track.stats.returns == 3 && calls.track.stats.found == 3);
	add(BRANCH_ENTER, 0x1030, 0x910000, 3, 0x1032, 0x6ff00, false);
	pid = 3;
	add(BRANCH_LEAVE, 0x910040, 0x500000, 20, 0, 0x7fff0, true);
	add(BRANCH_JUMP, 0x500004, 0x500010, 7, 0, 0, true);
	check("calls: another program begins at its root",
	      strstr(sums(), "user 500000 : 7\n") != NULL);
	calls_release(&calls);
}

/* Calls without end keep within bounds, and sums can be taken away at any time. */
static void test_bounds(void)
{
	uint64_t sum = 0;
	struct event ev;

	begin_test();
	start(0x1000);
	for (uint64_t i = 0; i < 100000; i++)
		call(0x1010, 0x2000, 1);
	while (calls_sample(&calls, &ev))
		sum += ev.sample.weight;
	check("calls: recursion without end", sum == 100000);
	call(0x1010, 0x2000, 1);
	ret(0x2010, 0x1015, 2);
	check("calls: sums are taken away in the middle",
	      calls_sample(&calls, &ev) && ev.sample.weight == 1 && calls_sample(&calls, &ev) &&
		      ev.sample.weight == 2 && !calls_sample(&calls, &ev));
	calls_release(&calls);
}

int main(void)
{
	test_plain();
	test_retpoline();
	test_stuffing();
	test_switches();
	test_migration();
	test_interrupt();
	test_interrupt_on_edge();
	test_return_to_self();
	test_faults();
	test_longjmp();
	test_programs();
	test_bounds();
	return test_result();
}

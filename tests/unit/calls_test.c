// SPDX-License-Identifier: GPL-2.0-or-later
/* pass/calls: the sums of a trace. Which code has which callers is in track_test and others. */
#include "trace_text.h"

static void expect_sums(const char *name, struct trace *trace, const char *want)
{
	trace->len = 0;
	trace->text[0] = '\0';
	trace_print_sums(trace);
	check(name, !strcmp(trace->text, want));
	if (strcmp(trace->text, want))
		printf("have:\n%swant:\n%s", trace->text, want);
}

#define CALLS_AND_LOOP        \
	"begin 1000 sp=8000;" \
	"call 1010 2000 4;"   \
	"jump 2008 2004 3;"   \
	"call 2010 3000 5;"   \
	"return 3010 2014 6;" \
	"return 2020 1014 7;" \
	"end 1020 1;"

static void test_leaves(void)
{
	struct trace trace;

	trace_begin(&trace, PUSHES);
	trace_rows(&trace, CALLS_AND_LOOP);
	check("calls: every instruction is counted", trace.calls.track.stats.instructions == 26);
	expect_sums("calls: sums by function", &trace,
		    "1000 : 5\n2000 1014 : 15\n3000 2014 1014 : 6\n");
	trace_end(&trace);
	trace_begin(&trace, PUSHES);
	trace.calls.function = NULL;
	trace_rows(&trace, CALLS_AND_LOOP);
	expect_sums("calls: sums by jump target, where functions are not known", &trace,
		    "1000 : 5\n2000 1014 : 3\n2004 1014 : 12\n3000 2014 1014 : 6\n");
	trace_end(&trace);
}

/* A caller is looked up at its address - 1; where code was interrupted, the address is its own. */
static void test_paths(void)
{
	expect("calls: a call and an interrupt at the same address are two callers",
	       "begin 1000 sp=8000;"
	       "call 1010 2000 1;"
	       "return 2010 1014 2;"
	       "enter 1014 2000 0 sp=7f00;"
	       "leave 2010 1014 3 sp=8000;"
	       "call 1010 2000 4;"
	       "jump 2010 2014 5;",
	       "1000 : 5\n"
	       "2000 1014 : 7\n"
	       "2000 1015 : 3\n"
	       "traps 1\n");
	expect("calls: code at the same address in the kernel and in a program",
	       "begin u1000 sp=8000;"
	       "call u1010 u2000 1;"
	       "return u2010 u1014 2;"
	       "syscall u1010 2000 3 sp=40000;"
	       "jump 2010 2014 4;",
	       "u1000 : 4\n"
	       "u2000 u1014 : 2\n"
	       "2000 u1014 : 4\n"
	       "traps 1 leaves 0\n");
	expect("calls: a guessed caller is not the exact one at the same address",
	       "begin 1000 sp=8000;"
	       "call 1010 2000 1 -16;"
	       "enter 2018 8000 2 -16 sp=7f00 save=A;"
	       "check 8008 2034 1014;"
	       "leave 8020 2018 3 sp=@A;"
	       "enter 2018 8000 2 next=0 after=201c sp=7f00;"
	       "check 8008 2034 1014;"
	       "jump 8010 8014 4;",
	       "1000 : 1\n"
	       "2000 1014 : 4\n"
	       "8000 2019 1014 : 3\n"
	       "8000 2019 1014 : 4\n"
	       "traps 2 leaves 1 equal 1 partial 1\n");
}

static void test_owners(void)
{
	struct trace trace;
	struct event ev;

	trace_begin(&trace, PUSHES);
	trace.space[0] = 7;
	trace_rows(&trace, "begin u1000 sp=8000; call u1010 u2000 1; jump u2010 u2014 2;");
	check("calls: a sum has the process of its task",
	      calls_sample(&trace.calls, &ev) && ev.pid == 7 && ev.tid == 7 &&
		      ev.sample.context == IP_USER && ev.sample.weight == 1);
	trace_end(&trace);
}

static void test_unselected(void)
{
	expect("calls: what is not selected counts for nothing, but is followed",
	       "begin 1000 sp=8000;"
	       "call 1010 2000 1;"
	       "call 2010 3000 100 outside;"
	       "jump 3010 3020 2;"
	       "return 3030 2014 3;",
	       "1000 : 1\n"
	       "3000 2014 1014 : 5\n");
}

/* The sums are emptied, the tasks are not: neither the one that runs nor those that were left. */
static void test_taken_away(void)
{
	struct trace trace;

	trace_begin(&trace, LINKS);
	trace_rows(&trace, "begin 1000 sp=20000;"
			   "call 1010 9000 1;"
			   "jump 9010 9018 2 stack=40000 save=A;"
			   "return 9020 5000 3;"
			   "call 5010 6000 4;");
	expect_sums("calls: sums so far", &trace, "1000 : 1\n9000 1014 : 5\n5000 : 4\n");
	expect_sums("calls: sums are taken away", &trace, "");
	trace_rows(&trace, "call 6010 9000 5;"
			   "jump 9010 9018 6 stack=@A;"
			   "return 9020 1014 7;"
			   "jump 1020 1024 8;");
	expect_sums("calls: and the stacks stay", &trace,
		    "6000 5014 : 5\n1000 : 8\n9000 1014 : 7\n9000 6014 5014 : 6\n");
	trace_end(&trace);
}

/* The handle of a frame is its address and which code was loaded there. */
static uint32_t loaded;

static uint32_t frame_at(void *data, uint64_t address, uint64_t context, uint32_t pid,
			 bool is_return)
{
	(void)data, (void)context, (void)pid;
	return (uint32_t)(address - is_return) * 10 + loaded;
}

/* The first frames of the next sum. */
static bool next_has(struct calls *calls, uint32_t leaf, uint32_t caller, uint64_t weight)
{
	struct event ev;

	return calls_sample(calls, &ev) && ev.sample.weight == weight && calls->nr_frames == 2 &&
	       calls->frames[0] == leaf && calls->frames[1] == caller;
}

static void test_unloaded(void)
{
	struct trace trace;
	struct event ev;

	trace_begin(&trace, PUSHES);
	trace.calls.frame = frame_at;
	loaded = 1;
	trace_rows(&trace, "begin 1000 sp=8000; call 1010 2000 0; return 2010 1014 2;");
	loaded = 2;
	trace.calls.version++;
	trace_rows(&trace, "call 1010 2000 0; return 2010 1014 4;");
	check("calls: code keeps its name after it is unloaded",
	      next_has(&trace.calls, 0x2000 * 10 + 1, 0x1013 * 10 + 1, 2));
	check("calls: other code at its place has its own",
	      next_has(&trace.calls, 0x2000 * 10 + 2, 0x1013 * 10 + 2, 4));
	check("calls: that is all", !calls_sample(&trace.calls, &ev));
	trace_end(&trace);
}

/* Code without end: other places all the time. */
static void test_full(void)
{
	uint64_t sum = 0, added = 0;
	struct event ev = { .kind = EVENT_BRANCH, .branch = { .kind = BRANCH_BEGIN } };
	struct calls calls;

	calls_init(&calls);
	ev.branch.context = IP_KERNEL;
	calls_add(&calls, &ev);
	ev.branch.kind = BRANCH_JUMP;
	ev.branch.instructions = 1;
	for (uint64_t i = 1; i <= 5000000; i++) {
		ev.branch.to = i * 16;
		calls_add(&calls, &ev);
		if (!calls_full(&calls))
			continue;
		added = i;
		while (calls_sample(&calls, &ev))
			sum += ev.sample.weight;
		check("calls: full tables can be emptied", !calls_full(&calls));
		break;
	}
	check("calls: the tables are full at some time", added > 0);
	check("calls: nothing is lost by that", sum == added);
	calls_release(&calls);
}

int main(void)
{
	test_leaves();
	test_paths();
	test_owners();
	test_unselected();
	test_taken_away();
	test_unloaded();
	test_full();
	return test_result();
}

// SPDX-License-Identifier: GPL-2.0-or-later
/* pass/track with incomplete or wrong traces: what it leaves out, and which numbers show it. */
#include "pass/track_parts.h"
#include "trace_text.h"

/* Rules of thumb */

/* Two tasks switch, and each goes on where no call is known. */
#define LOSS "call 1010 2000 1; call 2010 3000 1; return 3010 5014 1; return 5020 1018 1;"
#define LOSSES LOSS LOSS LOSS LOSS LOSS

static void test_blind(void)
{
	expect_on(BLIND, "rules: calls and returns",
		  "begin 1000;"
		  "call 1010 2000 1;"
		  "call 2010 2000 2;"
		  "call 2010 3000 3;"
		  "return 3010 2014 4;"
		  "return 2020 2014 5;"
		  "return 2020 1014 6;"
		  "jump 1020 1024 7;",
		  "1000 : 8\n"
		  "2000 1014 : 8\n"
		  "2000 2014 1014 : 8\n"
		  "3000 2014 2014 1014 : 4\n");
	expect_on(BLIND, "rules: a retpoline",
		  "begin 1000;"
		  "jump 1004 1008 20;"
		  "call 1010 9000 1;"
		  "call 9000 9010 1;"
		  "return 9014 5000 2;"
		  "return 5020 1014 10;"
		  "jump 1020 1024 3;",
		  "1000 : 24\n"
		  "9000 1014 : 1\n"
		  "9000 9004 1014 : 2\n"
		  "5000 1014 : 10\n"
		  "jumps 1\n");
	expect_on(BLIND, "rules: a return long after a call of the next bytes is no retpoline",
		  "begin 1000;"
		  "call 1010 9000 1;"
		  "call 9000 9010 1;"
		  "return 9014 5000 9;"
		  "jump 5020 5024 3;",
		  "1000 : 1\n"
		  "9000 1014 : 1\n"
		  "9000 9004 1014 : 9\n"
		  "5000 : 3\n"
		  "lost 1 rooted 11\n");
	expect_on(BLIND, "rules: calls that fill the cpu's return predictor",
		  "begin 1000;"
		  "call 1010 2000 1;"
		  "call 2010 2018 1;"
		  "call 2018 2020 1;"
		  "call 2020 2028 1;"
		  "jump 2030 2038 20;"
		  "call 2038 3000 3;"
		  "return 3010 203c 4;"
		  "return 2040 1014 5;"
		  "jump 1020 1024 6;",
		  "1000 : 7\n"
		  "2000 1014 : 1\n"
		  "2000 2014 1014 : 1\n"
		  "2000 201c 1014 : 1\n"
		  "2000 2024 1014 : 28\n"
		  "3000 203c 2024 1014 : 4\n");
	expect_on(BLIND, "rules: a function right behind a call is called",
		  "begin 1000;"
		  "call 1ffc 2000 1;"
		  "return 2010 5000 2;" /* no retpoline */
		  "jump 5020 5024 3;",
		  "1000 : 1\n"
		  "2000 2000 : 2\n"
		  "5000 : 3\n"
		  "lost 1 rooted 3\n");
	expect_on(BLIND,
		  "rules: a call within a function, but further away or backwards, is a call",
		  "begin 1000;"
		  "call 1010 1025 1;"
		  "return 1030 1014 2;"
		  "call 1020 1010 4;"
		  "return 1014 5000 8;" /* no retpoline */
		  "jump 5020 5024 16;",
		  "1000 : 5\n"
		  "1000 1014 : 2\n"
		  "1000 1024 : 8\n"
		  "5000 : 16\n"
		  "lost 1 rooted 15\n");
	expect_on(BLIND, "rules: calls that fill the return predictor are close to each other",
		  "begin 1000;"
		  "call 1010 1018 1;"
		  "call 1028 1030 2;"
		  "return 1030 102c 4;"
		  "return 1030 1014 8;"
		  "jump 1020 1024 16;",
		  "1000 : 17\n"
		  "1000 1014 : 10\n"
		  "1000 102c 1014 : 4\n");
	expect_on(BLIND,
		  "rules: in the kernel, a return out of an interrupt is no signal handler's",
		  "begin 1000;"
		  "call 1010 2000 1;"
		  "enter 2008 8000 2;"
		  "return 8010 5000 4;"
		  "jump 5010 5014 8;",
		  "1000 : 1\n"
		  "2000 1014 : 2\n"
		  "8000 2009 1014 : 4\n"
		  "5000 2009 1014 : 8\n"
		  "traps 1 leaves 0 lost 1 rooted 7\n");
	expect_on(BLIND, "rules: a return long after code asked for its own address",
		  "begin 1000;"
		  "call 1010 1018 1;"
		  "jump 1020 1024 20;"
		  "return 1030 4014 2;"
		  "jump 4020 4024 3;",
		  "1000 : 1\n"
		  "1000 1014 : 22\n"
		  "4000 : 3\n"
		  "beyond 1 rooted 23\n");
	expect_on(BLIND, "rules: a return to the next bytes",
		  "begin 1000;"
		  "call 1010 2000 1;"
		  "return 2010 2013 2;"
		  "return 2020 1014 3;"
		  "jump 1020 1024 4;",
		  "1000 : 5\n"
		  "2000 1014 : 5\n"
		  "jumps 1\n");
	expect_on(BLIND, "rules: a return to where nothing was called from forgets the callers",
		  "begin 1000;"
		  "call 1010 2000 1;"
		  "call 2010 3000 2;"
		  "return 3010 5014 3;" /* another task */
		  "call 5020 6000 4;"
		  "return 6010 5024 5;"
		  "jump 5030 5034 6;",
		  "1000 : 1\n"
		  "2000 1014 : 2\n"
		  "3000 2014 1014 : 3\n"
		  "5000 : 10\n"
		  "6000 5024 : 5\n"
		  "lost 1 rooted 6\n");
	expect_on(BLIND, "rules: in an interrupt, only its own calls are forgotten",
		  "begin 1000;"
		  "call 1010 2000 1;"
		  "enter 2008 8000 2;"
		  "call 8010 9000 3;"
		  "return 9010 5014 4;"
		  "jump 5020 5024 5;",
		  "1000 : 1\n"
		  "2000 1014 : 2\n"
		  "8000 2009 1014 : 3\n"
		  "9000 8014 2009 1014 : 4\n"
		  "5000 2009 1014 : 5\n"
		  "traps 1 leaves 0 lost 1 rooted 10\n");
	expect_on(BLIND, "rules: if many returns have no call, callers are left out",
		  "begin 1000;" LOSSES LOSSES LOSSES LOSSES "call 1010 2000 1;"
		  "enter 2008 8000 2;"
		  "call 8010 9000 3;"
		  "return 9010 8014 4;"
		  "leave 8020 2008 5;"
		  "jump 2010 2014 6;",
		  "1000 : 21\n"
		  "2000 1014 : 17\n"
		  "3000 2014 1014 : 17\n"
		  "3000 : 3\n"
		  "5000 : 20\n"
		  "2000 : 11\n"
		  "8000 : 8\n"
		  "9000 : 4\n"
		  "lost 17 beyond 16 rooted 3\n");
	expect_on(BLIND, "rules: interrupts, faults, system calls",
		  "begin u1000;"
		  "call u1010 u2000 1;"
		  "syscall u2008 8000 2;"
		  "enter 8008 9000 3;"
		  "leave 9010 8008 4;"
		  "enter 8010 9000 5;"
		  "leave 9010 8040 6;" /* a fixup */
		  "leave 8050 u200c 7;"
		  "return u2020 u1014 8;"
		  "jump u1020 u1024 9;",
		  "u1000 : 10\n"
		  "u2000 u1014 : 10\n"
		  "8000 u200c u1014 : 15\n"
		  "9000 8009 u200c u1014 : 4\n"
		  "9000 8011 u200c u1014 : 6\n"
		  "traps 3\n");
	expect_on(BLIND, "rules: a signal handler, which returns to a trampoline",
		  "begin u1000;"
		  "call u1010 u2000 1;"
		  "enter u2008 8000 2;"
		  "leave 8020 u5000 3;"
		  "return u5010 u7000 4;"
		  "syscall u7000 8000 5;"
		  "leave 8020 u2008 6;"
		  "return u2020 u1014 7;"
		  "jump u1020 u1024 8;",
		  "u1000 : 9\n"
		  "u2000 u1014 : 9\n"
		  "8000 u2008 u1014 : 3\n"
		  "u5000 u2009 u1014 : 4\n"
		  "u7000 u2009 u1014 : 5\n"
		  "8000 u7004 u2009 u1014 : 6\n"
		  "tasks 2 switches 1 traps 2 jumps 1\n");
	expect_on(BLIND, "rules: a child process",
		  "begin u1000;"
		  "call u1010 u2000 1;"
		  "syscall u2008 8000 2;"
		  "leave 8020 u200c 3;"
		  "cpu 1;"
		  "space 2;"
		  "begin 8000;"
		  "leave 8020 u200c 4;"
		  "return u2010 u1014 5;"
		  "jump u1020 u1024 6;",
		  "u1000 : 7\n"
		  "u2000 u1014 : 7\n"
		  "8000 u200c u1014 : 3\n"
		  "8000 : 4\n"
		  "tasks 3 traps 1 leaves 2 leaves-found 1\n");
}

/* Wrong traces */

static void test_wrong(void)
{
	expect("quality: a stack pointer that is not where the code moved it",
	       "begin 1000 sp=8000;"
	       "call 1010 2000 1 -16;"
	       "call 2010 3000 2 -16;"
	       "jump 3010 3020 3 sp=7000;"
	       "jump 3020 3024 4;"
	       "return 3030 2014 5 ? sp=7fe0;"
	       "jump 2020 2024 6;"
	       "return 2030 1014 7 +16;"
	       "jump 1020 1024 8;",
	       "1000 : 9\n"
	       "2000 1014 : 15\n"
	       "3000 2014 1014 : 12\n"
	       "strayed 1 doubtful 9 rooted 27\n");
	expect("quality: a call is missing",
	       "begin 1000 sp=8000;"
	       "call 1010 2000 1 -16;"
	       "call 2010 3000 2 -16;"
	       /* 3000 calls 4000 */
	       "return 4010 3014 3 sp=7fc0;"
	       "jump 3020 3024 4 !;"
	       "jump 3030 3034 5;",
	       "1000 : 1\n"
	       "2000 1014 : 2\n"
	       "3000 2014 1014 : 12\n"
	       "jumps 1 strayed 1 doubtful 9 rooted 6\n");
	expect_on(PUSHES, "quality: a return is missing",
		  "begin 1000 sp=8000;"
		  "call 1010 2000 1 -16;"
		  "call 2010 3000 2 -16;"
		  /* 3000 returns */
		  "return 2020 1014 3 +16 sp=7ff0;"
		  "jump 1020 1024 4;",
		  "1000 : 5\n"
		  "2000 1014 : 2\n"
		  "3000 2014 1014 : 3\n"
		  "strayed 1\n");
	expect_on(LINKS, "quality: a return is missing",
		  "begin 1000 sp=8000;"
		  "call 1010 2000 1 -16;"
		  "call 2010 3000 2 -16;"
		  /* 3000 returns */
		  "return 2020 1014 3 +16 sp=7ff0;"
		  "jump 1020 1024 4;",
		  "1000 : 5\n"
		  "2000 1014 : 2\n"
		  "3000 2014 1014 : 3\n");
	expect("quality: firmware passes an exception on to the kernel",
	       "begin 1000 sp=8000;"
	       "call 1010 2000 1 -16;"
	       "enter 2008 9000 2 save=A;"
	       "leave 9020 8000 3 sp=@A;"
	       "jump 8010 8020 4;"
	       "leave 8030 2008 5 sp=@A;"
	       "return 2010 1014 6 +16;",
	       "1000 : 1\n"
	       "2000 1014 : 8\n"
	       "9000 2009 1014 : 3\n"
	       "8000 1014 : 9\n"
	       "traps 1 leaves 2 leaves-found 1 doubtful 15 rooted 6\n");
	expect("quality: one return ends two exceptions, and the tracker ends one",
	       "begin 1000 sp=8000;"
	       "call 1010 2000 1 -16;"
	       "call 2010 3000 2 -16;"
	       "enter 3008 9000 3 sp=6000;"
	       "enter 9000 c000 4;"
	       "leave c020 2018 5 sp=6000;" /* 9000 and 3000 are over */
	       "jump 2020 2030 6;",
	       "1000 : 1\n"
	       "2000 1014 : 2\n"
	       "3000 2014 1014 : 3\n"
	       "9000 3009 2014 1014 : 4\n"
	       "c000 9001 3009 2014 1014 : 5\n"
	       "2000 3009 2014 1014 : 6\n"
	       "traps 2 leaves 1 doubtful 6 rooted 15\n");
	expect("quality: part of the trace is missing",
	       "begin 1000 sp=8000;"
	       "call 1010 2000 1 -16;"
	       "begin 3000 sp=7000;"
	       "return 3010 2054 2 +16;"
	       "return 2060 1014 3 +48;"
	       "jump 1020 1024 4;",
	       "1000 : 5\n"
	       "3000 : 2\n"
	       "2000 : 3\n"
	       "tasks 2 beyond 2 rooted 3\n");
	expect("quality: the begin of an exception is missing",
	       "begin u1000 sp=8000;"
	       "call u1010 u2000 1 -16;"
	       "jump 8010 8020 2 sp=40000;"
	       "leave 8030 u2008 3 sp=7ff0;"
	       "jump u2010 u2014 4;",
	       "u1000 : 1\n"
	       "u2000 u1014 : 2\n"
	       "8000 : 3\n"
	       "u2000 : 4\n"
	       "tasks 2 leaves 1 leaves-found 0 strayed 1\n");
	expect("quality: the end of an exception is missing",
	       "begin u1000 sp=8000;"
	       "call u1010 u2000 1 -16;"
	       "enter u2008 8000 2 sp=40000;"
	       "return u2010 u1014 3 sp=7ff0;"
	       "jump u1020 u1024 4;"
	       "enter u1028 8000 2 sp=40000 save=A;"
	       "leave 8030 u1028 3 sp=@A;"
	       "jump u1030 u1034 6;",
	       "u1000 : 1\n"
	       "u2000 u1014 : 2\n"
	       "8000 u2008 u1014 : 3\n"
	       "u1000 u2009 u1014 : 12\n"
	       "8000 u1028 u2009 u1014 : 3\n"
	       "traps 2 leaves 1 jumps 1 strayed 1 doubtful 15 rooted 6\n");
	expect("quality: a task goes on on another cpu before it leaves the first",
	       "begin 1000 sp=8000;"
	       "call 1010 2000 1 -16;"
	       "call 2010 3000 2 -16;"
	       "cpu 1;"
	       "begin 9000 sp=20000;"
	       "call 9010 6000 1 -16;"
	       "return 6010 2014 4 stack=7fd0;" /* the stack of cpu 0's task */
	       "call 2020 4000 5;"
	       "cpu 0;"
	       "return 3010 5014 6 -16 stack=30000;"
	       "jump 5020 5024 7;"
	       "cpu 1;"
	       "return 4010 2024 8;"
	       "jump 2030 2034 9;",
	       "1000 : 1\n"
	       "2000 1014 : 2\n"
	       "3000 2014 1014 : 6\n"
	       "9000 : 1\n"
	       "6000 9014 : 4\n"
	       "2000 : 14\n"
	       "4000 2024 : 8\n"
	       "5000 : 7\n"
	       "tasks 4 switches 2 doubtful 22 rooted 21\n");
	expect("quality: what turns out to be doubtful counts once",
	       "begin 1000 sp=8000;"
	       "call 1010 2000 1 -16;"
	       "call 2010 7000 2 -16 stack=40000 save=A;"
	       "call 7010 9000 4 -16;"
	       "enter 9004 c000 8 sp=3f000 save=T;"
	       "leave c010 9004 16 sp=@T;"
	       "jump 9008 900c 32 sp=3e000;"
	       "jump 900c 9010 64;"
	       "jump 9010 2018 128 stack=@A save=B outside;" /* it was another task */
	       "jump 2020 2030 256;"
	       "call 2030 9000 512;"
	       "jump 9010 9018 1024 stack=@B;" /* whose stack pointer is still wrong */
	       "jump 9020 9030 2048;"
	       "return 9030 7014 4096 ? sp=3fff0;"
	       "jump 7020 7024 8192;",
	       "1000 : 1\n"
	       "2000 1014 : 770\n"
	       "7000 2014 1014 : 4\n"
	       "9000 7014 2014 1014 : 104\n"
	       "c000 9005 7014 2014 1014 : 16\n"
	       "7000 2014 : 8192\n"
	       "9000 7014 2014 : 6144\n"
	       "9000 2034 1014 : 1024\n"
	       "switches 1 traps 1 strayed 1 doubtful 6268 rooted 9987\n");
	expect("quality: a child has the doubtful callers of its parent",
	       "begin u1000 sp=8000;"
	       "call u1010 u2000 1 -16;"
	       "jump u2004 u2008 2 sp=7000;"
	       "syscall u2010 8000 4 sp=40000 save=A;"
	       "space 2;"
	       "leave 8010 u2014 8 sp=@A;"
	       "jump u2020 u2024 16;",
	       "u1000 : 1\n"
	       "u2000 u1014 : 22\n"
	       "8000 u2014 u1014 : 8\n"
	       "tasks 2 switches 1 traps 1 leaves-found 0 strayed 1 doubtful 28 rooted 3\n");
	expect("quality: the trace of a program ends, and goes on",
	       "begin u1000 sp=8000;"
	       "call u1010 u2000 1 -16;"
	       "end u2010 2 -16 save=A;"
	       "cpu 1;"
	       "begin u2018 sp=@A;"
	       "return u2020 u1014 3 +16;"
	       "jump u1020 u1024 4;",
	       "u1000 : 5\n"
	       "u2000 u1014 : 5\n"
	       "switches 1\n");
	expect("quality: the trace of a program goes on in a caller, and the program is "
	       "interrupted",
	       "begin u1000 sp=8000;"
	       "call u1010 u2000 1 -16;"
	       "end u2010 2 -16;"
	       "begin u1018 sp=8000;"
	       "jump u1020 u1024 4;"
	       "enter u1028 8000 8 sp=40000;"
	       "call 8010 9000 16;"
	       "jump 9010 9018 32 stack=60000;"
	       "return 9020 a000 64;"
	       "cpu 1;"
	       "begin u3000 sp=7000;" /* another thread: the first one is in the kernel */
	       "jump u3010 u3014 128;",
	       "u1000 : 13\n"
	       "u2000 u1014 : 2\n"
	       "8000 u1028 : 16\n"
	       "9000 8014 u1028 : 96\n"
	       "u3000 : 128\n"
	       "tasks 3 switches 2 traps 1 leaves 0\n");
	expect("quality: the trace of another program goes on",
	       "begin u1000 sp=8000;"
	       "call u1010 u2000 1 -16;"
	       "end u2010 2 -16 save=A;"
	       "space 2;"
	       "begin u2018 sp=@A;"
	       "jump u2020 u2024 3;",
	       "u1000 : 1\n"
	       "u2000 u1014 : 2\n"
	       "u2000 : 3\n"
	       "tasks 2 switches 1\n");
}

/* Whatever the trace says, the tracker counts every instruction once, and keeps its bounds. */

#define MAX_DEPTH 4096
#define MAX_UNSURE 256
#define MAX_LEFT 4096

static bool task_in_bounds(const struct track_task *task)
{
	return !task ||
	       (task->nr <= MAX_DEPTH && task->nr_stacks >= 1 && task->nr_stacks <= TRACK_STACKS &&
		task->stacks[task->nr_stacks - 1].depth <= task->nr);
}

/* The stacks of tasks that are not running do not overlap. */
static bool are_in_order(const struct track_stack *a, const struct track_stack *b)
{
	return a->space < b->space ||
	       (a->space == b->space && (!a->low || (a->low <= a->high && a->high < b->low)));
}

static bool in_bounds(const struct track *track)
{
	bool good = track->nr_left <= MAX_LEFT;

	for (size_t i = 0; i < track->nr_cpus; i++)
		good &= task_in_bounds(track->cpus[i].task);
	for (size_t i = 0; i < track->nr_left; i++)
		good &= task_in_bounds(track->left[i]) &&
			(!i ||
			 are_in_order(top_stack(track->left[i - 1]), top_stack(track->left[i])));
	return good;
}

static uint64_t sum_of(struct calls *calls)
{
	struct event ev;
	uint64_t sum = 0;

	while (calls_sample(calls, &ev))
		sum += ev.sample.weight;
	return sum;
}

static uint64_t pick(uint64_t *state, uint64_t first, uint64_t step, uint32_t nr)
{
	return first + next_random(state) % nr * step;
}

/* An event with values that often equal those of other events. */
static struct event random_event(uint64_t *state)
{
	struct event ev = { .kind = EVENT_BRANCH,
			    .cpu = next_random(state) % 3,
			    .pid = 1 + next_random(state) % 3 };
	struct event_branch *b = &ev.branch;
	uint32_t bits = next_random(state);

	b->kind = (enum branch_kind)(next_random(state) % 200 ? next_random(state) % BRANCH_BEGIN
							      : next_random(state) % 7);
	b->from = pick(state, 0x1000, 8, 1024);
	b->to = pick(state, 0x1004, 8, 1024);
	b->next = bits & 1 ? b->from + 4 : bits & 2 ? b->from : bits & 4 ? b->to : 0;
	b->after = bits & 8 ? pick(state, 0x1004, 8, 1024) : 0;
	b->instructions = bits >> 4 & 15;
	b->context = bits & 0x100 ? IP_USER : IP_KERNEL;
	b->space = pick(state, 0, 1, 3);
	b->sp = bits & 0x200 ? pick(state, 0x8000, 16, 512) : 0;
	b->left = bits & 0x400 ? pick(state, 0x8000, 16, 512) : 0;
	b->taken = bits & 0x800 && bits & 0x1000 ? pick(state, 0x8000, 16, 512) : 0;
	b->moved = (int32_t)pick(state, 0, 8, 32) - 128;
	b->has_moved = bits & 0x2000;
	b->pushed = bits & 0x4000 ? 8 : 0;
	b->guest = bits >> 21 & 15 ? 0 : (uint16_t)(1 + (bits >> 25 & 1));
	ev.outside = bits >> 16 & 31 ? 0 : OUTSIDE_WHEN;
	return ev;
}

static void random_trace(uint64_t *state, bool *bounded, bool *counted, bool *once)
{
	uint64_t wanted = 0, sum = 0;
	struct trace trace;
	const struct track_stats *stats = &trace.calls.track.stats;

	trace_begin(&trace, PUSHES);
	for (int i = 1; i <= 50000; i++) {
		struct event ev = random_event(state);
		bool runs = ev.cpu < trace.calls.track.nr_cpus &&
			    trace.calls.track.cpus[ev.cpu].task && ev.branch.kind != BRANCH_BEGIN;

		wanted += runs && !ev.outside ? ev.branch.instructions : 0;
		calls_add(&trace.calls, &ev);
		*once &= stats->rooted <= stats->instructions &&
			 stats->doubtful <= stats->instructions - stats->rooted;
		if (i % 10000 == 0)
			*bounded &= in_bounds(&trace.calls.track);
		if (i % 20000 == 0)
			sum += sum_of(&trace.calls);
	}
	*counted &= sum + sum_of(&trace.calls) == wanted;
	trace_end(&trace);
}

static void test_random(void)
{
	bool bounded = true, counted = true, once = true;
	uint64_t state = 1;

	for (int i = 0; i < 20; i++)
		random_trace(&state, &bounded, &counted, &once);
	check("hostile: a million random events keep the bounds", bounded);
	check("hostile: their instructions are counted once", counted);
	check("hostile: none of them is both rooted and doubtful", once);
}

static void repeat(struct trace *trace, int times, const char *rows)
{
	for (int i = 0; i < times; i++)
		trace_rows(trace, rows);
}

static void test_endless_calls(enum machine machine, const char *name)
{
	size_t max = machine == BLIND ? MAX_UNSURE : MAX_DEPTH;
	struct trace trace;

	trace_begin(&trace, machine);
	trace_rows(&trace, "begin 1000 sp=80000000;");
	repeat(&trace, 50000, "call 1010 2000 1 -16; call 2010 1000 1 -16;");
	check(name, in_bounds(&trace.calls.track) && trace.calls.nr_paths < 20000 &&
			    trace.calls.track.stats.rooted == max + 1);
	check("hostile: and are counted", sum_of(&trace.calls) == 100000);
	trace_end(&trace);
}

#define MANY_TASKS 20000

/* Switches to the task on the stack `i`. */
static void resume(struct trace *trace, uint64_t i)
{
	char rows[200];

	snprintf(rows, sizeof(rows),
		 "call 5010 9000 1 -16; jump 9010 9018 1 stack=%" PRIx64
		 "; return 9020 5014 1; jump 5020 5024 1;",
		 i * 0x1000000 - 16);
	trace_rows(trace, rows);
}

static bool goes_on(const struct trace *trace, uint64_t times)
{
	const struct track_stats *stats = &trace->calls.track.stats;

	return stats->tasks == MANY_TASKS + 1 && stats->returns == stats->found &&
	       stats->found == times;
}

static void test_many_tasks(void)
{
	struct trace trace;

	trace_begin(&trace, LINKS);
	trace_rows(&trace, "begin 1000 sp=1000000;");
	for (uint64_t i = 2; i < 2 + MANY_TASKS; i++) {
		char rows[200];

		snprintf(rows, sizeof(rows),
			 "call 5010 9000 1 -16; jump 9010 9018 1 save=L stack=%" PRIx64
			 "; return 9020 5000 1; jump 5008 500c 1;",
			 i * 0x1000000);
		trace_rows(&trace, rows);
	}
	check("hostile: more tasks than are kept",
	      trace.calls.track.stats.tasks == MANY_TASKS + 1 &&
		      trace.calls.track.nr_left == MAX_LEFT && in_bounds(&trace.calls.track));
	check("hostile: their stacks are the same few", trace.calls.nr_paths < 16);
	/* The tracker gave up the oldest tasks; the youngest goes on, and so does the oldest kept. */
	trace_rows(&trace, "call 5010 9000 1 -16; jump 9010 9018 1 stack=@L;"
			   "return 9020 5014 1; jump 5020 5024 1;");
	check("hostile: a task that was left last goes on", goes_on(&trace, 1));
	resume(&trace, MANY_TASKS + 1 - MAX_LEFT);
	check("hostile: the first one that is kept goes on", goes_on(&trace, 2));
	resume(&trace, MANY_TASKS - MAX_LEFT);
	check("hostile: the one before does not", !goes_on(&trace, 3));
	trace_end(&trace);
}

/* A signal handler leaves nothing behind. */
static void test_many_signals(void)
{
	struct trace trace;

	trace_begin(&trace, PUSHES);
	trace_rows(&trace, "begin u1000 sp=8000; call u1010 u2000 1 -16;");
	repeat(&trace, 1000,
	       "enter u2008 8000 2 sp=40000 save=A; leave 8020 u5000 5 sp=7c00;"
	       "syscall u5010 8000 1 sp=40000; leave 8020 u2008 9 sp=@A;");
	check("hostile: 1000 signal handlers", trace.calls.track.nr_left <= 1);
	check("hostile: on the same stacks", trace.calls.nr_paths < 8);
	trace_end(&trace);
}

#define NESTED 20

static void test_nested_stacks(void)
{
	struct trace trace;
	char row[100];

	trace_begin(&trace, PUSHES);
	trace_rows(&trace, "begin 1000 sp=1000000;");
	for (uint64_t i = 2; i < 2 + NESTED; i++) {
		snprintf(row, sizeof(row), "call 1010 1000 1 -16 stack=%" PRIx64 " save=%c;",
			 i * 0x1000000, (int)('A' + i));
		trace_rows(&trace, row);
	}
	check("hostile: 20 nested stacks", trace.calls.track.cpus[0].task->nr == NESTED);
	for (uint64_t i = 1 + NESTED; i > 1; i--) {
		snprintf(row, sizeof(row), "return 1020 1014 1; jump 1020 1024 1 stack=@%c;",
			 (int)('A' + i));
		trace_rows(&trace, row);
	}
	check("hostile: and their ends", trace.calls.track.cpus[0].task->nr == 0 &&
						 in_bounds(&trace.calls.track) &&
						 trace.calls.track.stats.found == NESTED &&
						 trace.calls.track.stats.tasks == 1);
	trace_end(&trace);
}

int main(void)
{
	test_blind();
	test_wrong();
	test_random();
	test_endless_calls(PUSHES, "hostile: calls without end");
	test_endless_calls(BLIND, "hostile: calls without end or stack pointers");
	test_many_tasks();
	test_many_signals();
	test_nested_stacks();
	return test_result();
}

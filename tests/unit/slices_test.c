// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * pass/slices. These traces begin at 1000 ns, and an instruction takes 1 ns. Each slice is a line, in the order of their ends:
 *
 *	BEGIN-END TASK FUNCTION KIND INSTRUCTIONS/OWN
 *
 * indented by its depth. `~` before a time: the slice is cut there.
 */
#include "trace_text.h"

#define USER 0x80000000u

struct shown {
	struct trace *trace;
	unsigned depth[64];
	uint32_t open[64][64]; /* by task and depth */
	bool cut[64][64];
	uint64_t last; /* the time of the last end */
	bool wrong;
};

static uint32_t frame_of(void *data, uint64_t address, uint64_t context, uint32_t pid,
			 bool is_return)
{
	(void)data, (void)pid, (void)is_return;
	return (uint32_t)(address & ~0xfffull) | (context == IP_USER ? USER : 0);
}

static uint32_t frame_at(void *data, uint32_t mark)
{
	return calls_leaf(&((struct shown *)data)->trace->calls, mark);
}

static int announced(void *data, const struct event *ev, uint32_t frame)
{
	struct shown *shown = data;
	unsigned task = (ev->tid - 1000) % 64;

	(void)frame;
	shown->wrong |= shown->depth[task] != 0;
	return 0;
}

static void print_slice(struct shown *shown, unsigned task, const struct event *ev, bool cut)
{
	static const char *const kinds[] = { "begin", "call", "jump", "trap", "syscall" };
	const struct event_slice *slice = &ev->slice;

	trace_print(shown->trace, "%*s%s%" PRIu64 "-%s%" PRIu64 " %u %s%x %s %" PRIu64 "/%" PRIu64 "\n",
		    (int)shown->depth[task], "", cut ? "~" : "", slice->since,
		    slice->cut ? "~" : "", ev->time, task, slice->frame & USER ? "u" : "",
		    slice->frame & ~USER, kinds[slice->kind], slice->instructions, slice->own);
}

static int emitted(void *data, struct event *ev)
{
	struct shown *shown = data;
	unsigned task = (ev->tid - 1000) % 64, depth = shown->depth[task];

	if (!ev->slice.leave) {
		shown->open[task][depth] = ev->slice.frame;
		shown->cut[task][depth] = ev->slice.cut;
		shown->depth[task]++;
		return 0;
	}
	shown->depth[task] = --depth;
	shown->wrong |= shown->open[task][depth] != ev->slice.frame || ev->time < ev->slice.since;
	print_slice(shown, task, ev, shown->cut[task][depth]);
	return 0;
}

static void slices_on(enum machine machine, const char *name, uint64_t from, uint64_t until,
		      const char *rows, const char *want)
{
	struct trace trace;
	struct shown shown = { .trace = &trace };
	struct slices slices = { .frame = frame_at,
				 .announce = announced,
				 .emit = emitted,
				 .data = &shown,
				 .from = from,
				 .until = until };

	trace_begin(&trace, machine);
	trace.time = 1000;
	trace.from = from;
	trace.until = until;
	trace.calls.frame = frame_of;
	trace.calls.slices = &slices;
	trace_rows(&trace, rows);
	slices_finish(&slices);
	check(name, !strcmp(trace.text, want) && !shown.wrong);
	if (strcmp(trace.text, want))
		printf("have:\n%swant:\n%s", trace.text, want);
	trace_end(&trace);
	slices_release(&slices);
}

static void slices_are(const char *name, const char *rows, const char *want)
{
	slices_on(PUSHES, name, 0, UINT64_MAX, rows, want);
	slices_on(LINKS, name, 0, UINT64_MAX, rows, want);
}

static void test_calls(void)
{
	slices_are("slices: calls and returns",
		   "begin 1000 sp=8000;"
		   "call 1010 2000 10;"
		   "call 2010 3000 5;"
		   "return 3010 2014 7;"
		   "call 2020 3000 1;"
		   "return 3010 2024 2;"
		   "return 2030 1014 3;"
		   "jump 1020 1024 4;",
		   "");
	slices_are("slices: a tail call",
		   "begin 1000 sp=8000;"
		   "call 1010 2000 10;"
		   "jump 2010 3000 5;"
		   "jump 3010 3000 1;" /* not another function */
		   "return 3010 1014 7;"
		   "jump 1020 1024 4;",
		   "");
	slices_are("slices: a longjmp past two frames",
		   "begin 1000 sp=8000;"
		   "call 1010 2000 1 -16;"
		   "call 2010 3000 2 -16;"
		   "call 3010 4000 3 -16;"
		   "jump 4010 1018 4 stack=8000;"
		   "jump 1020 1024 5;",
		   "");
	slices_are("slices: callers from before the trace",
		   "begin 3000 sp=8000;"
		   "jump 3010 3020 100;"
		   "return 3030 2014 5 +16;"
		   "call 2020 4000 7;"
		   "return 4010 2024 8;"
		   "return 2030 1014 9 +16;"
		   "jump 1020 1024 11;",
		   "");
	slices_are("slices: recursion",
		   "begin 1000 sp=8000;"
		   "call 1010 2000 1 -16;"
		   "call 2010 2000 2 -16;"
		   "return 2020 2014 3 +16;"
		   "return 2020 1014 4 +16;"
		   "jump 1020 1024 5;",
		   "");
}

/* In the middle of two tasks, on two cpus. */
#define WINDOWED                                     \
	"begin 1000 sp=8000;"                        \
	"call 1010 2000 10;"                         \
	"cpu 1; begin 6000 sp=30000; cpu 0;"         \
	"call 2010 5000 10 -16;"                     \
	"return 5010 3000 10 stack=20000 save=A;"    \
	"call 3010 4000 10;"                         \
	"cpu 1; call 6010 7000 10; cpu 0;"           \
	"return 4010 3014 10;"                       \
	"call 3020 5000 10 -16;"                     \
	"return 5010 2014 10 stack=@A;"              \
	"cpu 1; return 7010 6014 10; cpu 0;"         \
	"return 2020 1014 10;"                       \
	"jump 1020 1024 10;"

static void test_windows(void)
{
	slices_on(PUSHES, "slices: no window", 0, UINT64_MAX, WINDOWED, "");
	slices_on(PUSHES, "slices: the first window", 0, 1045, WINDOWED, "");
	slices_on(PUSHES, "slices: the last window", 1045, UINT64_MAX, WINDOWED, "");
}

static void test_kernels(void)
{
	slices_are("slices: a system call and an interrupt in it",
		   "begin u1000 sp=8000;"
		   "syscall u1010 8000 2 sp=40000 save=A;"
		   "call 8010 9000 3 -16;"
		   "enter 9008 a000 4 save=B;"
		   "leave a020 9008 5 sp=@B;"
		   "return 9010 8014 6 +16;"
		   "leave 8020 u1014 7 sp=@A;"
		   "jump u1020 u1024 8;",
		   "");
	slices_are("slices: two tasks",
		   "begin 1000 sp=8000;"
		   "call 1010 5000 1 -16;"
		   "return 5010 2000 2 stack=20000 save=A;"
		   "call 2010 5000 3 -16;"
		   "return 5010 1014 4 stack=@A;"
		   "jump 1020 1024 5;",
		   "");
}

int main(void)
{
	test_calls();
	test_kernels();
	test_windows();
	return test_result();
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * pass/slices. These traces begin at 1000 ns, and an instruction takes 1 ns. Each slice is a line, in the order of their ends:
 *
 *	BEGIN-END TASK FUNCTION KIND INSTRUCTIONS/OWN LINES/OWN
 *	BEGIN-END cpu N runs TASK INSTRUCTIONS
 *	BEGIN-END cpu N gap
 *
 * Calls are indented by their depth. `~` before a time: the slice is cut there. On another axis than time,
 * "at BEGIN-END" follows.
 */
#include "trace_text.h"

#define USER 0x80000000u

struct shown {
	struct trace *trace;
	unsigned depth[64];
	uint32_t open[64][64]; /* by task and depth */
	bool cut[64][64];
	uint64_t last; /* the time of the last end */
	uint64_t own;  /* instructions of all slices */
	bool wrong;
	bool masked[TRACE_CPUS]; /* interrupts went off before */
};

static uint32_t frame_of(void *data, uint64_t address, uint64_t context, uint32_t pid,
			 bool is_return)
{
	(void)data, (void)pid, (void)is_return;
	return (uint32_t)address | (context == IP_USER ? USER : 0);
}

static bool has_symbol(uint32_t frame)
{
	return frame < 0xf000 || frame > 0xffff;
}

static bool same_function(void *data, uint32_t frame, uint32_t other)
{
	(void)data;
	return !has_symbol(frame) && !has_symbol(other);
}

static int announced(void *data, const struct event *ev, uint32_t frame)
{
	struct shown *shown = data;
	unsigned task = (ev->tid - 1000) % 64;

	(void)frame;
	shown->wrong |= shown->depth[task] != 0;
	return 0;
}

static void print_times(struct shown *shown, const struct event *ev)
{
	const struct event_slice *slice = &ev->slice;

	if (slice->began != slice->since || slice->ended != ev->time)
		trace_print(shown->trace, " at %" PRIu64 "-%" PRIu64, slice->began, slice->ended);
	trace_print(shown->trace, "\n");
}

static void print_slice(struct shown *shown, unsigned task, const struct event *ev, bool cut)
{
	static const char *const kinds[] = { "begin", "call", "jump", "trap", "syscall", "inline" };
	const struct event_slice *slice = &ev->slice;

	trace_print(shown->trace,
		    "%*s%s%" PRIu64 "-%s%" PRIu64 " %u %s%x %s %" PRIu64 "/%" PRIu64 " %u/%u",
		    (int)shown->depth[task], "", cut ? "~" : "", slice->since,
		    slice->cut ? "~" : "", ev->time, task, slice->frame & USER ? "u" : "",
		    slice->frame & ~USER, kinds[slice->kind], slice->instructions, slice->own,
		    slice->lines, slice->own_lines);
	print_times(shown, ev);
}

static void print_cpu(struct shown *shown, const struct event *ev)
{
	const struct event_slice *slice = &ev->slice;
	bool masked = slice->kind == SLICE_MASKED, before = masked && shown->masked[ev->cpu];

	if (!slice->leave) {
		if (masked)
			shown->masked[ev->cpu] = slice->cut;
		return;
	}
	trace_print(shown->trace, "%s%" PRIu64 "-%s%" PRIu64 " cpu %u ", before ? "~" : "",
		    slice->since, slice->cut ? "~" : "", ev->time, ev->cpu);
	if (masked)
		trace_print(shown->trace, "off %u %x-%x %" PRIu64, ev->tid - 1000, slice->frame,
			    slice->end_frame, slice->instructions);
	else if (slice->kind == SLICE_GAP)
		trace_print(shown->trace, "gap");
	else
		trace_print(shown->trace, "runs %u %" PRIu64, ev->tid - 1000, slice->instructions);
	print_times(shown, ev);
}

static int emitted(void *data, struct event *ev)
{
	struct shown *shown = data;
	unsigned task = (ev->tid - 1000) % 64, depth = shown->depth[task];

	if (ev->slice.kind == SLICE_SPLIT) {
		trace_print(shown->trace, "split %" PRIu64 "\n", ev->time);
		return 0;
	}
	if (ev->slice.kind == SLICE_RATE) /* see test_rates() */
		return 0;
	if (ev->slice.kind >= SLICE_RUN) {
		print_cpu(shown, ev);
		return 0;
	}
	if (!ev->slice.leave) {
		shown->open[task][depth] = ev->slice.frame;
		shown->cut[task][depth] = ev->slice.cut;
		shown->depth[task]++;
		return 0;
	}
	shown->own += ev->slice.own;
	shown->depth[task] = --depth;
	shown->wrong |= shown->open[task][depth] != ev->slice.frame || ev->time < ev->slice.since;
	print_slice(shown, task, ev, shown->cut[task][depth]);
	return 0;
}

static unsigned gate(const struct slices *slices, uint32_t frame)
{
	return (frame == slices->start) * GATE_START | (frame == slices->end) * GATE_END;
}

/*
 * In the function at 1000, g is inlined twice: at 1020-103f, where h is inlined in it at 1028-102f, and at 1060-107f,
 * where its code is in two pieces.
 */
enum { G = 0x100a, H = 0x100b, FIRST_G = 1, FIRST_H, SECOND_G };

static void inlined_at(void *data, const struct track_place *place, struct inlines_at *out)
{
	static const struct inlined_call first_g = { G, 1, FIRST_G, 0x1020 },
					 first_h = { H, 1, FIRST_H, 0x1028 },
					 second_g = { G, 1, SECOND_G, 0x1060 };
	static const uint64_t edges[] = { 0x1020, 0x1028, 0x1030, 0x1040,    0x1060,
					  0x1068, 0x1070, 0x1080, UINT64_MAX };
	static const size_t nr[] = { 0, 1, 2, 1, 0, 1, 0, 1, 0 };
	unsigned at = 0;

	(void)data;
	while (place->address >= edges[at])
		at++;
	*out = (struct inlines_at){ .all = { at < 4 ? first_g : second_g, first_h },
				    .nr = nr[at],
				    .function = place->address & ~0xfffull,
				    .until = edges[at] };
}

/* Each has 4 bytes. */
static uint64_t instructions_at(void *data, const struct track_place *place, uint64_t end)
{
	const bool *unknown = data;

	return *unknown ? 0 : (end - place->address + 3) / 4;
}

enum inlining { NO_INLINES, INLINES, INLINES_BY_BYTES };

/* slices: what is selected; the rest is set here. Returns the instructions of all slices. */
static uint64_t slices_made(struct slices slices, enum machine machine, enum inlining inlining,
			    const char *name, const char *rows, const char *want)
{
	struct trace trace;
	struct inlines inlines;
	bool unknown = inlining == INLINES_BY_BYTES;
	struct shown shown = { .trace = &trace };
	uint64_t from = slices.from, until = slices.until ? slices.until : UINT64_MAX;

	slices.announce = announced;
	slices.emit = emitted;
	slices.data = &shown;
	slices.until = until;
	trace_begin(&trace, machine);
	trace.time = 1000;
	trace.from = from;
	trace.until = until;
	trace.calls.frame = frame_of;
	trace.calls.same = same_function;
	trace.calls.slices = &slices;
	inlines_init(&inlines);
	inlines.at = inlined_at;
	inlines.instructions = instructions_at;
	inlines.data = &unknown;
	trace.calls.inlines = inlining == NO_INLINES ? NULL : &inlines;
	trace_rows(&trace, rows);
	slices_finish(&slices);
	if (want) {
		check(name, !strcmp(trace.text, want) && !shown.wrong);
		if (strcmp(trace.text, want))
			printf("have:\n%swant:\n%s", trace.text, want);
	}
	trace_end(&trace);
	slices_release(&slices);
	inlines_release(&inlines);
	return shown.own;
}

static void slices_with(struct slices slices, enum machine machine, const char *name,
			const char *rows, const char *want)
{
	slices_made(slices, machine, NO_INLINES, name, rows, want);
}

/* The slices have the same instructions as those without inlined functions. */
static void inlines_with(struct slices slices, enum inlining inlining, const char *name,
			 const char *rows, const char *want)
{
	char title[200];

	snprintf(title, sizeof(title), "%s: the same instructions", name);
	check(title, slices_made(slices, PUSHES, inlining, name, rows, want) ==
			     slices_made(slices, PUSHES, NO_INLINES, name, rows, NULL));
}

static void inlines_are(const char *name, const char *rows, const char *want)
{
	inlines_with((struct slices){ 0 }, INLINES, name, rows, want);
}

static void slices_on(enum machine machine, const char *name, uint64_t from, uint64_t until,
		      const char *rows, const char *want)
{
	slices_with((struct slices){ .from = from, .until = until }, machine, name, rows, want);
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
		   "  1015-1022 1 3000 call 7/7 1/1\n"
		   "  1023-1025 1 3000 call 2/2 1/1\n"
		   " 1010-1028 1 2000 call 18/9 2/1\n"
		   "1000-~1032 cpu 0 runs 1 32\n"
		   "1000-~1032 1 1000 begin 32/14 3/1\n");
	slices_are("slices: a tail call",
		   "begin 1000 sp=8000;"
		   "call 1010 2000 10;"
		   "jump 2010 3000 5;"
		   "jump 3010 3000 1;" /* not another function */
		   "return 3010 1014 7;"
		   "jump 1020 1024 4;",
		   " 1010-1015 1 2000 call 5/5 1/1\n"
		   " 1015-1023 1 3000 jump 8/8 1/1\n"
		   "1000-~1027 cpu 0 runs 1 27\n"
		   "1000-~1027 1 1000 begin 27/14 3/1\n");
	/* A mark of the old tables is that of another function in the new ones. */
	slices_are("slices: a tail call after the tables were emptied",
		   "begin 1000 sp=8000;"
		   "call 1010 4000 1;"
		   "return 4010 1014 1;"
		   "call 1018 2000 1;"
		   "sums;"
		   "jump 2010 3000 5;"
		   "return 3010 101c 7;"
		   "jump 1020 1024 4;",
		   " 1001-1002 1 4000 call 1/1 1/1\n"
		   " 1003-1008 1 2000 call 5/5 1/1\n"
		   " 1008-1015 1 3000 jump 7/7 1/1\n"
		   "1000-~1019 cpu 0 runs 1 19\n"
		   "1000-~1019 1 1000 begin 19/6 4/1\n");
	slices_are("slices: a longjmp past two frames",
		   "begin 1000 sp=8000;"
		   "call 1010 2000 1 -16;"
		   "call 2010 3000 2 -16;"
		   "call 3010 4000 3 -16;"
		   "jump 4010 1018 4 stack=8000;"
		   "jump 1020 1024 5;",
		   "   1006-1010 1 4000 call 4/4 1/1\n"
		   "  1003-1010 1 3000 call 7/3 2/1\n"
		   " 1001-1010 1 2000 call 9/2 3/1\n"
		   "1000-~1015 cpu 0 runs 1 15\n"
		   "1000-~1015 1 1000 begin 15/6 4/1\n");
	slices_are("slices: callers from before the trace",
		   "begin 3000 sp=8000;"
		   "jump 3010 3020 100;"
		   "return 3030 2014 5 +16;"
		   "call 2020 4000 7;"
		   "return 4010 2024 8;"
		   "return 2030 1014 9 +16;"
		   "jump 1020 1024 11;",
		   "1000-1105 1 3000 begin 105/105 1/1\n"
		   " 1112-1120 1 4000 call 8/8 1/1\n"
		   "~999-1129 1 2000 begin 129/16 3/1\n"
		   "1000-~1140 cpu 0 runs 1 140\n"
		   "~998-~1140 1 1000 begin 140/11 4/1\n");
	slices_are("slices: recursion",
		   "begin 1000 sp=8000;"
		   "call 1010 2000 1 -16;"
		   "call 2010 2000 2 -16;"
		   "return 2020 2014 3 +16;"
		   "return 2020 1014 4 +16;"
		   "jump 1020 1024 5;",
		   "  1003-1006 1 2000 call 3/3 1/1\n"
		   " 1001-1010 1 2000 call 9/6 1/1\n"
		   "1000-~1015 cpu 0 runs 1 15\n"
		   "1000-~1015 1 1000 begin 15/6 2/1\n");
}

/* In the middle of two tasks, on two cpus. */
#define WINDOWED                                  \
	"begin 1000 sp=8000;"                     \
	"call 1010 2000 10;"                      \
	"cpu 1; begin 6000 sp=30000; cpu 0;"      \
	"call 2010 5000 10 -16;"                  \
	"return 5010 3000 10 stack=20000 save=A;" \
	"call 3010 4000 10;"                      \
	"cpu 1; call 6010 7000 10; cpu 0;"        \
	"return 4010 3014 10;"                    \
	"call 3020 5000 10 -16;"                  \
	"return 5010 2014 10 stack=@A;"           \
	"cpu 1; return 7010 6014 10; cpu 0;"      \
	"return 2020 1014 10;"                    \
	"jump 1020 1024 10;"

static void test_gaps(void)
{
	slices_are("slices: part of the trace is missing",
		   "begin 1000 sp=8000;"
		   "call 1010 2000 10;"
		   "jump 2010 2014 10;"
		   "cpu 1; begin 5000 sp=30000; jump 5010 5020 10; cpu 0;"
		   "begin 2020 sp=7000;"
		   "jump 2030 2034 10;",
		   "1000-~1020 cpu 0 runs 1 20\n"
		   " 1010-~1020 1 2000 call 10/10 1/1\n"
		   "1000-~1020 1 1000 begin 20/10 2/1\n"
		   "1020-1030 cpu 0 gap\n"
		   "1030-~1040 cpu 0 runs 3 10\n"
		   "1020-~1040 cpu 1 runs 2 10\n"
		   "1030-~1040 3 2000 begin 10/10 1/1\n"
		   "1020-~1040 2 5000 begin 10/10 1/1\n");
	slices_are("slices: the trace was off",
		   "begin 1000 sp=8000;"
		   "call 1010 2000 10;"
		   "end 2010 10;"
		   "cpu 1; begin 5000 sp=30000; jump 5010 5020 10; cpu 0;"
		   "begin 3000 sp=7000;"
		   "jump 3030 3034 10;",
		   "1000-1020 cpu 0 runs 1 20\n"
		   "1020-1030 cpu 0 gap\n"
		   "1030-~1040 cpu 0 runs 3 10\n"
		   "1020-~1040 cpu 1 runs 2 10\n"
		   "1030-~1040 3 3000 begin 10/10 1/1\n"
		   "1020-~1040 2 5000 begin 10/10 1/1\n"
		   " 1010-~1040 1 2000 call 10/10 1/1\n"
		   "1000-~1040 1 1000 begin 20/10 2/1\n");
}

static void test_lines(void)
{
	slices_are("slices: lines of code",
		   "begin 1000 sp=8000;"
		   "call 1070 2000 1;"	 /* 1000, 1040 */
		   "jump 20f0 2010 1;"	 /* 2000 2040 2080 20c0 */
		   "call 2018 2000 1;"	 /* 2000 */
		   "return 2110 201c 1;" /* 2000 2040 2080 20c0 2100 */
		   "return 2110 1074 1;" /* the same */
		   "call 1078 2000 1;"	 /* 1040 */
		   "return 2010 107c 1;" /* 2000 */
		   "jump 10c0 1000 1;",	 /* 1040 1080 10c0 */
		   "  1003-1004 1 2000 call 1/1 5/5\n"
		   " 1001-1005 1 2000 call 4/3 5/5\n"
		   " 1006-1007 1 2000 call 1/1 1/1\n"
		   "1000-~1008 cpu 0 runs 1 8\n"
		   "1000-~1008 1 1000 begin 8/3 9/4\n");
	slices_are("slices: lines of a long function, after a call",
		   "begin 2000 sp=8000;"
		   "call 2010 5000 1;"
		   "return 5010 2014 1;"
		   "jump 4110 2000 1;" /* 2000 to 4100 */
		   "jump 4110 2000 1;",
		   " 1001-1002 1 5000 call 1/1 1/1\n"
		   "1000-~1004 cpu 0 runs 1 4\n"
		   "1000-~1004 1 2000 begin 4/3 134/133\n");
	slices_are("slices: two tasks touch the same lines",
		   "begin 1000 sp=8000;"
		   "call 1010 5000 1 -16;"
		   "return 5010 2000 2 stack=20000 save=A;"
		   "call 2010 5000 3 -16;"
		   "return 5010 1014 4 stack=@A;"
		   "jump 1020 1024 5;",
		   "1000-1003 cpu 0 runs 1 3\n"
		   " 1001-1010 1 5000 call 2/2 1/1\n"
		   "1003-1010 cpu 0 runs 2 7\n"
		   "1010-~1015 cpu 0 runs 1 5\n"
		   " 1006-~1015 2 5000 call 4/4 1/1\n"
		   "1003-~1015 2 2000 begin 7/3 2/1\n"
		   "1000-~1015 1 1000 begin 8/6 2/1\n");
}

static void test_windows(void)
{
	slices_on(PUSHES, "slices: a window in which nothing happens", 1002, 1008,
		  "begin 1000 sp=8000;"
		  "call 1010 2000 1;"
		  "return 2010 1014 9;",
		  "1002-~1008 cpu 0 runs 1 0\n"
		  " ~1002-~1008 1 2000 call 0/0 0/0\n"
		  "~1002-~1008 1 1000 begin 0/0 0/0\n");
	slices_on(PUSHES, "slices: no window", 0, UINT64_MAX, WINDOWED,
		  "1000-1030 cpu 0 runs 1 30\n"
		  " 1040-1060 3 4000 call 10/10 1/1\n"
		  "  1020-1080 1 5000 call 10/10 1/1\n"
		  "1030-1080 cpu 0 runs 3 40\n"
		  " 1050-1090 2 7000 call 10/10 1/1\n"
		  " 1010-1100 1 2000 call 30/20 2/1\n"
		  "1080-~1110 cpu 0 runs 1 20\n"
		  "1010-~1110 cpu 1 runs 2 20\n"
		  " 1070-~1110 3 5000 call 10/10 1/1\n"
		  "1030-~1110 3 3000 begin 40/20 3/1\n"
		  "1010-~1110 2 6000 begin 20/10 2/1\n"
		  "1000-~1110 1 1000 begin 50/20 3/1\n");
	slices_on(PUSHES, "slices: the first window", 0, 1045, WINDOWED,
		  "1000-1030 cpu 0 runs 1 30\n"
		  "1030-~1045 cpu 0 runs 3 10\n"
		  "1010-~1045 cpu 1 runs 2 0\n"
		  " 1040-~1045 3 4000 call 0/0 0/0\n"
		  "1030-~1045 3 3000 begin 10/10 1/1\n"
		  "1010-~1045 2 6000 begin 0/0 0/0\n"
		  "  1020-~1045 1 5000 call 10/10 1/1\n"
		  " 1010-~1045 1 2000 call 20/10 2/1\n"
		  "1000-~1045 1 1000 begin 30/10 3/1\n");
	slices_with((struct slices){ .length = 50 }, PUSHES, "slices: parts", WINDOWED,
		    "1000-1030 cpu 0 runs 1 30\n"
		    "1030-~1050 cpu 0 runs 3 10\n"
		    "1010-~1050 cpu 1 runs 2 0\n"
		    " 1040-~1050 3 4000 call 0/0 0/0\n"
		    "1030-~1050 3 3000 begin 10/10 1/1\n"
		    "1010-~1050 2 6000 begin 0/0 0/0\n"
		    "  1020-~1050 1 5000 call 10/10 1/1\n"
		    " 1010-~1050 1 2000 call 20/10 2/1\n"
		    "1000-~1050 1 1000 begin 30/10 3/1\n"
		    "split 1050\n"
		    " ~1050-1060 3 4000 call 10/10 1/1\n"
		    "  ~1050-1080 1 5000 call 0/0 0/0\n"
		    "1050-1080 cpu 0 runs 3 30\n"
		    " 1050-1090 2 7000 call 10/10 1/1\n"
		    "1080-~1100 cpu 0 runs 1 0\n"
		    "1050-~1100 cpu 1 runs 2 20\n"
		    " 1070-~1100 3 5000 call 10/10 1/1\n"
		    "~1050-~1100 3 3000 begin 30/10 3/1\n"
		    "~1050-~1100 2 6000 begin 20/10 2/1\n"
		    " ~1050-~1100 1 2000 call 0/0 0/0\n"
		    "~1050-~1100 1 1000 begin 0/0 0/0\n"
		    "split 1100\n"
		    " ~1100-1100 1 2000 call 10/10 1/1\n"
		    "1100-~1110 cpu 0 runs 1 20\n"
		    "1100-~1110 cpu 1 runs 2 0\n"
		    " ~1100-~1110 3 5000 call 0/0 0/0\n"
		    "~1100-~1110 3 3000 begin 0/0 0/0\n"
		    "~1100-~1110 2 6000 begin 0/0 0/0\n"
		    "~1100-~1110 1 1000 begin 20/10 2/1\n");
	slices_with((struct slices){ .gate = gate, .start = 0x2000, .end = 0x4000, .closed = true },
		    PUSHES, "slices: from a function to the return from another", WINDOWED,
		    "1010-1030 cpu 0 runs 1 20\n"
		    " 1040-1060 3 4000 call 10/10 1/1\n"
		    "1030-~1060 cpu 0 runs 3 20\n"
		    "1010-~1060 cpu 1 runs 2 10\n"
		    "1030-~1060 3 3000 begin 20/10 2/1\n"
		    " 1050-~1060 2 7000 call 0/0 0/0\n"
		    "1010-~1060 2 6000 begin 10/10 1/1\n"
		    "  1020-~1060 1 5000 call 10/10 1/1\n"
		    " 1010-~1060 1 2000 call 20/10 2/1\n"
		    "~1010-~1060 1 1000 begin 20/0 2/0\n");
	slices_with((struct slices){ .gate = gate, .end = 0x4000 }, PUSHES,
		    "slices: up to the return from a function", WINDOWED,
		    "1000-1030 cpu 0 runs 1 30\n"
		    " 1040-1060 3 4000 call 10/10 1/1\n"
		    "1030-~1060 cpu 0 runs 3 20\n"
		    "1010-~1060 cpu 1 runs 2 10\n"
		    "1030-~1060 3 3000 begin 20/10 2/1\n"
		    " 1050-~1060 2 7000 call 0/0 0/0\n"
		    "1010-~1060 2 6000 begin 10/10 1/1\n"
		    "  1020-~1060 1 5000 call 10/10 1/1\n"
		    " 1010-~1060 1 2000 call 20/10 2/1\n"
		    "1000-~1060 1 1000 begin 30/10 3/1\n");
	slices_with((struct slices){ .gate = gate, .start = 0x2000, .end = 0x2000, .closed = true },
		    PUSHES, "slices: calls of a recursive function",
		    "begin 1000 sp=8000;"
		    "call 1010 2000 10;"
		    "call 2010 2000 10;"
		    "return 2020 2014 10;"
		    "return 2020 1014 10;"
		    "call 1020 3000 10;"
		    "call 3010 2000 10;"
		    "return 2020 3014 10;"
		    "return 3020 1024 10;",
		    "  1020-1030 1 2000 call 10/10 1/1\n"
		    " 1010-1040 1 2000 call 30/20 1/1\n"
		    "1010-~1040 cpu 0 runs 1 30\n"
		    "~1010-~1040 1 1000 begin 30/0 1/0\n"
		    "  1060-1070 1 2000 call 10/10 1/1\n"
		    "1060-~1070 cpu 0 runs 1 10\n"
		    " ~1060-~1070 1 3000 call 10/0 1/0\n"
		    "~1060-~1070 1 1000 begin 10/0 1/0\n");
	slices_with((struct slices){ .axis = AXIS_INSTRUCTIONS }, PUSHES,
		    "slices: an axis of instructions", WINDOWED,
		    "0-30 cpu 0 runs 1 30 at 1000-1030\n"
		    " 40-50 3 4000 call 10/10 1/1 at 1040-1060\n"
		    "  20-30 1 5000 call 10/10 1/1 at 1020-1080\n"
		    "30-70 cpu 0 runs 3 40 at 1030-1080\n"
		    " 20-30 2 7000 call 10/10 1/1 at 1050-1090\n"
		    " 10-40 1 2000 call 30/20 2/1 at 1010-1100\n"
		    "70-~90 cpu 0 runs 1 20 at 1080-1110\n"
		    "0-~20 cpu 1 runs 2 20 at 1010-1110\n"
		    " 60-~70 3 5000 call 10/10 1/1 at 1070-1110\n"
		    "30-~70 3 3000 begin 40/20 3/1 at 1030-1110\n"
		    "10-~30 2 6000 begin 20/10 2/1 at 1010-1110\n"
		    "0-~50 1 1000 begin 50/20 3/1 at 1000-1110\n");
	slices_on(PUSHES, "slices: the last window", 1045, UINT64_MAX, WINDOWED,
		  " ~1045-1060 3 4000 call 10/10 1/1\n"
		  "  ~1045-1080 1 5000 call 0/0 0/0\n"
		  "1045-1080 cpu 0 runs 3 30\n"
		  " 1050-1090 2 7000 call 10/10 1/1\n"
		  " ~1045-1100 1 2000 call 10/10 1/1\n"
		  "1080-~1110 cpu 0 runs 1 20\n"
		  "1045-~1110 cpu 1 runs 2 20\n"
		  " 1070-~1110 3 5000 call 10/10 1/1\n"
		  "~1045-~1110 3 3000 begin 30/10 3/1\n"
		  "~1045-~1110 2 6000 begin 20/10 2/1\n"
		  "~1045-~1110 1 1000 begin 20/10 2/1\n");
}

/* The third task uses the stack of the first one, which must have ended. */
#define STACK_REUSED                            \
	"begin 1000 sp=8000;"                   \
	"call 1010 5000 1 -16;"                 \
	"return 5010 2000 2 stack=20000;"       \
	"call 2010 5000 3 -16;"                 \
	"return 5010 3000 4 stack=8010 save=B;" \
	"call 3010 5000 5 -32;"                 \
	"return 5010 2014 6 stack=@B;"          \
	"jump 2020 2024 7;"

static uint32_t kind_of(void *data, uint32_t pid, uint32_t frame)
{
	(void)data, (void)pid;
	return frame;
}

/* The third task begins as the second one, which goes on, and the last one as the first one, which has ended. */
#define SAME_KIND                               \
	"begin 1000 sp=8000;"                   \
	"call 1010 5000 1 -16;"                 \
	"return 5010 2000 2 stack=20000;"       \
	"call 2010 5000 3 -16;"                 \
	"return 5010 2000 4 stack=8010 save=B;" \
	"call 2010 5000 5 -32;"                 \
	"return 5010 1000 6 stack=30000;"       \
	"jump 1020 1024 7;"

static void test_ids(void)
{
	slices_with((struct slices){ .kind = kind_of }, PUSHES,
		    "slices: a task has the id of one that has ended", SAME_KIND,
		    "1000-1003 cpu 0 runs 1 3\n"
		    "1003-1010 cpu 0 runs 2 7\n"
		    " 1001-1003 1 5000 call 2/2 1/1\n"
		    "1000-1003 1 1000 begin 3/1 2/1\n"
		    "1010-1021 cpu 0 runs 3 11\n"
		    "1021-~1028 cpu 0 runs 1 7\n"
		    "1021-~1028 1 1000 begin 7/7 1/1\n"
		    " 1015-~1028 3 5000 call 6/6 1/1\n"
		    "1010-~1028 3 2000 begin 11/5 2/1\n"
		    " 1006-~1028 2 5000 call 4/4 1/1\n"
		    "1003-~1028 2 2000 begin 7/3 2/1\n");
	slices_with((struct slices){ .kind = kind_of, .from = 1012 }, PUSHES,
		    "slices: but not of one that was not shown", SAME_KIND,
		    "1012-1021 cpu 0 runs 3 11\n"
		    "1021-~1028 cpu 0 runs 4 7\n"
		    "1021-~1028 4 1000 begin 7/7 1/1\n"
		    " 1015-~1028 3 5000 call 6/6 1/1\n"
		    "~1012-~1028 3 2000 begin 11/5 2/1\n"
		    " ~1012-~1028 2 5000 call 0/0 0/0\n"
		    "~1012-~1028 2 2000 begin 0/0 0/0\n");
	slices_with((struct slices){ 0 }, PUSHES, "slices: unless each has its own", SAME_KIND,
		    "1000-1003 cpu 0 runs 1 3\n"
		    "1003-1010 cpu 0 runs 2 7\n"
		    " 1001-1003 1 5000 call 2/2 1/1\n"
		    "1000-1003 1 1000 begin 3/1 2/1\n"
		    "1010-1021 cpu 0 runs 3 11\n"
		    "1021-~1028 cpu 0 runs 4 7\n"
		    "1021-~1028 4 1000 begin 7/7 1/1\n"
		    " 1015-~1028 3 5000 call 6/6 1/1\n"
		    "1010-~1028 3 2000 begin 11/5 2/1\n"
		    " 1006-~1028 2 5000 call 4/4 1/1\n"
		    "1003-~1028 2 2000 begin 7/3 2/1\n");
}

/* A task that waited may be shown from a time on at which another one still ran. */
static void test_tids(void)
{
	struct tids tids = { 0 };
	struct tids_ended got;

	tids_put(&tids, 1, 7, (struct tids_ended){ 1001, 50 });
	tids_put(&tids, 1, 7, (struct tids_ended){ 1002, 90 });
	check("tids: of another kind", !tids_take(&tids, 1, 8, 100, &got));
	check("tids: of another process", !tids_take(&tids, 2, 7, 100, &got));
	check("tids: that overlap", !tids_take(&tids, 1, 7, 49, &got));
	check("tids: not the one that overlaps",
	      tids_take(&tids, 1, 7, 50, &got) && got.tid == 1001 && got.last == 50);
	check("tids: the other one", tids_take(&tids, 1, 7, 100, &got) && got.tid == 1002);
	check("tids: each once", !tids_take(&tids, 1, 7, 100, &got));
	tids_release(&tids);
}

static void test_ends(void)
{
	slices_are("slices: a task whose stack another one uses", STACK_REUSED,
		   "1000-1003 cpu 0 runs 1 3\n"
		   "1003-1010 cpu 0 runs 2 7\n"
		   " 1001-1003 1 5000 call 2/2 1/1\n"
		   "1000-1003 1 1000 begin 3/1 2/1\n"
		   " 1006-1021 2 5000 call 4/4 1/1\n"
		   "1010-1021 cpu 0 runs 3 11\n"
		   "1021-~1028 cpu 0 runs 2 7\n"
		   " 1015-~1028 3 5000 call 6/6 1/1\n"
		   "1010-~1028 3 3000 begin 11/5 2/1\n"
		   "1003-~1028 2 2000 begin 14/10 2/1\n");
	slices_on(PUSHES, "slices: a task that ended before the window", 1004, UINT64_MAX,
		  STACK_REUSED,
		  "1004-1010 cpu 0 runs 2 7\n"
		  " 1006-1021 2 5000 call 4/4 1/1\n"
		  "1010-1021 cpu 0 runs 3 11\n"
		  "1021-~1028 cpu 0 runs 2 7\n"
		  " 1015-~1028 3 5000 call 6/6 1/1\n"
		  "1010-~1028 3 3000 begin 11/5 2/1\n"
		  "~1004-~1028 2 2000 begin 14/10 2/1\n");
	slices_on(PUSHES, "slices: callers from before the window", 1000, UINT64_MAX,
		  "begin 1000 sp=8000;"
		  "return 1010 2014 5;"
		  "jump 2020 2024 7;",
		  "1000-1005 1 1000 begin 5/5 1/1\n"
		  "1000-~1012 cpu 0 runs 1 12\n"
		  "~1005-~1012 1 2000 begin 7/7 1/1\n");
	slices_with((struct slices){ .axis = AXIS_INSTRUCTIONS }, PUSHES,
		    "slices: callers from before the axis",
		    "begin 1000 sp=8000;"
		    "return 1010 2014 5;"
		    "jump 2020 2024 7;",
		    "0-5 1 1000 begin 5/5 1/1 at 1000-1005\n"
		    "0-~12 cpu 0 runs 1 12 at 1000-1012\n"
		    "~5-~12 1 2000 begin 7/7 1/1 at 1005-1012\n");
}

static void test_symbols(void)
{
	/* There are no symbols from f000 to ffff. */
	slices_are("slices: jumps in code without symbols",
		   "begin 1000 sp=8000;"
		   "call 1010 f100 10;"
		   "jump f110 f200 10;"
		   "call f210 f300 10;"
		   "jump f310 f100 10;"
		   "return f110 f214 10;"
		   "jump f220 2000 10;"
		   "jump 2010 f400 10;"
		   "jump f410 f100 10;"
		   "return f110 1014 10;"
		   "jump 1020 1024 10;",
		   "  1030-1050 1 f300 call 20/20 2/2\n"
		   " 1010-1060 1 f100 call 50/30 3/2\n"
		   " 1060-1070 1 2000 jump 10/10 1/1\n"
		   " 1070-1090 1 f400 jump 20/20 2/2\n"
		   "1000-~1100 cpu 0 runs 1 100\n"
		   "1000-~1100 1 1000 begin 100/20 6/1\n");
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
		   "   1009-1014 1 a000 trap 5/5 1/1\n"
		   "  1005-1020 1 9000 call 15/10 2/1\n"
		   " 1002-1027 1 8000 syscall 25/10 3/1\n"
		   "1000-~1035 cpu 0 runs 1 35\n"
		   "1000-~1035 1 u1000 begin 35/10 4/1\n");
	slices_are("slices: two tasks",
		   "begin 1000 sp=8000;"
		   "call 1010 5000 1 -16;"
		   "return 5010 2000 2 stack=20000 save=A;"
		   "call 2010 5000 3 -16;"
		   "return 5010 1014 4 stack=@A;"
		   "jump 1020 1024 5;",
		   "1000-1003 cpu 0 runs 1 3\n"
		   " 1001-1010 1 5000 call 2/2 1/1\n"
		   "1003-1010 cpu 0 runs 2 7\n"
		   "1010-~1015 cpu 0 runs 1 5\n"
		   " 1006-~1015 2 5000 call 4/4 1/1\n"
		   "1003-~1015 2 2000 begin 7/3 2/1\n"
		   "1000-~1015 1 1000 begin 8/6 2/1\n");
}

/* Through all of the function. */
#define ALL_INLINES           \
	"begin 1000 sp=8000;" \
	"jump 1080 1000 33;"

static void test_inlines(void)
{
	inlines_are("inlines: a straight run", ALL_INLINES,
		    "  1010-1012 1 100b inline 2/2 1/1\n"
		    " 1008-1016 1 100a inline 8/6 1/1\n"
		    " 1024-1026 1 100a inline 2/2 1/1\n"
		    " 1028-1032 1 100a inline 4/4 1/1\n"
		    "1000-~1033 cpu 0 runs 1 33\n"
		    "1000-~1033 1 1000 begin 33/19 3/3\n");
	inlines_with((struct slices){ .axis = AXIS_INSTRUCTIONS }, INLINES,
		     "inlines: on the axis of instructions", ALL_INLINES,
		     "  10-12 1 100b inline 2/2 1/1 at 1010-1012\n"
		     " 8-16 1 100a inline 8/6 1/1 at 1008-1016\n"
		     " 24-26 1 100a inline 2/2 1/1 at 1024-1026\n"
		     " 28-32 1 100a inline 4/4 1/1 at 1028-1032\n"
		     "0-~33 cpu 0 runs 1 33 at 1000-1033\n"
		     "0-~33 1 1000 begin 33/19 3/3 at 1000-1033\n");
	/* The last of the run's 129 bytes that are known is the first one of its last instruction. */
	inlines_with((struct slices){ 0 }, INLINES_BY_BYTES,
		     "inlines: lengths of instructions are unknown",
		     "begin 1000 sp=8000;"
		     "jump 1080 1000 20;",
		     "  1006-1007 1 100b inline 1/1 1/1\n"
		     " 1004-1009 1 100a inline 5/4 1/1\n"
		     " 1014-1016 1 100a inline 2/2 1/1\n"
		     " 1017-1019 1 100a inline 2/2 1/1\n"
		     "1000-~1020 cpu 0 runs 1 20\n"
		     "1000-~1020 1 1000 begin 20/11 3/3\n");
	inlines_are("inlines: the trace ends in the run",
		    "begin 1000 sp=8000;"
		    "end 1080 10;",
		    "1000-1010 cpu 0 runs 1 10\n"
		    " 1008-~1010 1 100a inline 2/2 1/1\n"
		    "1000-~1010 1 1000 begin 10/8 1/1\n");
	inlines_are("inlines: a call",
		    "begin 1000 sp=8000;"
		    "call 102c 2000 12 -16;"  /* from h */
		    "return 2010 1030 5 +16;" /* h is over */
		    "jump 1038 1060 3;"	      /* to the other g */
		    "call 1064 2000 2;"
		    "return 2010 1068 5;" /* which is over, too */
		    "call 1074 2000 4;"
		    "return 2010 1078 5;",
		    "   1012-1017 1 2000 call 5/5 1/1\n"
		    "  1010-1017 1 100b inline 7/2 2/1\n"
		    " 1008-1020 1 100a inline 12/5 2/1\n"
		    "  1022-1027 1 2000 call 5/5 1/1\n"
		    " 1020-1027 1 100a inline 7/2 2/1\n"
		    "  1031-1036 1 2000 call 5/5 1/1\n"
		    "1000-~1036 cpu 0 runs 1 36\n"
		    " 1029-~1036 1 100a inline 7/2 2/1\n"
		    "1000-~1036 1 1000 begin 36/10 3/2\n");
	inlines_are("inlines: loops inside and around one",
		    "begin 1000 sp=8000;"
		    "jump 1024 1020 10;"
		    "jump 1024 1020 2;"
		    "jump 1044 1020 10;"
		    "jump 1024 1044 2;"
		    "jump 1044 1048 1;",
		    "  1014-1016 1 100b inline 2/2 1/1\n"
		    " 1008-1020 1 100a inline 12/10 1/1\n"
		    " 1022-1024 1 100a inline 2/2 1/1\n"
		    "1000-~1025 cpu 0 runs 1 25\n"
		    "1000-~1025 1 1000 begin 25/11 2/2\n");
	inlines_are("inlines: an interrupt, before the first instruction and after it",
		    "begin 1000 sp=8000;"
		    "enter 1020 a000 8 save=A;"
		    "leave a020 1020 5 sp=@A;"
		    "enter 1024 a000 1 save=A;"
		    "leave a020 1024 5 sp=@A;"
		    "jump 1024 1044 1;",
		    " 1008-1013 1 a000 trap 5/5 1/1\n"
		    "  1014-1019 1 a000 trap 5/5 1/1\n"
		    " 1013-1020 1 100a inline 7/2 2/1\n"
		    "1000-~1020 cpu 0 runs 1 20\n"
		    "1000-~1020 1 1000 begin 20/8 2/1\n");
	inlines_are("inlines: two tasks, and one that is left in an inlined function",
		    "begin 1000 sp=8000;"
		    "call 1024 5000 10 -16;"
		    "return 5010 2000 2 stack=20000 save=A;"
		    "call 2010 5000 3 -16;"
		    "return 5010 1028 4 stack=@A;"
		    "jump 1028 1044 5;",
		    "1000-1012 cpu 0 runs 1 12\n"
		    "  1010-1019 1 5000 call 2/2 1/1\n"
		    "1012-1019 cpu 0 runs 2 7\n"
		    "  1019-1024 1 100b inline 5/5 1/1\n"
		    " 1008-1024 1 100a inline 9/2 2/1\n"
		    "1019-~1024 cpu 0 runs 1 5\n"
		    " 1015-~1024 2 5000 call 4/4 1/1\n"
		    "1012-~1024 2 2000 begin 7/3 2/1\n"
		    "1000-~1024 1 1000 begin 17/8 2/1\n");
	inlines_are("inlines: a tail call from one",
		    "begin 3000 sp=8000;"
		    "call 3010 1020 5;"
		    "jump 1020 2000 1;"
		    "return 2010 3014 5;",
		    "  1005-1006 1 100a inline 1/1 1/1\n"
		    " 1005-1006 1 1000 call 1/0 1/0\n"
		    " 1006-1011 1 2000 jump 5/5 1/1\n"
		    "1000-~1011 cpu 0 runs 1 11\n"
		    "1000-~1011 1 3000 begin 11/5 3/1\n");
	inlines_are("inlines: no straight run",
		    "begin 1024 sp=8000;"
		    "jump 1010 1060 5;"
		    "jump 20000 1000 5;",
		    " 1000-1005 1 100a inline 5/5 0/0\n"
		    " 1005-1010 1 100a inline 5/5 0/0\n"
		    "1000-~1010 cpu 0 runs 1 10\n"
		    "1000-~1010 1 1000 begin 10/0 0/0\n");
	/* A run belongs to the part in which it ends. */
	inlines_with((struct slices){ .until = 1011 }, INLINES, "inlines: the first window",
		     "begin 1000 sp=8000;"
		     "jump 1004 1008 2;"
		     "jump 1080 1000 31;",
		     "1000-~1011 cpu 0 runs 1 2\n"
		     "1000-~1011 1 1000 begin 2/2 1/1\n");
	inlines_with((struct slices){ .from = 1011 }, INLINES, "inlines: the last window",
		     "begin 1000 sp=8000;"
		     "jump 1004 1008 2;"
		     "jump 1080 1000 31;",
		     "  1011-1012 1 100b inline 2/2 1/1\n"
		     " 1011-1016 1 100a inline 8/6 1/1\n"
		     " 1024-1026 1 100a inline 2/2 1/1\n"
		     " 1028-1032 1 100a inline 4/4 1/1\n"
		     "1011-~1033 cpu 0 runs 1 31\n"
		     "~1011-~1033 1 1000 begin 31/17 3/3\n");
}

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
	slices_charge(slices, 3, instructions, 0, 0);
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
	test_inlines();
	test_calls();
	test_symbols();
	test_masks();
	test_kernels();
	test_gaps();
	test_lines();
	test_windows();
	test_ids();
	test_tids();
	test_ends();
	test_rates();
	return test_result();
}

// SPDX-License-Identifier: GPL-2.0-or-later
/* pass/slices, with calls_slices: the slices of calls. */
#include "slices_text.h"

static unsigned gate(const struct slices *slices, uint32_t frame)
{
	return (frame == slices->start) * GATE_START | (frame == slices->end) * GATE_END;
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
int main(void)
{
	test_calls();
	test_symbols();
	test_kernels();
	test_gaps();
	test_lines();
	test_windows();
	test_ids();
	test_tids();
	test_ends();
	return test_result();
}

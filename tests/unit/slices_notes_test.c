// SPDX-License-Identifier: GPL-2.0-or-later
/* pass/slices, with calls_slices: notes on the axes of threads. */
#include "slices_text.h"

#define NOTES                          \
	"begin 1000;"                  \
	"note a 3 at=100c;"            \
	"call 1010 2000 10 cycles=20;" \
	"note b 0 at=2000;"            \
	"note c 4 at=2010 cycles=7;"   \
	"return 2020 1014 5 cycles=9;" \
	"note d 0;"                    \
	"jump 1020 1024 4 cycles=1;"

static void test_places(void)
{
	slices_on(THREADS, "notes: in order, and the slices are as without", 0, UINT64_MAX, NOTES,
		  "1003 1 note a 100c\n"
		  "1010 1 note b 2000\n"
		  "1014 1 note c 2010\n"
		  " 1010-1015 1 2000 call 5/5 1/1 9/9\n"
		  "1015 1 note d\n"
		  "1000-~1019 cpu 0 runs 1 19\n"
		  "1000-~1019 1 1000 begin 19/14 2/1 30/21\n");
	slices_with((struct slices){ .axis = AXIS_INSTRUCTIONS }, THREADS, "notes: by instructions",
		    NOTES,
		    "3 1 note a 100c at 1003\n"
		    "10 1 note b 2000 at 1010\n"
		    "14 1 note c 2010 at 1014\n"
		    " 10-15 1 2000 call 5/5 1/1 9/9 at 1010-1015\n"
		    "15 1 note d at 1015\n"
		    "0-~19 cpu 0 runs 1 19 at 1000-1019\n"
		    "0-~19 1 1000 begin 19/14 2/1 30/21 at 1000-1019\n");
	slices_with((struct slices){ .axis = AXIS_CYCLES }, THREADS, "notes: by cycles", NOTES,
		    "0 1 note a 100c at 1003\n"
		    "20 1 note b 2000 at 1010\n"
		    "27 1 note c 2010 at 1014\n"
		    " 20-29 1 2000 call 5/5 1/1 9/9 at 1010-1015\n"
		    "29 1 note d at 1015\n"
		    "0-~30 cpu 0 runs 1 19 at 1000-1019\n"
		    "0-~30 1 1000 begin 19/14 2/1 30/21 at 1000-1019\n");
}

static void test_threads(void)
{
	slices_on(THREADS, "notes: each on the axis of its thread", 0, UINT64_MAX,
		  "begin 1000;"
		  "cpu 1;"
		  "thread 2;"
		  "begin 3000;"
		  "note a 0;"
		  "jump 3010 3014 5;"
		  "cpu 0;"
		  "thread 1;"
		  "note b 2;"
		  "jump 1010 1014 7;",
		  "1000 2 note a\n"
		  "1007 1 note b\n"
		  "1000-~1012 cpu 0 runs 1 7\n"
		  "1000-~1012 cpu 1 runs 2 5\n"
		  "1000-~1012 2 3000 begin 5/5 1/1\n"
		  "1000-~1012 1 1000 begin 7/7 1/1\n");
	slices_on(THREADS, "notes: of a thread that is not traced", 0, UINT64_MAX,
		  "note a 0;"
		  "thread 2;"
		  "begin 1000;"
		  "jump 1010 1014 5;"
		  "thread 3;"
		  "note b 1;"
		  "thread 2;"
		  "jump 1020 1024 5;",
		  "1000 1 note a\n"
		  "1006 3 note b\n"
		  "1000-~1010 cpu 0 runs 2 10\n"
		  "1000-~1010 2 1000 begin 10/10 1/1\n");
	slices_with((struct slices){ .axis = AXIS_INSTRUCTIONS }, THREADS,
		    "notes: of a thread that is not traced yet, by instructions",
		    "begin 1000;"
		    "jump 1010 1014 5;"
		    "thread 2;"
		    "note a 0;"
		    "begin 2000;"
		    "jump 2010 2014 4;",
		    "5 2 note a at 1005\n"
		    "0-5 cpu 0 runs 1 5 at 1000-1005\n"
		    "5-~9 cpu 0 runs 2 4 at 1005-1009\n"
		    "5-~9 2 2000 begin 4/4 1/1 at 1005-1009\n"
		    "0-~5 1 1000 begin 5/5 1/1 at 1000-1009\n");
	slices_on(THREADS, "notes: of the idle thread of a cpu", 0, UINT64_MAX,
		  "cpu 2;"
		  "thread -;"
		  "note a 0;",
		  "1000 999999002 note a\n");
}

static void test_selection(void)
{
	slices_on(THREADS, "notes: in a window", 1004, 1015, NOTES,
		  "1010 1 note b 2000\n"
		  "1014 1 note c 2010\n"
		  "1004-~1015 cpu 0 runs 1 10\n"
		  " 1010-~1015 1 2000 call 0/0 0/0 0/0\n"
		  "~1004-~1015 1 1000 begin 10/10 1/1 20/20\n");
	slices_on(THREADS, "notes: of what is not selected", 0, UINT64_MAX,
		  "begin 1000;"
		  "note a 3 outside;"
		  "jump 1010 1014 7;",
		  "1000-~1007 cpu 0 runs 1 7\n"
		  "1000-~1007 1 1000 begin 7/7 1/1\n");
	slices_with((struct slices){ .length = 10 }, THREADS, "notes: in parts of a timeline",
		    "begin 1000;"
		    "note a 9;"
		    "note b 11;"
		    "jump 1010 1014 15;",
		    "1009 1 note a\n"
		    "1000-~1010 cpu 0 runs 1 0\n"
		    "1000-~1010 1 1000 begin 0/0 0/0\n"
		    "split 1010\n"
		    "1011 1 note b\n"
		    "1010-~1015 cpu 0 runs 1 15\n"
		    "~1010-~1015 1 1000 begin 15/15 1/1\n");
}

static void test_gaps(void)
{
	slices_on(THREADS, "notes: in a gap", 0, UINT64_MAX,
		  "begin 1000;"
		  "jump 1010 1014 10;"
		  "note a 0;"
		  "thread 2;"
		  "begin 3000;"
		  "jump 3010 3014 20;"
		  "thread 1;"
		  "begin 1100;"
		  "note b 1;"
		  "jump 1110 1114 5;",
		  "1010 1 note a\n"
		  "1000-1010 cpu 0 runs 1 10\n"
		  "1000-~1010 1 1000 begin 10/10 1/1\n"
		  "1010-1030 1 gap\n"
		  "1010-1030 cpu 0 runs 2 20\n"
		  "1031 1 note b\n"
		  "1030-~1035 cpu 0 runs 1 5\n"
		  "1030-~1035 1 1000 begin 5/5 1/1\n"
		  "1010-~1035 2 3000 begin 20/20 1/1\n");
	slices_on(THREADS, "notes: while code is not traced", 0, UINT64_MAX,
		  "begin 1000;"
		  "syscall 1010 0 10;"
		  "note a 0;"
		  "leave 0 1014 0;"
		  "jump 1020 1024 3;",
		  "1010 1 note a\n"
		  " 1010-1010 1 0 trap 0/0 0/0\n"
		  "1000-~1013 cpu 0 runs 1 13\n"
		  "1000-~1013 1 1000 begin 13/13 1/1\n");
}

/* A thread that ended, and whose strand another one has. */
static void test_ended(void)
{
	slices_on(THREADS, "notes: of a thread that has ended", 0, UINT64_MAX,
		  "begin 1000;"
		  "end 1010 7 over;"
		  "thread 2;"
		  "begin 2000;"
		  "thread 1;"
		  "note a 0;"
		  "thread 2;"
		  "jump 2010 2014 3;",
		  "1000-1007 cpu 0 runs 1 7\n"
		  "1000-1007 1 1000 begin 7/7 1/1\n"
		  "1007 1 note a\n"
		  "1007-~1010 cpu 0 runs 2 3\n"
		  "1007-~1010 2 2000 begin 3/3 1/1\n");
}

int main(void)
{
	test_places();
	test_threads();
	test_selection();
	test_gaps();
	test_ended();
	return test_result();
}

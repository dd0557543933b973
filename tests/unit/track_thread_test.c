// SPDX-License-Identifier: GPL-2.0-or-later
/* Threads that the data names: their stacks without stack pointers (pass/track_thread), and their slices. */
#include "slices_text.h"

static void stacks_are(const char *name, const char *rows, const char *want)
{
	expect_on(THREADS, name, rows, want);
}

static void threads_are(const char *name, const char *rows, const char *want)
{
	slices_on(THREADS, name, 0, UINT64_MAX, rows, want);
}

static void test_calls(void)
{
	stacks_are("two threads on one cpu",
		   "begin u1000;call u1010 u2000 10;"
		   "thread 2;begin u3000;call u3010 u4000 20;"
		   "thread 1;return u2010 u1014 30;"
		   "thread 2;return u4010 u3014 40;jump u3020 u3030 50;"
		   "thread 1;jump u1020 u1030 60;",
		   "u1000 : 70\n"
		   "u2000 u1014 : 30\n"
		   "u3000 : 70\n"
		   "u4000 u3014 : 40\n"
		   "tasks 2\n");
	stacks_are("a thread on two cpus",
		   "begin u1000;call u1010 u2000 10;cpu 1;"
		   "return u2010 u1014 30;jump u1020 u1030 60;",
		   "u1000 : 70\n"
		   "u2000 u1014 : 30\n");
	stacks_are("the cpus' idle threads share a tid",
		   "thread -;begin 1000;call 1010 2000 10;cpu 1;begin 1000;call 1010 3000 20;"
		   "cpu 0;return 2010 1014 30;cpu 1;return 3010 1014 40;jump 1020 1030 50;",
		   "1000 : 80\n"
		   "2000 1014 : 30\n"
		   "3000 1014 : 40\n"
		   "tasks 2\n");
	stacks_are(
		"a thread ends, and another one begins",
		"begin u1000;call u1010 u2000 10;end u2010 5 over;"
		"thread 2;begin u3000;call u3010 u4000 20;jump u4010 u4020 1;"
		"thread 1;begin u5000;call u5010 u6000 20;return u6010 u5014 1;jump u5020 u5030 1;",
		"u1000 : 10\n"
		"u2000 u1014 : 5\n"
		"u3000 : 20\n"
		"u4000 u3014 : 1\n"
		"u5000 : 21\n"
		"u6000 u5014 : 1\n"
		"tasks 3\n");
	stacks_are("deep recursion",
		   "begin u1000;"
		   "call u1010 u1000 1;call u1010 u1000 1;call u1010 u1000 1;"
		   "return u1020 u1014 1;return u1020 u1014 1;return u1020 u1014 1;"
		   "jump u1030 u1040 1;",
		   "u1000 : 2\n"
		   "u1000 u1014 : 2\n"
		   "u1000 u1014 u1014 : 2\n"
		   "u1000 u1014 u1014 u1014 : 1\n");
	stacks_are("returns to callers from before the trace",
		   "begin u3000;call u3010 u4000 1;return u4010 u3014 1;return u3020 u2014 1;"
		   "return u2020 u1014 1;jump u1020 u1024 1;",
		   "u3000 : 2\n"
		   "u4000 u3014 : 1\n"
		   "u2000 : 1\n"
		   "u1000 : 1\n"
		   "beyond 2 rooted 3\n");
	stacks_are("many returns without calls",
		   "begin u3000;call u3010 u4000 1;return u4010 u2014 1;call u2010 u4000 1;"
		   "return u4010 u5014 1;call u5014 u6000 1;jump u6010 u6020 1;",
		   "u3000 : 1\n"
		   "u4000 u3014 : 1\n"
		   "u2000 : 1\n"
		   "u4000 u2014 : 1\n"
		   "u5000 : 1\n"
		   "u6000 u5018 : 1\n"
		   "beyond 2 rooted 2\n");
}

static void test_jumps(void)
{
	stacks_are("longjmp",
		   "begin u1000;call u1010 u9000 1;return u9010 u1014 1;"
		   "call u1020 u2000 1;call u2010 u3000 1;call u3010 u8000 1;"
		   "jump u8010 u1014 1;jump u1018 u101c 1;",
		   "u1000 : 3\n"
		   "u9000 u1014 : 1\n"
		   "u2000 u1024 : 1\n"
		   "u3000 u2014 u1024 : 1\n"
		   "u8000 u3014 u2014 u1024 : 1\n");
	stacks_are(
		"longjmp to the innermost of recursive calls",
		"begin u1000;call u1010 u2000 1;call u2010 u2000 1;call u2010 u3000 1;"
		"jump u3010 u2020 1;return u2030 u2014 1;return u2030 u1014 1;jump u1020 u1030 1;",
		"u1000 : 2\n"
		"u2000 u1014 : 2\n"
		"u2000 u2014 u1014 : 2\n"
		"u3000 u2014 u2014 u1014 : 1\n");
	stacks_are("longjmp out of a signal handler",
		   "begin u1000;call u1010 u2000 1;enter u2010 0 1;leave 0 u5000 0;"
		   "call u5010 u8000 1;jump u8010 u1020 1;jump u1024 u1028 1;",
		   "u1000 : 2\n"
		   "u2000 u1014 : 1\n"
		   "u5000 u2011 u1014 : 1\n"
		   "u8000 u5014 u2011 u1014 : 1\n"
		   "traps 1\n");
	stacks_are("a tail call of a function that is also a caller",
		   "begin u1000;call u1010 u2000 1;call u2010 u3000 1;jump u3010 u2000 1;"
		   "return u2020 u2014 1;return u2020 u1014 1;jump u1020 u1030 1;",
		   "u1000 : 2\n"
		   "u2000 u1014 : 2\n"
		   "u3000 u2014 u1014 : 1\n"
		   "u2000 u2014 u1014 : 1\n");
	stacks_are("a function with a part elsewhere, which is also a caller",
		   "begin u1000;call u1010 u2000 1;call u2010 u2000 1;jump u2020 u7010 1;"
		   "call u7020 u3000 1;return u3010 u7024 1;jump u7030 u2030 1;"
		   "return u2040 u2014 1;return u2040 u1014 1;jump u1020 u1030 1;",
		   "u1000 : 2\n"
		   "u2000 u1014 : 2\n"
		   "u2000 u2014 u1014 : 2\n"
		   "u7000 u2014 u1014 : 2\n"
		   "u3000 u7024 u2014 u1014 : 1\n");
	stacks_are("an exception of C++ ends with a return to a caller",
		   "begin u1000;call u1010 u2000 1;call u2010 u3000 1;call u3010 u8000 1;"
		   "call u8010 u9000 1;return u9010 u8014 1;return u8020 u2030 1;"
		   "return u2040 u1014 1;jump u1020 u1030 1;",
		   "u1000 : 2\n"
		   "u2000 u1014 : 2\n"
		   "u3000 u2014 u1014 : 1\n"
		   "u8000 u3014 u2014 u1014 : 2\n"
		   "u9000 u8014 u3014 u2014 u1014 : 1\n");
	stacks_are("a return that is a jump",
		   "begin u1000;call u1010 u2000 1;return u2010 u3000 1;return u3010 u1014 1;"
		   "jump u1020 u1030 1;",
		   "u1000 : 2\n"
		   "u2000 u1014 : 1\n"
		   "u3000 u1014 : 1\n"
		   "jumps 1\n");
	stacks_are("a retpoline",
		   "begin 1000;call 1010 2000 1;call 2010 2018 1;return 201c 3000 2;"
		   "return 3010 1014 1;jump 1020 1030 1;",
		   "1000 : 2\n"
		   "2000 1014 : 1\n"
		   "2000 2014 1014 : 2\n"
		   "3000 1014 : 1\n"
		   "jumps 1\n");
}

static void test_kernel(void)
{
	threads_are("system calls and interrupts of a trace without the kernel",
		    "cpu -;begin u1000;call u1010 u2000 10;syscall u2010 0 1;leave 0 u2014 0;"
		    "enter u2020 0 5;leave 0 u2020 0;return u2030 u1014 7;jump u1020 u1030 9;",
		    "  1011-1011 1 0 syscall 0/0 0/0\n"
		    "  1016-1016 1 0 trap 0/0 0/0\n"
		    " 1010-1023 1 u2000 call 13/13 1/1\n"
		    "1000-~1032 1 u1000 begin 32/19 2/1\n");
	threads_are(
		"a signal handler, and a system call that is made again",
		"cpu -;begin u1000;call u1010 u2000 10;syscall u2010 0 1;leave 0 u5000 0;"
		"call u5010 u6000 3;return u6010 u5014 1;return u5020 u7000 2;syscall u7010 0 1;"
		"leave 0 u2010 0;syscall u2010 0 2;leave 0 u2014 0;return u2030 u1014 7;"
		"jump u1020 u1030 9;",
		"  1011-1011 1 0 syscall 0/0 0/0\n"
		"   1014-1015 1 u6000 call 1/1 1/1\n"
		"  1011-1017 1 u5000 trap 6/5 2/1\n"
		"   1018-1018 1 0 syscall 0/0 0/0\n"
		"  1017-1018 1 u7000 jump 1/1 1/1\n"
		"  1020-1020 1 0 syscall 0/0 0/0\n"
		" 1010-1027 1 u2000 call 17/10 4/1\n"
		"1000-~1036 1 u1000 begin 36/19 5/1\n");
	threads_are("a signal handler of an instruction whose size is unknown",
		    "cpu -;begin u1000;syscall u1010 0 1 next=0;leave 0 u5000 0;"
		    "return u5020 u7000 2;syscall u7010 0 1;leave 0 u1011 0;jump u1020 u1030 9;",
		    " 1001-1001 1 0 syscall 0/0 0/0\n"
		    " 1001-1003 1 u5000 trap 2/2 1/1\n"
		    "  1004-1004 1 0 syscall 0/0 0/0\n"
		    " 1003-1004 1 u7000 jump 1/1 1/1\n"
		    "1000-~1013 1 u1000 begin 13/10 3/1\n");
	threads_are("an interrupted signal handler",
		    "cpu -;begin u1000;enter u1010 0 1;leave 0 u5000 0;enter u5010 0 2;"
		    "leave 0 u5010 0;return u5020 u7000 2;syscall u7010 0 1;leave 0 u1010 0;"
		    "jump u1020 u1030 9;",
		    " 1001-1001 1 0 trap 0/0 0/0\n"
		    "  1003-1003 1 0 trap 0/0 0/0\n"
		    " 1001-1005 1 u5000 trap 4/4 1/1\n"
		    "  1006-1006 1 0 syscall 0/0 0/0\n"
		    " 1005-1006 1 u7000 jump 1/1 1/1\n"
		    "1000-~1015 1 u1000 begin 15/10 3/1\n");
	threads_are(
		"system calls and interrupts of a trace with the kernel",
		"begin u1000;call u1010 u2000 10;syscall u2010 8000 1;call 8010 9000 2;"
		"enter 9010 a000 3;leave a010 9010 4;return 9020 8014 5;leave 8020 u2014 0;"
		"enter u2020 b000 5;leave b010 u2020 6;return u2030 u1014 7;jump u1020 u1030 9;",
		"    1016-1020 1 a000 trap 4/4 1/1\n"
		"   1013-1025 1 9000 call 12/8 2/1\n"
		"  1011-1025 1 8000 syscall 14/2 3/1\n"
		"  1030-1036 1 b000 trap 6/6 1/1\n"
		" 1010-1043 1 u2000 call 33/13 5/1\n"
		"1000-~1052 cpu 0 runs 1 52\n"
		"1000-~1052 1 u1000 begin 52/19 6/1\n");
	threads_are("a signal handler of a trace with the kernel",
		    "begin u1000;enter u1010 8000 1;leave 8010 u5000 3;return u5020 u7000 2;"
		    "syscall u7010 9000 1;leave 9010 u1010 2;jump u1020 u1030 9;",
		    " 1001-1004 1 8000 trap 3/3 1/1\n"
		    " 1004-1006 1 u5000 trap 2/2 1/1\n"
		    "  1007-1009 1 9000 syscall 2/2 1/1\n"
		    " 1006-1009 1 u7000 jump 3/1 2/1\n"
		    "1000-~1018 cpu 0 runs 1 18\n"
		    "1000-~1018 1 u1000 begin 18/10 5/1\n");
	threads_are("a trace that begins in the kernel",
		    "begin 8000;call 8010 9000 2;return 9010 8014 3;leave 8020 u2014 4;"
		    "jump u2020 u2030 5;return u2040 u1014 6;jump u1020 u1030 7;",
		    " 1002-1005 1 9000 call 3/3 1/1\n"
		    "1000-1009 1 8000 begin 9/6 2/1\n"
		    "~999-1020 1 u2000 begin 20/11 4/2\n"
		    "1000-~1027 cpu 0 runs 1 27\n"
		    "~998-~1027 1 u1000 begin 27/7 5/1\n");
	threads_are("a trace of the kernel alone",
		    "begin 8000;call 8010 9000 2;return 9010 8014 3;leave 8020 u0 4;"
		    "begin 8000;call 8010 9000 2;return 9010 8014 3;leave 8020 u0 4;",
		    " 1002-1005 1 9000 call 3/3 1/1\n"
		    "1000-1009 1 8000 begin 9/6 2/1\n"
		    "1009-1009 1 0 begin 0/0 0/0\n"
		    " 1011-1014 1 9000 call 3/3 1/1\n"
		    "1009-1018 1 8000 begin 9/6 2/1\n"
		    "1000-~1018 cpu 0 runs 1 18\n"
		    "1018-~1018 1 0 begin 0/0 0/0\n");
}

static void test_parts(void)
{
	threads_are("the trace pauses",
		    "cpu -;begin u1000;call u1010 u2000 10;end u2010 5;"
		    "begin u2014;return u2020 u1014 6;jump u1020 u1030 7;",
		    "  1015-1015 1 0 trap 0/0 0/0\n"
		    " 1010-1021 1 u2000 call 11/11 1/1\n"
		    "1000-~1028 1 u1000 begin 28/17 2/1\n");
	threads_are("only some functions are traced",
		    "cpu -;begin u1000;call u1010 0 10;begin u2000;return u2010 0 5;"
		    "begin u1014;return u1020 0 6;begin u1000;call u1010 0 10;begin u1014;jump "
		    "u1020 u1024 1;",
		    "  1010-1015 1 u2000 call 5/5 1/1\n"
		    " 1010-1015 1 0 call 5/0 1/0\n"
		    "1000-1021 1 u1000 begin 21/16 2/1\n"
		    "1021-1021 1 0 begin 0/0 0/0\n"
		    " 1031-1031 1 0 call 0/0 0/0\n"
		    "1021-~1032 1 u1000 begin 11/11 1/1\n");
	threads_are("part of the trace is missing",
		    "cpu 2;begin u1000;call u1010 u2000 10;jump u2010 u2020 5;"
		    "thread 2;begin u5000;jump u5010 u5020 100;"
		    "thread 1;begin u3000;call u3010 u4000 7;jump u4010 u4020 8;",
		    "1000-1015 cpu 2 runs 1 15\n"
		    " 1010-~1015 1 u2000 call 5/5 1/1\n"
		    "1000-~1015 1 u1000 begin 15/10 2/1\n"
		    "1015-1115 1 gap\n"
		    "1015-1115 cpu 2 runs 2 100\n"
		    "1115-~1130 cpu 2 runs 1 15\n"
		    " 1122-~1130 1 u4000 call 8/8 1/1\n"
		    "1115-~1130 1 u3000 begin 15/7 2/1\n"
		    "1015-~1130 2 u5000 begin 100/100 1/1\n");
	threads_are("a thread moves to another cpu",
		    "begin u1000;call u1010 u2000 10;syscall u2010 0 5;cpu 1;leave 0 u2014 0;"
		    "jump u2020 u2030 6;cpu 0;thread 2;begin u5000;jump u5010 u5020 7;end u5020 1 "
		    "over;",
		    "  1015-1015 1 0 syscall 0/0 0/0\n"
		    "1000-1015 cpu 0 runs 1 15\n"
		    "1021-1029 cpu 0 runs 2 8\n"
		    "1021-1029 2 u5000 begin 8/8 1/1\n"
		    "1015-~1029 cpu 1 runs 1 6\n"
		    " 1010-~1029 1 u2000 call 11/11 1/1\n"
		    "1000-~1029 1 u1000 begin 21/10 2/1\n");
	slices_on(THREADS, "part of the time is selected", 1012, 1020,
		  "cpu -;begin u1000;call u1010 u2000 10;syscall u2010 0 5;leave 0 u2014 0;"
		  "jump u2020 u2030 6;return u2040 u1014 7;jump u1020 u1024 1;",
		  "  1015-1015 1 0 syscall 0/0 0/0\n"
		  " ~1012-~1020 1 u2000 call 5/5 1/1\n"
		  "~1012-~1020 1 u1000 begin 5/0 1/0\n");
}

static void test_cycles(void)
{
	static const char rows[] = "begin u1000;call u1010 u2000 10 cycles=40;jump u2010 u2020 2;"
				   "call u2020 u3000 3 cycles=7;return u3010 u2024 4 cycles=8;"
				   "return u2030 u1014 5 cycles=9;jump u1020 u1024 6 cycles=10;";

	threads_are("cycles", rows,
		    "  1015-1019 1 u3000 call 4/4 1/1 8/8\n"
		    " 1010-1024 1 u2000 call 14/10 2/1 24/16\n"
		    "1000-~1030 cpu 0 runs 1 30\n"
		    "1000-~1030 1 u1000 begin 30/16 3/1 74/50\n");
	slices_with((struct slices){ .axis = AXIS_CYCLES }, THREADS, "the axis of cycles", rows,
		    "  47-55 1 u3000 call 4/4 1/1 8/8 at 1015-1019\n"
		    " 40-64 1 u2000 call 14/10 2/1 24/16 at 1010-1024\n"
		    "0-~74 cpu 0 runs 1 30 at 1000-1030\n"
		    "0-~74 1 u1000 begin 30/16 3/1 74/50 at 1000-1030\n");
	slices_made((struct slices){ .axis = AXIS_CYCLES }, THREADS, INLINES,
		    "cycles of inlined functions",
		    "begin u1000;jump u1070 u1078 28 cycles=56;jump u1080 u1090 4 cycles=1;",
		    "  20-24 1 100b inline 2/2 1/1 4/4 at 1010-1012\n"
		    " 16-32 1 100a inline 8/6 1/1 16/12 at 1008-1016\n"
		    " 48-52 1 100a inline 2/2 1/1 4/4 at 1024-1026\n"
		    " 56-56 1 100a inline 2/2 1/1 0/0 at 1028-1030\n"
		    "0-~57 cpu 0 runs 1 32 at 1000-1032\n"
		    "0-~57 1 u1000 begin 32/20 3/3 57/37 at 1000-1032\n");
}

int main(void)
{
	test_cycles();
	test_calls();
	test_jumps();
	test_kernel();
	test_parts();
	return test_result();
}

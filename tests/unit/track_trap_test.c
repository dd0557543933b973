// SPDX-License-Identifier: GPL-2.0-or-later
/* pass/track: exceptions, system calls, and kernels that switch tasks by returning from them. */
#include "trace_text.h"

/* Exceptions in the kernel */

static void test_traps(void)
{
	expect("trap: an interrupt of an interrupt",
	       "begin 1000 sp=8000;"
	       "call 1010 2000 1 -16;"
	       "enter 2008 8000 2 -16 sp=7f00 save=A;"
	       "call 8010 3000 3;"
	       "enter 3008 8000 4 sp=7e00 save=B;"
	       "leave 8020 3008 5 sp=@B;"
	       "return 3010 8014 6;"
	       "leave 8020 2008 7 sp=@A;"
	       "return 2020 1014 8 +16;"
	       "jump 1020 1024 9;",
	       "1000 : 10\n"
	       "2000 1014 : 10\n"
	       "8000 2009 1014 : 10\n"
	       "3000 8014 2009 1014 : 10\n"
	       "8000 3009 8014 2009 1014 : 5\n"
	       "traps 2\n");
	expect("trap: an interrupt with a stack of its own",
	       "begin 1000 sp=8000;"
	       "call 1010 2000 1 -16;"
	       "enter 2008 8000 2 -16 sp=7f00 save=A;"
	       "call 8010 3000 3 stack=40000 save=B;"
	       "return 3010 8014 4;"
	       "jump 8020 8028 5 stack=@B;"
	       "leave 8030 2008 6 sp=@A;"
	       "return 2020 1014 7 +16;"
	       "jump 1020 1024 8;",
	       "1000 : 9\n"
	       "2000 1014 : 9\n"
	       "8000 2009 1014 : 14\n"
	       "3000 8014 2009 1014 : 4\n"
	       "traps 1\n");
	expect("trap: the entry changes to another stack, and jumps on",
	       "begin 1000 sp=8000;"
	       "call 1010 2000 1 -16;"
	       "enter 2008 8000 2 -16 sp=7f00 save=A;"
	       "jump 8010 9000 3 stack=40000;"
	       "call 9010 3000 4;"
	       "return 3010 9014 5;"
	       "leave 9020 2008 6 sp=@A;"
	       "return 2020 1014 7 +16;"
	       "jump 1020 1024 8;",
	       "1000 : 9\n"
	       "2000 1014 : 9\n"
	       "8000 2009 1014 : 3\n"
	       "9000 2009 1014 : 10\n"
	       "3000 9014 2009 1014 : 5\n"
	       "traps 1\n");
	expect("trap: between a call and its callee, and a return and its caller",
	       "begin 1000 sp=8000;"
	       "call 1010 2000 1 -16;"
	       "enter 2000 8000 0 sp=7f00 save=A;"
	       "leave 8020 2000 2 sp=@A;"
	       "return 2010 1014 3;"
	       "enter 1014 8000 0 sp=7f00 save=A;"
	       "leave 8020 1014 4 sp=@A;"
	       "jump 1020 1024 5;",
	       "1000 : 6\n"
	       "2000 1014 : 3\n"
	       "8000 2001 1014 : 2\n"
	       "8000 1015 : 4\n"
	       "traps 2\n");
	/* The block ends with a call, and the trace does not say whether it happened. */
	expect_on(LINKS, "trap: at a call that was made",
		  "begin 1000 sp=8000;"
		  "call 1010 2000 1 -16;"
		  "enter 2018 8000 2 next=0 after=201c -16 sp=7f00 save=A;"
		  "leave 8020 3000 3 sp=@A;"
		  "return 3010 201c 4;"
		  "return 2020 1014 5 +16;"
		  "jump 1020 1024 6;",
		  "1000 : 7\n"
		  "2000 1014 : 7\n"
		  "8000 2019 1014 : 3\n"
		  "3000 201c 1014 : 4\n"
		  "traps 1\n");
	expect_on(PUSHES, "trap: at a call that was made",
		  "begin 1000 sp=8000;"
		  "call 1010 2000 1 -16;"
		  "enter 2018 8000 2 next=0 after=201c -24 sp=7f00 save=A;"
		  "leave 8020 3000 3 sp=@A;"
		  "return 3010 201c 4;"
		  "return 2020 1014 5 +16;"
		  "jump 1020 1024 6;",
		  "1000 : 7\n"
		  "2000 1014 : 7\n"
		  "8000 2019 1014 : 3\n"
		  "3000 201c 1014 : 4\n"
		  "traps 1\n");
	expect("trap: at a call that was not made",
	       "begin 1000 sp=8000;"
	       "call 1010 2000 1 -16;"
	       "enter 2018 8000 2 next=0 after=201c -16 sp=7f00 save=A;"
	       "leave 8020 2018 3 sp=@A;"
	       "call 2018 3000 1;"
	       "return 3010 201c 4;"
	       "return 2020 1014 5 +16;"
	       "jump 1020 1024 6;",
	       "1000 : 7\n"
	       "2000 1014 : 8\n"
	       "8000 2019 1014 : 3\n"
	       "3000 201c 1014 : 4\n"
	       "traps 1\n");
	expect_on(LINKS, "trap: at a return that was made",
		  "begin 1000 sp=8000;"
		  "call 1010 2000 1 -16;"
		  "call 2010 3000 2 -16;"
		  "enter 3018 8000 3 next=0 sp=7f00 save=A;"
		  "leave 8020 2014 4 sp=@A;"
		  "return 2020 1014 5 +16;"
		  "jump 1020 1024 6;",
		  "1000 : 7\n"
		  "2000 1014 : 7\n"
		  "3000 2014 1014 : 3\n"
		  "8000 3019 2014 1014 : 4\n"
		  "traps 1\n");
	expect_on(PUSHES, "trap: at a return that was made",
		  "begin 1000 sp=8000;"
		  "call 1010 2000 1 -16;"
		  "call 2010 3000 2 -16;"
		  "enter 3018 8000 3 next=0 +8 sp=7f00 save=A;"
		  "leave 8020 2014 4 sp=@A;"
		  "return 2020 1014 5 +16;"
		  "jump 1020 1024 6;",
		  "1000 : 7\n"
		  "2000 1014 : 7\n"
		  "3000 2014 1014 : 3\n"
		  "8000 2015 1014 : 4\n"
		  "traps 1\n");
	expect("trap: a caller that is only known by its function",
	       "begin 1000 sp=8000;"
	       "call 1010 2000 1 -16;"
	       "enter 2018 8000 2 next=0 after=201c -16 sp=7f00 save=A;"
	       "check 8008 2034 1014;"
	       "check 8008 3034 1014;"
	       "leave 8020 2018 3 sp=@A;",
	       "1000 : 1\n"
	       "2000 1014 : 2\n"
	       "8000 2019 1014 : 3\n"
	       "traps 1 equal 1 different 1\n");
	expect("trap: a fault that was mended goes on elsewhere",
	       "begin 1000 sp=8000;"
	       "call 1010 2000 1 -16;"
	       "enter 2008 8000 2 -16 sp=7f00 save=A;"
	       "call 8010 9000 3;"
	       "return 9010 8014 4;"
	       "leave 8020 c080 5 sp=@A;"
	       "return c090 1014 6 +16;"
	       "jump 1020 1024 7;",
	       "1000 : 8\n"
	       "2000 1014 : 2\n"
	       "8000 2009 1014 : 8\n"
	       "9000 8014 2009 1014 : 4\n"
	       "c000 1014 : 6\n"
	       "traps 1 doubtful 6 rooted 22\n");
	expect("trap: a return from no exception, to the next instruction",
	       "begin 1000 sp=8000;"
	       "call 1010 2000 1 -16;"
	       "leave 2010 2012 3 -40 sp=7ff0;"
	       "jump 2020 2024 2;",
	       "1000 : 1\n"
	       "2000 1014 : 5\n");
	expect("trap: a return from no exception, further ahead",
	       "begin 1000 sp=8000;"
	       "call 1010 2000 1 -16;"
	       "leave 2010 2021 2 sp=7ff0;"
	       "jump 2030 2034 4;",
	       "1000 : 1\n"
	       "2000 1014 : 2\n"
	       "2000 : 4\n"
	       "tasks 2 leaves 1 leaves-found 0\n");
	expect_on(PUSHES, "trap: an exception that emulates a call",
		  "begin 1000 sp=8000;"
		  "call 1010 2000 1 -16;"
		  "enter 2008 8000 2 sp=7fc0 save=A;"
		  "leave 8020 c000 4 sp=@A-8;"
		  "return c010 200d 8;"
		  "return 2010 1014 16;"
		  "jump 1020 1024 32;",
		  "1000 : 33\n"
		  "2000 1014 : 18\n"
		  "8000 2009 1014 : 4\n"
		  "c000 1014 : 8\n"
		  "traps 1 jumps 1 doubtful 24 rooted 39\n");
	expect_on(PUSHES, "trap: an exception that returns into the next one",
		  "begin 1000 sp=8000;"
		  "call 1010 2000 1 -16;"
		  "enter 2008 8000 2 sp=7fc0 save=A;"
		  "call 8010 9000 4;"
		  "leave 9020 c000 8 sp=7fc0;"
		  "leave c010 2008 16 sp=@A;"
		  "jump 2010 2014 32;",
		  "1000 : 1\n"
		  "2000 1014 : 34\n"
		  "8000 2009 1014 : 4\n"
		  "9000 8014 2009 1014 : 8\n"
		  "c000 2009 1014 : 16\n"
		  "traps 1 leaves 2 leaves-found 1\n");
	expect_on(PUSHES,
		  "trap: an exception at the entry of another one, which the trace did not see",
		  "begin 1000 sp=8000;"
		  "call 1010 2000 1 -16;"
		  "enter 2008 8000 2 sp=7f90 save=A;"
		  "leave 8020 c000 4 sp=7fc0;"
		  "call c010 9000 8;"
		  "return 9010 c014 16;"
		  "leave c020 2008 32 sp=@A;"
		  "jump 2010 2014 64;",
		  "1000 : 1\n"
		  "2000 1014 : 66\n"
		  "8000 2009 1014 : 4\n"
		  "c000 2009 1014 : 40\n"
		  "9000 c014 2009 1014 : 16\n"
		  "traps 1 leaves 2 leaves-found 1\n");
	expect_on(PUSHES, "trap: the same in a program",
		  "begin u1000 sp=20000;"
		  "call u1010 u2000 1 -16;"
		  "enter 2008 8000 2 sp=7f90 save=A;"
		  "leave 8020 c000 4 sp=7fc0;"
		  "leave c020 u2008 8 sp=@A;"
		  "return u2010 u1014 16 +16;"
		  "jump u1020 u1024 32;",
		  "u1000 : 33\n"
		  "u2000 u1014 : 18\n"
		  "8000 u2008 u1014 : 4\n"
		  "c000 u2008 u1014 : 8\n"
		  "traps 1 leaves 2 leaves-found 1\n");
	expect("trap: a call of the machine, which it serves itself",
	       "begin 1000 sp=8000;"
	       "call 1010 2000 1 -16;"
	       "syscall 2010 2014 2 left=0 -16;"
	       "call 2020 3000 3;"
	       "return 3010 2024 4;"
	       "return 2030 1014 5 +16;"
	       "jump 1020 1024 6 !;",
	       "1000 : 7\n"
	       "2000 1014 : 10\n"
	       "3000 2024 1014 : 4\n");
	expect("trap: one interrupt right after the other",
	       "begin 1000 sp=8000;"
	       "call 1010 2000 1 -16;"
	       "enter 2008 8000 2 -16 sp=7f00 save=A;"
	       "leave 8020 2008 3 sp=@A;"
	       "enter 2008 8000 0 sp=7f00;"
	       "leave 8020 2008 4 sp=@A;"
	       "return 2020 1014 5 +16;"
	       "jump 1020 1024 6;",
	       "1000 : 7\n"
	       "2000 1014 : 7\n"
	       "8000 2009 1014 : 7\n"
	       "traps 2\n");
}

/* Programs, each with its own address space. Exceptions enter at 8000; each task has a kernel stack. */

static void test_programs(void)
{
	expect("trap: an interrupt before the return from the last one leads anywhere",
	       "begin 1000 sp=8000;"
	       "call 1010 2000 1 -16;"
	       "enter 2008 8000 2 save=A;"
	       "leave 8020 u0 3 sp=@A;" /* the target and its context are not known */
	       "enter 0 8000 0 next=0 save=B;"
	       "leave 8030 2008 4 sp=@B;"
	       "return 2010 1014 5 +16;"
	       "jump 1020 1024 6;",
	       "1000 : 7\n"
	       "2000 1014 : 7\n"
	       "8000 2009 1014 : 3\n"
	       "8000 2009 1014 : 4\n"
	       "traps 2\n");
	expect("trap: firmware interrupts the kernel's entry, and returns to where that came from",
	       "begin 1000 sp=8000;"
	       "call 1010 2000 1 -16;"
	       "enter 2008 8000 2 next=0 save=A;"
	       "enter 8000 9000 0 next=8000 save=B;"
	       "leave 9020 2008 3 sp=@A;" /* to 8000, and the entry has the address 2008 */
	       "enter 2008 8000 0;"
	       "leave 8030 2008 4 sp=@A;"
	       "return 2010 1014 5 +16;"
	       "jump 1020 1024 6;",
	       "1000 : 7\n"
	       "2000 1014 : 7\n"
	       "9000 8001 2009 1014 : 3\n"
	       "8000 2009 1014 : 4\n"
	       "traps 3 leaves 2\n");
	expect_on(LINKS, "trap: at a longjmp to another stack",
		  "begin 1000 sp=8000;"
		  "call 1010 2000 1 -16;"
		  "call 2010 3000 2;" /* setjmp */
		  "return 3010 2014 3;"
		  "call 2020 4000 4;" /* longjmp */
		  "return 4010 6014 5 stack=20000 save=A;"
		  "call 6020 4000 6;"
		  "jump 4010 4010 7 stack=@A;" /* to 2014, which the trace does not know */
		  "enter 4010 8000 0 next=0 save=B;"
		  "leave 8030 2014 8 sp=@B;"
		  "return 2040 1014 9 +16;"
		  "jump 1020 1024 10;",
		  "1000 : 11\n"
		  "2000 1014 : 15\n"
		  "3000 2014 1014 : 3\n"
		  "4000 2024 1014 : 5\n"
		  "6000 : 6\n"
		  "4000 6024 : 7\n"
		  "8000 4011 2024 1014 : 8\n"
		  "tasks 2 switches 2 traps 1\n");
	expect("trap: a system call",
	       "begin u1000 sp=8000;"
	       "call u1010 u2000 1 -16;"
	       "syscall u2010 8000 2 sp=40000 save=A;"
	       "call 8010 9000 3 -16;"
	       "return 9010 8014 4;"
	       "leave 8020 u2014 5 sp=@A;"
	       "return u2020 u1014 6;"
	       "jump u1020 u1024 7 +16;",
	       "u1000 : 8\n"
	       "u2000 u1014 : 8\n"
	       "8000 u2014 u1014 : 8\n"
	       "9000 8014 u2014 u1014 : 4\n"
	       "traps 1\n");
	expect("trap: a system call starts again",
	       "begin u1000 sp=8000;"
	       "call u1010 u2000 1 -16;"
	       "syscall u2010 8000 2 ? sp=40000 save=A;"
	       "leave 8020 u2010 5 sp=@A;"
	       "syscall u2010 8000 2 sp=40000 save=A;"
	       "leave 8020 u2014 5 sp=@A;"
	       "return u2020 u1014 6;"
	       "jump u1020 u1024 7 +16;",
	       "u1000 : 8\n"
	       "u2000 u1014 : 10\n"
	       "8000 u2014 u1014 : 10\n"
	       "traps 2\n");
	expect("trap: a signal handler, and its end by a system call",
	       "begin u1000 sp=8000;"
	       "call u1010 u2000 1 -16;"
	       "enter u2008 8000 2 sp=40000 save=A;"
	       "call 8010 9000 3 -16;"
	       "return 9010 8014 4;"
	       "leave 8020 u5000 5 sp=7c00;"
	       "call u5010 u6000 6 -16 save=B;"
	       "return u6010 u5014 7;"
	       "jump u5020 u7000 8 +16;"
	       "syscall u7000 8000 1 sp=40000;"
	       "leave 8020 u2008 9 sp=@A;"
	       "return u2020 u1014 10;"
	       "jump u1020 u1024 11 +16;",
	       "u1000 : 12\n"
	       "u2000 u1014 : 12\n"
	       "8000 u2008 u1014 : 8\n"
	       "9000 8014 u2008 u1014 : 4\n"
	       "u5000 u2009 u1014 : 14\n"
	       "u6000 u5014 u2009 u1014 : 7\n"
	       "u7000 u2009 u1014 : 1\n"
	       "8000 u7004 u2009 u1014 : 9\n"
	       "tasks 2 switches 1 traps 2\n");
	expect("trap: two signals, with a handler on a stack of its own",
	       "begin u1000 sp=8000;"
	       "call u1010 u2000 1 -16;"
	       "enter u2008 8000 2 sp=40000 save=A;"
	       "leave 8020 u5000 5 sp=6c00;"
	       "syscall u5010 8000 1 sp=40000 save=B;"
	       "leave 8020 u5014 2 sp=@B;"
	       "syscall u5020 8000 1 sp=40000;"
	       "leave 8020 u2008 9 sp=@A;"
	       "enter u2008 8000 2 sp=40000 save=A;"
	       "leave 8020 u5000 5 sp=6c00;"
	       "syscall u5010 8000 1 sp=40000 save=B;"
	       "leave 8020 u5014 2 sp=@B;"
	       "syscall u5020 8000 1 sp=40000;"
	       "leave 8020 u2008 9 sp=@A;"
	       "return u2020 u1014 10;"
	       "jump u1020 u1024 11 +16;",
	       "u1000 : 12\n"
	       "u2000 u1014 : 14\n"
	       "8000 u2008 u1014 : 10\n"
	       "u5000 u2009 u1014 : 4\n"
	       "8000 u5014 u2009 u1014 : 4\n"
	       "8000 u5024 u2009 u1014 : 18\n"
	       "tasks 3 switches 2 traps 6\n");
	expect_on(PUSHES, "trap: a jump out of a signal handler",
		  "begin u1000 sp=8000;"
		  "jump u1004 u1008 1 -16 save=J;"
		  "call u1010 u2000 1;"
		  "enter u2008 8000 2 sp=40000 save=A;"
		  "leave 8020 u5000 5 sp=7c00;"
		  "call u5010 u9000 6 -16;"
		  "jump u9010 u1080 7 stack=@J;"
		  "call u1090 u2000 8;"
		  "return u2020 u1094 9;"
		  "jump u10a0 u10a4 10;",
		  "u1000 : 20\n"
		  "u2000 u1014 : 2\n"
		  "8000 u2008 u1014 : 5\n"
		  "u5000 u2009 u1014 : 6\n"
		  "u9000 u5014 u2009 u1014 : 7\n"
		  "u2000 u1094 : 9\n"
		  "traps 1\n");
	expect_on(LINKS, "trap: a jump out of a signal handler",
		  "begin u1000 sp=8000;"
		  "jump u1004 u1008 1 -16 save=J;"
		  "call u1010 u2000 1;"
		  "enter u2008 8000 2 sp=40000 save=A;"
		  "leave 8020 u5000 5 sp=7c00;"
		  "call u5010 u9000 6 -16;"
		  "return u9010 u1080 7 stack=@J;"
		  "call u1090 u2000 8;"
		  "return u2020 u1094 9;"
		  "jump u10a0 u10a4 10;",
		  "u1000 : 20\n"
		  "u2000 u1014 : 2\n"
		  "8000 u2008 u1014 : 5\n"
		  "u5000 u2009 u1014 : 6\n"
		  "u9000 u5014 u2009 u1014 : 7\n"
		  "u2000 u1094 : 9\n"
		  "traps 1 jumps 1\n");
	expect_on(PUSHES, "trap: a jump out of a signal handler, from a tail call",
		  "begin u1000 sp=8000;"
		  "jump u1004 u1008 1 -16 save=J;"
		  "call u1010 u2000 1;"
		  "enter u2008 8000 2 sp=40000 save=A;"
		  "leave 8020 u5000 5 sp=7c00;"
		  "jump u5010 u9000 6 -16;"
		  "jump u9010 u1080 7 stack=@J;"
		  "call u1090 u2000 8;"
		  "return u2020 u1094 9;"
		  "jump u10a0 u10a4 10;",
		  "u1000 : 20\n"
		  "u2000 u1014 : 2\n"
		  "8000 u2008 u1014 : 5\n"
		  "u5000 u2009 u1014 : 6\n"
		  "u9000 u2009 u1014 : 7\n"
		  "u2000 u1094 : 9\n"
		  "traps 1\n");
	expect_on(LINKS, "trap: a jump out of a signal handler, from a tail call",
		  "begin u1000 sp=8000;"
		  "jump u1004 u1008 1 -16 save=J;"
		  "call u1010 u2000 1;"
		  "enter u2008 8000 2 sp=40000 save=A;"
		  "leave 8020 u5000 5 sp=7c00;"
		  "jump u5010 u9000 6 -16;"
		  "return u9010 u1080 7 stack=@J;"
		  "call u1090 u2000 8;"
		  "return u2020 u1094 9;"
		  "jump u10a0 u10a4 10;",
		  "u1000 : 20\n"
		  "u2000 u1014 : 2\n"
		  "8000 u2008 u1014 : 5\n"
		  "u5000 u2009 u1014 : 6\n"
		  "u9000 u2009 u1014 : 7\n"
		  "u2000 u1094 : 9\n"
		  "traps 1 jumps 1\n");
	expect("trap: a child process returns from its parent's system call",
	       "begin u1000 sp=8000;"
	       "call u1010 u2000 1 -16;"
	       "syscall u2010 8000 2 sp=40000 save=A;"
	       "call 8010 9000 3 -64;"
	       "space 2;"
	       "jump 9010 9018 4 stack=60000 save=K;"
	       "return 9020 a000 5;" /* ret_from_fork */
	       "leave a010 u2014 6 sp=@A;"
	       "return u2020 u1014 7;"
	       "syscall u1020 8000 8 sp=60000 save=B;"
	       "call 8010 9000 9 -64;"
	       "space 1;"
	       "jump 9010 9018 10 stack=@K save=L;"
	       "return 9020 8014 11;"
	       "leave 8020 u2014 12 sp=@A +64;"
	       "return u2020 u1014 13;"
	       "jump u1020 u1024 14 +16;",
	       "u1000 : 23\n"
	       "u2000 u1014 : 22\n"
	       "8000 u2014 u1014 : 15\n"
	       "9000 8014 u2014 u1014 : 20\n"
	       "a000 : 6\n"
	       "8000 u1024 : 9\n"
	       "9000 8014 u1024 : 10\n"
	       "tasks 3 switches 2 traps 2 leaves-found 1\n");
	expect("trap: a new thread returns from its parent's system call, on its own stack",
	       "begin u1000 sp=8000;"
	       "call u1010 u2000 1 -16;"
	       "syscall u2010 8000 2 sp=40000 save=A;"
	       "call 8010 9000 3 -64;"
	       "jump 9010 9018 4 stack=60000 save=K;"
	       "return 9020 a000 5;"
	       "leave a010 u2014 6 sp=6000;"
	       "jump u2020 u2024 7;",
	       "u1000 : 1\n"
	       "u2000 u1014 : 2\n"
	       "8000 u2014 u1014 : 3\n"
	       "9000 8014 u2014 u1014 : 9\n"
	       "a000 : 6\n"
	       "u2000 : 7\n"
	       "tasks 3 switches 1 traps 1 leaves-found 0\n");
	expect("trap: a child runs in its parent's space until it runs another program",
	       "begin u1000 sp=8000;"
	       "call u1010 u2000 1 -16;"
	       "syscall u2010 8000 2 sp=40000 save=A;"
	       "call 8010 9000 3 -64;"
	       "jump 9010 9018 4 stack=60000 save=K;"
	       "return 9020 a000 5;"
	       "leave a010 u2014 6 sp=@A;"
	       "return u2020 u1014 7;"
	       "syscall u1020 8000 8 sp=60000;"
	       "call 8010 b000 2 -16;"
	       "space 2;"
	       "return b010 8014 3;"
	       "leave 8020 u4000 9 +16 sp=9000;"
	       "syscall u4010 8000 10 sp=60000 save=B;"
	       "call 8010 9000 11 -64;"
	       "space 1;"
	       "jump 9010 9018 10 stack=@K save=L;"
	       "return 9020 8014 11;"
	       "leave 8020 u2014 12 sp=@A +64;"
	       "return u2020 u1014 13;"
	       "jump u1020 u1024 14 +16;",
	       "u1000 : 23\n"
	       "u2000 u1014 : 22\n"
	       "8000 u2014 u1014 : 15\n"
	       "9000 8014 u2014 u1014 : 20\n"
	       "a000 : 6\n"
	       "8000 u1024 : 11\n"
	       "b000 8014 u1024 : 3\n"
	       "u4000 : 10\n"
	       "8000 u4014 : 11\n"
	       "9000 8014 u4014 : 10\n"
	       "tasks 4 switches 3 traps 3 leaves-found 1\n");
	expect("trap: another program in the same process",
	       "begin u1000 sp=8000;"
	       "call u1010 u2000 1 -16;"
	       "syscall u2010 8000 2 sp=40000;"
	       "call 8010 b000 3 -16;"
	       "space 2;"
	       "return b010 8014 4;"
	       "leave 8020 u4000 5 sp=9000;"
	       "call u4010 u5000 6 -16;"
	       "jump u5010 u5014 7;",
	       "u1000 : 1\n"
	       "u2000 u1014 : 2\n"
	       "8000 u2014 u1014 : 8\n"
	       "b000 8014 u2014 u1014 : 4\n"
	       "u4000 : 6\n"
	       "u5000 u4014 : 7\n"
	       "tasks 2 switches 1 traps 1 leaves-found 0\n");
	expect("trap: a thread of the kernel changes to a new program's stack, and returns to it",
	       "begin 1000 sp=20000;"
	       "call 1010 9000 1 -16;"
	       "leave 9010 u5000 2 -32 stack=40000 sp=8000 save=K;"
	       "enter u5008 8000 3 sp=40000;"
	       "call 8010 9000 4 -16;"
	       "jump 9010 9018 5 stack=@K;"
	       "return 9020 1014 6 +32;"
	       "jump 1020 1024 7;",
	       "1000 : 8\n"
	       "9000 1014 : 8\n"
	       "u5000 : 3\n"
	       "8000 u5008 : 4\n"
	       "9000 8014 u5008 : 5\n"
	       "tasks 2 switches 2 traps 1 leaves-found 0\n");
	expect("trap: programs in two spaces with the same addresses",
	       "begin u1000 sp=8000;"
	       "call u1010 u2000 1 -16;"
	       "enter u2008 8000 2 sp=40000 save=A;"
	       "call 8010 9000 3 -64;"
	       "space 2;"
	       "jump 9010 9018 4 stack=60000 save=K;"
	       "return 9020 a000 5;"
	       "leave a010 u1000 6 sp=8000;"
	       "call u1020 u2000 7 -16;"
	       "enter u2008 8000 8 sp=60000;"
	       "call 8010 9000 9 -64;"
	       "space 1;"
	       "jump 9010 9018 10 stack=@K save=L;"
	       "return 9020 8014 11;"
	       "leave 8020 u2008 12 sp=@A +64;"
	       "return u2020 u1014 13;"
	       "jump u1020 u1024 14 +16;",
	       "u1000 : 15\n"
	       "u2000 u1014 : 15\n"
	       "8000 u2008 u1014 : 15\n"
	       "9000 8014 u2008 u1014 : 20\n"
	       "a000 : 6\n"
	       "u1000 : 7\n"
	       "u2000 u1024 : 8\n"
	       "8000 u2008 u1024 : 9\n"
	       "9000 8014 u2008 u1024 : 10\n"
	       "tasks 3 switches 2 traps 2 leaves-found 1\n");
}

/* Kernels with one stack per cpu: every exception begins at its top, and returns to any thread */

static void test_one_stack(void)
{
	expect("trap: leave to other programs, with the same addresses",
	       "begin u1000 sp=8000;"
	       "call u1010 u2000 1 -16;"
	       "enter u2008 8000 2 sp=40000 save=A;"
	       "space 2;"
	       "leave 8020 u1000 3 sp=8000;"
	       "call u1020 u2000 4 -16;"
	       "enter u2008 8000 5 sp=40000 save=B;"
	       "space 1;"
	       "leave 8020 u2008 6 sp=@A;"
	       "call u2010 u3000 7;"
	       "enter u3008 8000 8 sp=40000 save=A;"
	       "space 2;"
	       "leave 8020 u2008 9 sp=@B;"
	       "jump u2010 u2014 10;",
	       "u1000 : 1\n"
	       "u2000 u1014 : 9\n"
	       "8000 u2008 u1014 : 3\n"
	       "u1000 : 4\n"
	       "u2000 u1024 : 15\n"
	       "8000 u2008 u1024 : 6\n"
	       "u3000 u2014 u1014 : 8\n"
	       "8000 u3008 u2014 u1014 : 9\n"
	       "tasks 2 switches 3 traps 3 leaves-found 2\n");
	expect("trap: three programs that wait at the same stack pointer, in their spaces",
	       "begin u1000 sp=8000;"
	       "enter u1008 8000 1 sp=40000 save=A;"
	       "space 2;"
	       "leave 8020 u2000 2 sp=8000;"
	       "enter u2008 8000 4 sp=40000;"
	       "space 3;"
	       "leave 8020 u3000 8 sp=8000;"
	       "enter u3008 8000 16 sp=40000;"
	       "space 1;"
	       "leave 8020 u1008 32 sp=@A;"
	       "jump u1010 u1014 64;",
	       "u1000 : 65\n"
	       "8000 u1008 : 2\n"
	       "u2000 : 4\n"
	       "8000 u2008 : 8\n"
	       "u3000 : 16\n"
	       "8000 u3008 : 32\n"
	       "tasks 3 switches 3 traps 3 leaves-found 1\n");
	expect("trap: threads in one space, of which the first was taken for a signal handler",
	       "begin u1000 sp=8000;"
	       "call u1010 u2000 1 -16;"
	       "enter u2008 8000 2 sp=40000 save=A;"
	       "leave 8020 u5000 3 sp=6000;"
	       "call u5010 u6000 4 -16;"
	       "enter u6008 8000 5 sp=40000 save=B;"
	       "leave 8020 u2008 6 sp=@A;"
	       "call u2010 u3000 7;"
	       "enter u3008 8000 8 sp=40000 save=A;"
	       "leave 8020 u6008 9 sp=@B;"
	       "return u6010 u5014 10;"
	       "enter u5020 8000 11 sp=40000 save=B;"
	       "leave 8020 u3008 12 sp=@A;"
	       "return u3010 u2014 13;"
	       "jump u2020 u2024 14;",
	       "u1000 : 1\n"
	       "u2000 u1014 : 23\n"
	       "8000 u2008 u1014 : 3\n"
	       "u5000 u2009 u1014 : 4\n"
	       "u6000 u5014 u2009 u1014 : 5\n"
	       "8000 u6008 u5014 u2009 u1014 : 6\n"
	       "u5000 : 11\n"
	       "u6000 u5014 : 10\n"
	       "u3000 u2014 u1014 : 21\n"
	       "8000 u3008 u2014 u1014 : 9\n"
	       "8000 u5020 : 12\n"
	       "tasks 2 switches 3 traps 4 doubtful 15 rooted 90\n");
	expect("trap: no signal handler in a kernel that has returned to another program",
	       "begin u1000 sp=8000;"
	       "enter u1008 8000 1 sp=40000 save=A;"
	       "space 2;"
	       "leave 8020 u1000 2 sp=8000;"
	       "enter u1010 8000 3 sp=40000;"
	       "space 1;"
	       "leave 8020 u1008 4 sp=@A;"
	       "enter u1018 8000 5 sp=40000;"
	       "leave 8020 u5000 6 sp=6000;"
	       "jump u5010 u5014 7;",
	       "u1000 : 6\n"
	       "8000 u1008 : 2\n"
	       "u1000 : 3\n"
	       "8000 u1010 : 4\n"
	       "8000 u1018 : 6\n"
	       "u5000 : 7\n"
	       "tasks 3 switches 3 traps 3 leaves-found 1\n");
	expect("trap: a thread higher in the same space is no signal handler",
	       "begin u1000 sp=8000;"
	       "enter u1008 8000 1 sp=40000;"
	       "leave 8020 u5000 2 sp=9000;"
	       "jump u5010 u5014 3;",
	       "u1000 : 1\n"
	       "8000 u1008 : 2\n"
	       "u5000 : 3\n"
	       "tasks 2 switches 1 traps 1 leaves-found 0\n");
	expect("trap: a program in another space is no signal handler",
	       "begin u1000 sp=8000;"
	       "enter u1008 8000 1 sp=40000;"
	       "space 2;"
	       "leave 8020 u5000 2 sp=6000;"
	       "jump u5010 u5014 3;",
	       "u1000 : 1\n"
	       "8000 u1008 : 2\n"
	       "u5000 : 3\n"
	       "tasks 2 switches 1 traps 1 leaves-found 0\n");
	expect("trap: a thread of the kernel changes to a new stack, and returns to a program",
	       "begin 1000 sp=20000;"
	       "call 1010 9000 1 -16;"
	       "jump 9010 9018 2 -32 stack=40000 save=K;"
	       "leave 9020 u5000 3 sp=8000;"
	       "enter u5008 8000 4 sp=40000;"
	       "call 8010 9000 5 -16;"
	       "jump 9010 9018 6 stack=@K;"
	       "return 9020 1014 7 +32;"
	       "jump 1020 1024 8;",
	       "1000 : 9\n"
	       "9000 1014 : 12\n"
	       "u5000 : 4\n"
	       "8000 u5008 : 5\n"
	       "9000 8014 u5008 : 6\n"
	       "tasks 2 switches 2 traps 1 leaves-found 0\n");
	expect_on(LINKS, "trap: a return from an exception that is an ordinary return",
		  "begin 1000 sp=8000;"
		  "call 1010 2000 1 -16;"
		  "leave 2010 1014 2 sp=7ff0;"
		  "jump 1020 1024 3;",
		  "1000 : 4\n"
		  "2000 1014 : 2\n");
	expect("trap: a kernel that abandons its calls",
	       "begin u1000 sp=8000;"
	       "call u1010 u2000 1 -16;"
	       "syscall u2008 8000 2 sp=40000 save=A;"
	       "call 8010 9000 3 -16;"
	       "call 9010 a000 4 -16;"
	       "leave a010 u5000 5 sp=6000;" /* a thread */
	       "call u5010 u6000 6 -16;"
	       "syscall u6008 8000 7 sp=40000 save=B;"
	       "call 8010 a000 8 -16;"
	       "leave a010 u200c 9 sp=@A;"
	       "return u2010 u1014 10;"
	       "enter u1020 8000 11 sp=40000 save=A;"
	       "call 8010 a000 12 -16;"
	       "leave a010 u600c 13 sp=@B;"
	       "return u6010 u5014 14;"
	       "jump u5020 u5024 15;",
	       "u1000 : 12\n"
	       "u2000 u1014 : 12\n"
	       "8000 u200c u1014 : 3\n"
	       "9000 8014 u200c u1014 : 4\n"
	       "a000 9014 8014 u200c u1014 : 5\n"
	       "u5000 : 21\n"
	       "u6000 u5014 : 21\n"
	       "8000 u600c u5014 : 8\n"
	       "a000 8014 u600c u5014 : 9\n"
	       "8000 u1020 : 12\n"
	       "a000 8014 u1020 : 13\n"
	       "tasks 2 switches 3 traps 3 leaves-found 2\n");
	/* One register has the stack pointer of the code that runs, another that of exceptions. */
	expect_on(LINKS, "trap: leave to a thread on another stack (Cortex-M)",
		  "begin 1000 sp=20000;"
		  "call 1010 2000 1 -16;"
		  "enter 2008 8000 2 sp=40000 save=A;"
		  "leave 8020 5000 3 sp=30000;"
		  "call 5010 6000 4 -16;"
		  "enter 6008 8000 5 sp=40000 save=B;"
		  "leave 8020 2008 6 sp=@A;"
		  "return 2010 1014 7;"
		  "enter 1020 8000 8 sp=40000 save=A;"
		  "leave 8020 6008 9 sp=@B;"
		  "return 6010 5014 10;"
		  "jump 5020 5024 11;",
		  "1000 : 9\n"
		  "2000 1014 : 9\n"
		  "8000 2009 1014 : 3\n"
		  "5000 : 15\n"
		  "6000 5014 : 15\n"
		  "8000 6009 5014 : 6\n"
		  "8000 1021 : 9\n"
		  "tasks 2 switches 3 traps 3 leaves-found 2\n");
	expect("trap: a stack is replaced in an exception, which then returns",
	       "begin 1000 sp=20000;"
	       "call 1010 2000 1 -16;"
	       "enter 2008 8000 2 sp=1ff00 save=A;"
	       "call 8010 9000 3;"
	       "jump 9010 9018 4 stack=30000 save=K;"
	       "leave 9020 5000 5 sp=30040;"
	       "call 5010 6000 6 -16;"
	       "enter 6008 8000 7 sp=2ff00 save=B;"
	       "call 8010 9000 8;"
	       "jump 9010 9018 9 stack=@K save=L;"
	       "return 9020 8014 10;"
	       "leave 8020 2008 11 sp=@A;"
	       "return 2010 1014 12;"
	       "jump 1020 1024 13;",
	       "1000 : 14\n"
	       "2000 1014 : 14\n"
	       "8000 2009 1014 : 14\n"
	       "9000 8014 2009 1014 : 19\n"
	       "5000 : 6\n"
	       "6000 5014 : 7\n"
	       "8000 6009 5014 : 8\n"
	       "9000 8014 6009 5014 : 9\n"
	       "tasks 2 switches 2 traps 2 leaves-found 1\n");
}

int main(void)
{
	test_traps();
	test_programs();
	test_one_stack();
	return test_result();
}

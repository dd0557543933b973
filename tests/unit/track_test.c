// SPDX-License-Identifier: GPL-2.0-or-later
/* pass/track: calls, returns and switches of stacks, one small trace for each pattern in real code. */
#include "trace_text.h"

/* Calls */

static void test_calls(void)
{
	expect("track: calls, a loop, a tail call",
	       "begin 1000 sp=8000;"
	       "call 1010 2000 4 -16;"
	       "jump 2008 2004 3;"
	       "call 2010 3000 5 -32;"
	       "return 3010 2014 6;"
	       "jump 2020 4000 2 +32;"
	       "return 4010 1014 7;"
	       "end 1020 1 +16;",
	       "1000 : 5\n"
	       "2000 1014 : 10\n"
	       "3000 2014 1014 : 6\n"
	       "4000 1014 : 7\n"
	       "switches 1\n");
	expect("track: the end of a function by its frame pointer",
	       "begin 1000 sp=8000;"
	       "call 1010 2000 1 -16;"
	       "jump 2010 2020 2 -64;"
	       "return 2030 1014 3 +64 ?;"
	       "jump 1020 1030 4;"
	       "call 1030 3000 5;"
	       "jump 3010 3020 6 sp=7000;", /* the stack pointer was known again, so this one is wrong */
	       "1000 : 10\n"
	       "2000 1014 : 5\n"
	       "3000 1034 : 6\n"
	       "strayed 1\n");
	expect("track: equal return addresses of a recursion",
	       "begin 1000 sp=8000;"
	       "call 1010 2000 1;"
	       "call 2010 2000 1 -32;"
	       "call 2010 2000 1 -32;"
	       "call 2010 2000 1 -32;"
	       "return 2020 2014 2;"
	       "return 2020 2014 3 +32 ?;"
	       "return 2020 2014 4 +32;"
	       "return 2020 1014 5 +32;"
	       "jump 1020 1024 6;",
	       "1000 : 7\n"
	       "2000 1014 : 6\n"
	       "2000 2014 1014 : 5\n"
	       "2000 2014 2014 1014 : 4\n"
	       "2000 2014 2014 2014 1014 : 2\n");
	expect("track: a return over several calls of a recursion",
	       "begin 1000 sp=8000;"
	       "call 1010 2000 1;"
	       "jump 2004 2008 1 -32 save=A;"
	       "call 2010 2000 1;"
	       "call 2010 2000 1 -32;"
	       "call 2010 2000 1 -32;"
	       "return 2020 2014 2 ? sp=@A;"
	       "return 2020 1014 5 +32;"
	       "jump 1020 1024 6;",
	       "1000 : 7\n"
	       "2000 1014 : 7\n"
	       "2000 2014 1014 : 1\n"
	       "2000 2014 2014 1014 : 1\n"
	       "2000 2014 2014 2014 1014 : 2\n");
	expect_on(PUSHES, "track: a callee that removes its arguments",
		  "begin 1000 sp=8000;"
		  "call 1010 2000 1 -16;"
		  "return 2010 1014 2 +16;"
		  "call 1020 3000 3;"
		  "return 3010 1024 4 !;"
		  "jump 1030 1034 5;",
		  "1000 : 9\n"
		  "2000 1014 : 2\n"
		  "3000 1024 : 4\n");
}

/* Calls and returns that are not real */

static void test_tricks(void)
{
	expect_on(PUSHES, "track: code that asks for its own address",
		  "begin 1000 sp=8000;"
		  "call 1010 2000 1;"
		  "call 2010 2014 1;"
		  "jump 2018 2020 2 +8;" /* pops it */
		  "call 2028 3000 3;"
		  "return 3010 202c 4;"
		  "return 2030 1014 5;"
		  "jump 1020 1024 6;",
		  "1000 : 7\n"
		  "2000 1014 : 9\n"
		  "2000 2014 1014 : 2\n"
		  "3000 202c 1014 : 4\n");
	expect_on(PUSHES, "track: code that asks for its own address, and calls",
		  "begin 1000 sp=8000;"
		  "call 1010 1014 1;"
		  "call 1020 3000 2 +8;"
		  "jump 3010 3014 3;",
		  "1000 : 1\n"
		  "1000 1014 : 2\n"
		  "3000 1024 : 3\n");
	expect_on(PUSHES, "track: calls that fill the cpu's return predictor",
		  "begin 1000 sp=8000;"
		  "call 1010 2000 1;"
		  "call 2010 2018 1;"
		  "call 2018 2020 1;"
		  "call 2020 2028 1;"
		  "jump 2030 2038 2 +24;"
		  "call 2038 3000 3;"
		  "return 3010 203c 4;"
		  "return 2040 1014 5;"
		  "jump 1020 1024 6;",
		  "1000 : 7\n"
		  "2000 1014 : 9\n"
		  "2000 2014 1014 : 1\n"
		  "2000 201c 2014 1014 : 1\n"
		  "2000 2024 201c 2014 1014 : 2\n"
		  "3000 203c 1014 : 4\n");
	expect_on(PUSHES, "track: a retpoline",
		  "begin 1000 sp=8000;"
		  "call 1010 9000 1 -16;"
		  "call 9000 9010 1;"
		  "return 9014 5000 2;" /* it has replaced its return address */
		  "return 5020 1014 10;"
		  "jump 1020 1024 6;",
		  "1000 : 7\n"
		  "9000 1014 : 1\n"
		  "9000 9004 1014 : 2\n"
		  "5000 1014 : 10\n"
		  "jumps 1\n");
	expect_on(PUSHES, "track: a retpoline in the function in which the trace began",
		  "begin 1000 sp=8000;"
		  "call 1000 1010 1 -16;"
		  "return 1014 5000 2;"
		  "jump 5020 5024 10;",
		  "1000 : 1\n"
		  "1000 1004 : 2\n"
		  "5000 : 10\n"
		  "jumps 1\n");
	expect_on(PUSHES, "track: an address that is pushed to jump there",
		  "begin 1000 sp=8000;"
		  "call 1004 2000 1;"
		  "return 2010 1008 1;"
		  "return 1010 5000 1 -8;"
		  "jump 5020 5024 2;",
		  "1000 : 2\n"
		  "2000 1008 : 1\n"
		  "5000 : 2\n"
		  "jumps 1\n");
	expect("track: a return to a caller from before the trace",
	       "begin 1000 sp=8000;"
	       "call 1010 2000 1 -16;"
	       "return 2020 1014 2;"
	       "return 1020 3014 3 +32;"
	       "call 3020 4000 4;"
	       "return 4010 3024 5;"
	       "jump 3030 3034 6;",
	       "1000 : 4\n"
	       "2000 1014 : 2\n"
	       "3000 : 10\n"
	       "4000 3024 : 5\n"
	       "beyond 1 rooted 6\n");
	expect("track: a new thread begins right behind the switch",
	       "begin 1000 sp=8000;"
	       "call 1010 9000 1 -16;"
	       "jump 9010 9018 2 stack=40000 save=A;"
	       "return 9020 9022 3;"
	       "call 9030 5000 4;"
	       "jump 5010 5020 5;",
	       "1000 : 1\n"
	       "9000 1014 : 5\n"
	       "9000 : 4\n"
	       "5000 9034 : 5\n"
	       "tasks 2 switches 1\n");
}

/* Jumps out of functions */

static void test_longjmp(void)
{
	expect_on(LINKS, "track: longjmp",
		  "begin c000 sp=8800;"
		  "call c010 1000 1 -16;"
		  "call 1010 2000 1 -16 save=A;"
		  "call 2010 3000 2 -32;"
		  "call 3010 9000 3 -32;"
		  "return 9010 1080 4 stack=@A;"
		  "call 1090 4000 5;"
		  "return 4010 1094 6;"
		  "jump 10a0 10a4 7;",
		  "c000 : 1\n"
		  "1000 c014 : 13\n"
		  "2000 1014 c014 : 2\n"
		  "3000 2014 1014 c014 : 3\n"
		  "9000 3014 2014 1014 c014 : 4\n"
		  "4000 1094 c014 : 6\n"
		  "jumps 1\n");
	expect_on(LINKS, "track: longjmp by a jump",
		  "begin c000 sp=8800;"
		  "call c010 1000 1 -16;"
		  "call 1010 2000 1 -16 save=A;"
		  "call 2010 3000 2 -32;"
		  "call 3010 9000 3 -32;"
		  "jump 9010 1080 4 stack=@A;"
		  "call 1090 4000 5;"
		  "return 4010 1094 6;"
		  "jump 10a0 10a4 7;",
		  "c000 : 1\n"
		  "1000 c014 : 13\n"
		  "2000 1014 c014 : 2\n"
		  "3000 2014 1014 c014 : 3\n"
		  "9000 3014 2014 1014 c014 : 4\n"
		  "4000 1094 c014 : 6\n");
	expect_on(PUSHES, "track: longjmp",
		  "begin c000 sp=8800;"
		  "call c010 1000 1 -16;"
		  "call 1010 2000 1 -16 save=A;"
		  "call 2010 3000 2 -32;"
		  "call 3010 9000 3 -32;"
		  "jump 9010 1080 4 stack=@A+8;"
		  "call 1090 4000 5;"
		  "return 4010 1094 6;"
		  "jump 10a0 10a4 7;",
		  "c000 : 1\n"
		  "1000 c014 : 13\n"
		  "2000 1014 c014 : 2\n"
		  "3000 2014 1014 c014 : 3\n"
		  "9000 3014 2014 1014 c014 : 4\n"
		  "4000 1094 c014 : 6\n");
	expect_on(LINKS, "track: longjmp to the function in which the trace began",
		  "begin 1000 sp=8000;"
		  "call 1010 2000 1 -16;"
		  "return 2010 1080 2 ? sp=7ff0;"
		  "jump 1090 1094 3;",
		  "1000 : 4\n"
		  "2000 1014 : 2\n"
		  "jumps 1\n");
	expect("track: a jump out of functions, where sp is read later",
	       "begin 1000 sp=8000;"
	       "call 1010 2000 1 -16 save=A;"
	       "call 2010 3000 2 -32;"
	       "call 3010 9000 3 -32;"
	       "jump 9010 2080 4 ? +56;"
	       "jump 2090 20a0 4 sp=@A;"
	       "return 20b0 1014 5;"
	       "jump 1020 1024 6;",
	       "1000 : 7\n"
	       "2000 1014 : 7\n"
	       "3000 2014 1014 : 3\n"
	       "9000 3014 2014 1014 : 4\n"
	       "2000 3014 2014 1014 : 4\n");
	/* setjmp() is at a000, longjmp() at b000; the functions 1000 and 2000 wake each other. */
	expect_on(LINKS, "track: coroutines",
		  "begin 1000 sp=8000;"
		  "call 1010 4000 1 -16;"
		  "call 4010 a000 1 -16 save=A;"
		  "return a010 4014 1;"
		  "call 4020 b000 2;"
		  "return b010 2000 3 stack=40000;"
		  "call 2010 4000 4 -16;"
		  "call 4010 a000 1 -16 save=B;"
		  "return a010 4014 1;"
		  "call 4020 b000 5;"
		  "return b010 4014 3 stack=@A;"
		  "return 4030 1014 6 +16;"
		  "call 1020 4000 7;"
		  "call 4010 a000 1 -16 save=A;"
		  "return a010 4014 1;"
		  "call 4020 b000 8;"
		  "return b010 4014 3 stack=@B;"
		  "return 4030 2014 9 +16;"
		  "jump 2020 2024 10;",
		  "1000 : 8\n"
		  "4000 1014 : 9\n"
		  "a000 4014 1014 : 1\n"
		  "b000 4024 1014 : 3\n"
		  "2000 : 14\n"
		  "4000 2014 : 15\n"
		  "a000 4014 2014 : 1\n"
		  "b000 4024 2014 : 3\n"
		  "4000 1024 : 9\n"
		  "a000 4014 1024 : 1\n"
		  "b000 4024 1024 : 3\n"
		  "tasks 2 switches 3 jumps 2\n");
	expect_on(PUSHES, "track: coroutines",
		  "begin 1000 sp=8000;"
		  "call 1010 4000 1 -16;"
		  "call 4010 a000 1 -16;"
		  "return a010 4014 1 save=A;"
		  "call 4020 b000 2;"
		  "jump b010 2000 3 stack=40000;"
		  "call 2010 4000 4 -16;"
		  "call 4010 a000 1 -16;"
		  "return a010 4014 1 save=B;"
		  "call 4020 b000 5;"
		  "jump b010 4014 3 stack=@A;"
		  "return 4030 1014 6 +16;"
		  "call 1020 4000 7;"
		  "call 4010 a000 1 -16;"
		  "return a010 4014 1 save=A;"
		  "call 4020 b000 8;"
		  "jump b010 4014 3 stack=@B;"
		  "return 4030 2014 9 +16;"
		  "jump 2020 2024 10;",
		  "1000 : 8\n"
		  "4000 1014 : 9\n"
		  "a000 4014 1014 : 1\n"
		  "b000 4024 1014 : 3\n"
		  "2000 : 14\n"
		  "4000 2014 : 15\n"
		  "a000 4014 2014 : 1\n"
		  "b000 4024 2014 : 3\n"
		  "4000 1024 : 9\n"
		  "a000 4014 1024 : 1\n"
		  "b000 4024 1024 : 3\n"
		  "tasks 2 switches 3\n");
	expect_on(PUSHES, "track: longjmp, after a callee had a dynamic array",
		  "begin 1000 sp=8000;"
		  "jump 1004 1008 1 -16 save=J;"
		  "call 1010 2000 1;"
		  "call 2010 3000 2 -32 save=A;"
		  "jump 3010 3020 3 stack=7000;"
		  "return 3030 2014 4 ? sp=@A+8;"
		  "call 2020 9000 5;"
		  "jump 9010 1080 6 stack=@J;"
		  "jump 1090 1094 7;",
		  "1000 : 9\n"
		  "2000 1014 : 7\n"
		  "3000 2014 1014 : 7\n"
		  "9000 2024 1014 : 6\n");
	expect_on(PUSHES, "track: longjmp out of a function with a dynamic array",
		  "begin 1000 sp=8000;"
		  "jump 1004 1008 1 -16 save=J;"
		  "call 1010 2000 1;"
		  "jump 2010 2020 2 stack=7000;"
		  "call 2030 9000 3;"
		  "jump 9010 1080 4 stack=@J;"
		  "jump 1090 1094 5;",
		  "1000 : 7\n"
		  "2000 1014 : 5\n"
		  "9000 2034 1014 : 4\n"
		  /* It looks like a coroutine on the stack right below, so it is doubtful. */
		  "tasks 2 switches 1 doubtful 7 rooted 9\n");
	expect("track: a dynamic array",
	       "begin 1000 sp=8000;"
	       "call 1010 2000 1 -16;"
	       "jump 2010 2020 2 -32 stack=7000;"
	       "call 2030 3000 3;"
	       "return 3010 2034 4;"
	       "return 2040 1014 5 ? sp=7ff0;"
	       "call 1020 4000 6 !;"
	       "call 4010 5000 7 stack=40000 save=A;" /* a stack for interrupts */
	       "return 5010 4014 8;"
	       "jump 4020 4028 9 stack=@A;"
	       "return 4030 1024 10;"
	       "jump 1030 1034 11;",
	       "1000 : 18\n"
	       "2000 1014 : 10\n"
	       "3000 2034 1014 : 4\n"
	       "4000 1024 : 26\n"
	       "5000 4014 1024 : 8\n");
	expect("track: a function on a stack above, and the frame pointer has the old one",
	       "begin 1000 sp=8000;"
	       "call 1010 2000 1 -16;"
	       "call 2010 3000 2 stack=40000;"
	       "return 3010 2014 3;"
	       "return 2020 1014 4 ? sp=7ff0;"
	       "call 1020 4000 5 -16;"
	       "call 4010 5000 6 -16;"
	       "return 5010 6014 7 stack=20000 save=A;" /* another task */
	       "return 6020 4014 8 stack=@A +16;"
	       "return 4020 1024 9 +16;"
	       "jump 1030 1034 10;",
	       "1000 : 16\n"
	       "2000 1014 : 6\n"
	       "3000 2014 1014 : 3\n"
	       "4000 1024 : 15\n"
	       "5000 4014 1024 : 7\n"
	       "6000 : 8\n"
	       "tasks 2 switches 2\n");
	expect("track: a dynamic array that is freed before the return",
	       "begin 1000 sp=8000;"
	       "call 1010 2000 1 -16;"
	       "jump 2010 2020 2 -32 stack=7000 save=A;"
	       "call 2030 3000 3;"
	       "return 3010 2034 4;"
	       "jump 2038 2040 5 stack=@A;"
	       "return 2040 1014 5 +32;"
	       "jump 1030 1034 11;",
	       "1000 : 12\n"
	       "2000 1014 : 15\n"
	       "3000 2034 1014 : 4\n");
}

/* Switches: the scheduler is at 8000, the code that switches stacks at 9000 */

static void test_switches(void)
{
	expect("track: two threads, each of which goes on where it was left",
	       "begin 1000 sp=20000;"
	       "call 1010 8000 1 -16;"
	       "call 8010 9000 2 -16;"
	       "jump 9010 9018 3 -32 stack=40000 save=A;" /* pushes the callee-saved registers */
	       "return 9020 5000 4;"			  /* a thread begins */
	       "call 5010 8000 5 -16;"
	       "call 8010 9000 6 -16;"
	       "jump 9010 9018 7 -32 stack=@A save=B;"
	       "return 9020 8014 8 +32;"
	       "return 8020 1014 9 +16;"
	       "call 1020 8000 10;"
	       "call 8010 9000 11 -16;"
	       "jump 9010 9018 12 -32 stack=@B save=A;"
	       "return 9020 8014 13 +32;"
	       "return 8020 5014 14 +16;"
	       "jump 5020 5000 15;",
	       "1000 : 11\n"
	       "8000 1014 : 11\n"
	       "9000 8014 1014 : 15\n"
	       "5000 : 20\n"
	       "8000 5014 : 20\n"
	       "9000 8014 5014 : 20\n"
	       "8000 1024 : 11\n"
	       "9000 8014 1024 : 12\n"
	       "tasks 2 switches 3\n");
	expect_on(PUSHES, "track: a thread goes on, and calls a retpoline where it was left",
		  "begin 1000 sp=20000;"
		  "call 1010 9000 1 -16;"
		  "jump 9010 9018 2 stack=40000 save=A;"
		  "return 9020 5000 4;"
		  "call 5010 9000 8 -16;"
		  "jump 9010 9018 16 stack=@A;"
		  "return 9020 1014 32;"
		  "call 1020 a000 64;"
		  "return a010 b000 128 -8;" /* no new task */
		  "return b010 1024 256;"
		  "jump 1030 1034 512;",
		  "1000 : 577\n"
		  "9000 1014 : 38\n"
		  "5000 : 8\n"
		  "9000 5014 : 16\n"
		  "a000 1024 : 128\n"
		  "b000 1024 : 256\n"
		  "tasks 2 switches 2 jumps 1\n");
	expect("track: a switch that does not show where it left the stack",
	       "begin 1000 sp=8000;"
	       "jump 1010 1018 1 stack=40000 left=0;"
	       "return 1020 5000 2;"
	       "jump 5010 1018 4 stack=8000 left=7;" /* no stack pointer */
	       "jump 1020 1024 8;"
	       "jump 1028 1030 16 stack=3fff0;" /* below the other's stack */
	       "return 1030 6000 32;"
	       "jump 6010 6014 64;",
	       "1000 : 59\n"
	       "5000 : 4\n"
	       "6000 : 64\n"
	       "tasks 3 switches 3\n");
	expect("track: a thread begins by a jump to its function",
	       "begin 1000 sp=20000;"
	       "call 1010 9000 1 -16;"
	       "jump 9010 5000 3 stack=40000 save=A;"
	       "call 5010 9000 5 -16;"
	       "jump 9010 9018 7 stack=@A;"
	       "return 9020 1014 8;"
	       "jump 1020 1024 9;",
	       "1000 : 10\n"
	       "9000 1014 : 11\n"
	       "5000 : 5\n"
	       "9000 5014 : 7\n"
	       "tasks 2 switches 2\n");
	expect("track: a thread ended, and another begins on its stack",
	       "begin 1000 sp=20000;"
	       "call 1010 9000 1 -16;"
	       "jump 9010 9018 2 -32 stack=40000 save=A;"
	       "return 9020 5000 3;"
	       "call 5010 6000 4 -64;"
	       "call 6010 9000 5 -64;"
	       "jump 9010 9018 6 -32 stack=@A;"
	       "return 9020 1014 7 +32;"
	       "call 1020 9000 8;"
	       "jump 9010 9018 9 -32 stack=3ffe0 save=A;"
	       "return 9020 7000 10;"
	       "call 7010 6000 11 -16;"
	       "jump 6010 6020 12;",
	       "1000 : 9\n"
	       "9000 1014 : 12\n"
	       "5000 : 4\n"
	       "6000 5014 : 5\n"
	       "9000 6014 5014 : 6\n"
	       "9000 1024 : 9\n"
	       "9000 : 10\n"
	       "7000 : 11\n"
	       "6000 7014 : 12\n"
	       "tasks 3 switches 3\n");
	expect_on(LINKS, "track: a thread begins on the stack of another, where that called",
		  "begin 1000 sp=20000;"
		  "call 1010 9000 1 -16;"
		  "jump 9010 9018 2 -32 stack=40000 save=A;"
		  "return 9020 5000 3;"
		  "jump 5004 5008 1 save=B;"
		  "call 5010 9000 4;"
		  "jump 9010 9018 5 -32 stack=@A;"
		  "return 9020 1014 6 +32;"
		  "call 1020 9000 7;"
		  "jump 9010 9018 8 -32 stack=@B;"
		  "return 9020 7000 9 sp=@B;"
		  "jump 7010 7014 10;",
		  "1000 : 8\n"
		  "9000 1014 : 11\n"
		  "5000 : 5\n"
		  "9000 5014 : 14\n"
		  "9000 1024 : 8\n"
		  "7000 : 10\n"
		  "tasks 3 switches 3\n");
	expect("track: a thread begins where a caller of the switch goes on",
	       "begin 1000 sp=20000;"
	       "call 1010 8000 1 -16;"
	       "call 8010 9000 2 -16;"
	       "jump 9010 9018 3 stack=40000;"
	       "return 9020 1014 4;"
	       "jump 1020 1024 5;",
	       "1000 : 6\n"
	       "8000 1014 : 2\n"
	       "9000 8014 1014 : 7\n"
	       "tasks 2 switches 1\n");
	expect("track: small stacks side by side",
	       "begin 1000 sp=20000;"
	       "call 1010 9000 1 -16;"
	       "jump 9010 9018 2 stack=20800 save=A;"
	       "return 9020 5000 3;"
	       "call 5010 9000 4 -1000;"
	       "jump 9010 9018 5 stack=20400 save=B;"
	       "return 9020 6000 6;"
	       "call 6010 9000 7 -1000;"
	       "jump 9010 9018 8 stack=@A save=C;"
	       "return 9020 1014 9;"
	       "call 1020 9000 10;"
	       "jump 9010 9018 11 stack=@B save=A;"
	       "return 9020 5014 12;"
	       "call 5020 9000 13;"
	       "jump 9010 9018 14 stack=@C save=B;"
	       "return 9020 6014 15;"
	       "jump 6020 6024 16;",
	       "1000 : 11\n"
	       "9000 1014 : 14\n"
	       "5000 : 17\n"
	       "9000 5014 : 17\n"
	       "9000 : 6\n"
	       "6000 : 23\n"
	       "9000 6014 : 23\n"
	       "9000 1024 : 11\n"
	       "9000 5024 : 14\n"
	       "tasks 3 switches 5\n");
	expect("track: a stack for interrupts is no task",
	       "begin 1000 sp=8000;"
	       "call 1010 2000 1 -16;"
	       "call 2010 7000 2 -16 stack=40000 save=A;"
	       "call 7010 7800 3 -16;"
	       "return 7810 7014 4;"
	       "return 7020 2014 5 +16;"
	       "jump 2020 2030 6 stack=@A;"
	       "return 2030 1014 7 +16;"
	       "jump 1020 1024 8;",
	       "1000 : 9\n"
	       "2000 1014 : 15\n"
	       "7000 2014 1014 : 8\n"
	       "7000 7014 2014 1014 : 4\n");
	expect("track: a task switches from a stack for interrupts, and goes on on its own",
	       "begin 1000 sp=20000;"
	       "call 1010 2000 1 -16;"
	       "jump 2010 2018 2 stack=40000 save=A;"
	       "jump 2020 2028 4 stack=60000;"
	       "return 2030 5000 8;"
	       "jump 5010 2018 16 stack=@A;"
	       "return 2020 1014 32;"
	       "jump 1020 1024 64;",
	       "1000 : 65\n"
	       "2000 1014 : 46\n"
	       "5000 : 16\n"
	       "tasks 2 switches 2\n");
	expect("track: a stack that is left with calls was a task's",
	       "begin 1000 sp=8000;"
	       "call 1010 2000 1 -16;"
	       "call 2010 7000 2 -16 stack=40000 save=A;"
	       "call 7010 9000 3 -16;"
	       "jump 9010 2018 4 stack=@A save=B;"
	       "jump 2020 2030 5;"
	       "call 2030 9000 6;"
	       "jump 9010 9018 7 stack=@B;"
	       "return 9020 7014 8;"
	       "jump 7020 7030 9;",
	       "1000 : 1\n"
	       "2000 1014 : 13\n"
	       "7000 2014 1014 : 3\n"
	       "9000 7014 2014 1014 : 4\n"
	       "7000 2014 : 9\n"
	       "9000 7014 2014 : 8\n"
	       "9000 2034 1014 : 7\n"
	       "tasks 2 switches 2 doubtful 7 rooted 38\n");
	expect("track: a task goes on on another cpu",
	       "begin 1000 sp=20000;"
	       "call 1010 9000 1 -16;"
	       "jump 9010 9018 2 stack=40000 save=A;"
	       "return 9020 5000 3;"
	       "cpu 1;"
	       "begin 7000 sp=60000;"
	       "call 7010 9000 4 -16;"
	       "jump 9010 9018 5 stack=@A;"
	       "return 9020 1014 6;"
	       "jump 1020 1024 7;"
	       "cpu 0;"
	       "jump 5010 5014 8;",
	       "1000 : 8\n"
	       "9000 1014 : 11\n"
	       "5000 : 8\n"
	       "7000 : 4\n"
	       "9000 7014 : 5\n"
	       "tasks 3 switches 2\n");
	expect("track: firmware does not wait for the kernel that it starts",
	       "begin f000 sp=8000;"
	       "call f010 f100 1 -16;"
	       "call f110 1000 2 -16;"
	       "call 1010 f200 3 -16;" /* a service of the firmware */
	       "return f210 1014 4;"
	       "jump 1020 1024 5;",
	       "f000 : 1\n"
	       "f100 f014 : 2\n"
	       "1000 : 8\n"
	       "f200 1014 : 4\n"
	       "tasks 2\n");
}

int main(void)
{
	test_calls();
	test_tricks();
	test_longjmp();
	test_switches();
	return test_result();
}

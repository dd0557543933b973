// SPDX-License-Identifier: GPL-2.0-or-later
/* pass/calls_check: samples inside a trace. */
#include "trace_text.h"

static void test_checks(void)
{
	expect("check: the same callers",
	       "begin 1000 sp=8000;"
	       "call 1010 2000 1 -16;"
	       "call 2010 3000 2 -16;"
	       "check 3008 2014 1014;"
	       "return 3010 2014 3;"
	       "check 2018 1014;",
	       "1000 : 1\n"
	       "2000 1014 : 2\n"
	       "3000 2014 1014 : 3\n"
	       "equal 2\n");
	expect("check: a call is missing in the trace",
	       "begin 1000 sp=8000;"
	       "call 1010 2000 1 -16;"
	       "jump 2010 3000 2 -16;"
	       "check 3008 2014 1014;",
	       "1000 : 1\n"
	       "2000 1014 : 2\n"
	       "different 1\n");
	expect("check: a caller too many",
	       "begin 1000 sp=8000;"
	       "call 1010 2000 1 -16;"
	       "call 2010 3000 2 -16;"
	       "check 3008 2014;",
	       "1000 : 1\n"
	       "2000 1014 : 2\n"
	       "different 1\n");
	expect("check: an address in the right function is not the right address",
	       "begin 1000 sp=8000;"
	       "call 1010 2000 1 -16;"
	       "check 2008 1024;",
	       "1000 : 1\n"
	       "different 1\n");
	expect("check: not all callers were unwound",
	       "begin 1000 sp=8000;"
	       "call 1010 2000 1 -16;"
	       "call 2010 3000 2 -16;"
	       "check 3008 2014 ...;"
	       "check 3008 2018 ...;"
	       "check 3008 2014 1014 ...;",
	       "1000 : 1\n"
	       "2000 1014 : 2\n"
	       "equal 1 partial 1 different 1\n");
	expect("check: the trace does not know all callers",
	       "begin 1000 sp=8000;"
	       "call 1010 2000 1 -16;"
	       "return 2010 1014 2;"
	       "return 1010 4014 2 +32;"
	       "call 4020 5000 3;"
	       "check 5008 4024 6014;"
	       "check 5008 4028 6014;",
	       "1000 : 3\n"
	       "2000 1014 : 2\n"
	       "4000 : 3\n"
	       "beyond 1 rooted 5 partial 1 different 1\n");
	expect("check: the kernel's part, up to where the program called",
	       "begin u1000 sp=8000;"
	       "call u1010 u2000 1 -16;"
	       "syscall u2008 8000 2 sp=40000;"
	       "call 8010 9000 3 -16;"
	       "check 9008 8014 u200c;"
	       "check 9008 8014 u2008;" /* the kernel repeats the call, or skips an instruction */
	       "check 9008 8014 u2010;"
	       "check 9008 8014 u2014;"
	       "check 9008 8014 u2004;"
	       "check 9008 8014;",
	       "u1000 : 1\n"
	       "u2000 u1014 : 2\n"
	       "8000 u200c u1014 : 3\n"
	       "traps 1 leaves 0 equal 4 different 2\n");
	expect("check: at the entry of an exception, the unwinder has only the link register",
	       "begin 1000 sp=8000;"
	       "call 1010 2000 1 -16;"
	       "call 2010 3000 2 -16;"
	       "enter 3018 8000 4 sp=7f00;"
	       "check 8004 2014 1014;"
	       "check 8004 300c 2014 1014;" /* it had returned there */
	       "check 8004 4014 ...;"
	       "check 8004 2014 1018;"
	       "check 8004 300c 2014 1018;"
	       "check 8004 4014 2014 1014;"
	       "call 8010 9000 8;"
	       "check 9004 8014 2014 1014;"
	       "check 9004 2014 1014;",
	       "1000 : 1\n"
	       "2000 1014 : 2\n"
	       "3000 2014 1014 : 4\n"
	       "8000 3019 2014 1014 : 8\n"
	       "traps 1 leaves 0 partial 3 different 5\n");
	expect("check: the entry of an exception in a program",
	       "begin u1000 sp=8000;"
	       "call u1010 u2000 1 -16;"
	       "enter u2008 8000 2 sp=40000;"
	       "check 8004 8444 ...;"
	       "check 8004 8444;"
	       "check 8004 u1014;",
	       "u1000 : 1\n"
	       "u2000 u1014 : 2\n"
	       "traps 1 leaves 0 partial 1 different 2\n");
	expect("check: an exception at a call or a return, which the trace does not know to be "
	       "made",
	       "begin 1000 sp=8000;"
	       "call 1010 2000 1 -16;"
	       "call 2010 3000 2 -16;"
	       "enter 3018 8000 4 next=0 after=301c sp=7f00;"
	       "call 8010 9000 8;"
	       "check 9004 8014 3018 2014 1014;"
	       "check 9004 8014 4000 301c 2014 1014;"
	       "check 9004 8014 2014 1014;"
	       "check 9004 8014 4000 301c 2018 1014;"
	       "check 9004 8014 4000 501c 2014 1014;"
	       "check 9004 8014 4000 2014 1014;"
	       "check 9004 8014 2014 1018;"
	       "check 9004 8018 2014 1014;",
	       "1000 : 1\n"
	       "2000 1014 : 2\n"
	       "3000 2014 1014 : 4\n"
	       "8000 3019 2014 1014 : 8\n"
	       "traps 1 leaves 0 equal 1 partial 2 different 5\n");
	expect("check: a stale return address before the root of the first task, and of no other",
	       "begin 1000 sp=8000;"
	       "call 1010 2000 1 -16;"
	       "check 2008 1014 5014;"
	       "check 2008 1014 5014 6014;"
	       "check 2008 1018 5014;"
	       "call 2010 9000 2 -16;"
	       "jump 9010 9018 4 stack=40000;"
	       "return 9020 5000 8;"
	       "call 5010 6000 16;"
	       "check 6008 5014 7014;"
	       "check 6008 5014 | 7000;" /* the kernel put it there */
	       "check 6008 5014 u7014;", /* a program that has not run yet */
	       "1000 : 1\n"
	       "2000 1014 : 2\n"
	       "9000 2014 1014 : 12\n"
	       "5000 : 16\n"
	       "tasks 2 switches 1 equal 2 partial 1 different 3\n");
	expect("check: firmware starts a kernel with a stale return address",
	       "begin f000 sp=8000;"
	       "jump f010 1000 1;"
	       "call 1010 2000 2;"
	       "check 2008 1014 5014;",
	       "f000 : 1\n"
	       "1000 : 2\n"
	       "tasks 2 partial 1\n");
	expect("check: a retpoline has put its target on the stack",
	       "begin 1000 sp=8000;"
	       "call 1010 9000 1 -16;"
	       "call 9000 9010 2;"
	       "check 9014 | 5000 1014;"
	       "check 9014 | 5004 1014;"
	       "check 9014 5000 1014;"
	       "check 9014 9004 1014;",
	       "1000 : 1\n"
	       "9000 1014 : 2\n"
	       "equal 2 different 2\n");
	expect("check: other callers than the interrupted code's",
	       "begin 1000 sp=8000;"
	       "call 1010 2000 1 -16;"
	       "enter 2008 8000 2 -16 sp=7f00;"
	       "check 8004 1014;" /* the link register has the interrupted function's caller */
	       "check 8004 5014 6014;"
	       "check 8004 1014 6014 7014;",
	       "1000 : 1\n"
	       "2000 1014 : 2\n"
	       "traps 1 leaves 0 partial 1 different 2\n");
	expect("check: firmware cannot be unwound",
	       "begin f000 sp=8000;"
	       "call f010 f100 1 -16;"
	       "check f104;"
	       "cpu 3;"
	       "check 1000;",
	       "f000 : 1\n");
}

int main(void)
{
	test_checks();
	return test_result();
}

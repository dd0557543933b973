// SPDX-License-Identifier: GPL-2.0-or-later
/* pass/track and the guests of a hypervisor. */
#include "trace_text.h"

/* Guests of a hypervisor, with stacks at the same address */

static void test_guests(void)
{
	expect("guest: two of them, which leave by an interrupt and by a call",
	       "begin 1000 sp=8000;"
	       "call 1010 2000 1 -16;"
	       "guest 1;"
	       "leave 2010 5000 2 stack=20000 save=H;"
	       "call 5010 6000 3 -16;"
	       "guest 0;"
	       "enter 6008 2014 4 sp=@H save=A;"
	       "call 2020 3000 5;"
	       "return 3010 2024 6;"
	       "guest 2;"
	       "leave 2010 5000 7 stack=20000;"
	       "call 5010 7000 8 -16;"
	       "guest 0;"
	       "syscall 7008 2014 9 sp=@H save=B;"
	       "guest 1;"
	       "leave 2010 6008 10 stack=@A;"
	       "return 6010 5014 11 +16;"
	       "guest 0;"
	       "enter 5018 2014 12 sp=@H;"
	       "guest 2;"
	       "leave 2010 700c 13 stack=@B;"
	       "return 7010 5014 14 +16;"
	       "guest 0;"
	       "enter 5018 2014 15 sp=@H;"
	       "return 2030 1014 16 +16;"
	       "jump 1020 1024 17;",
	       "1000 : 18\n"
	       "2000 1014 : 53\n"
	       "5000 : 38\n"
	       "6000 5014 : 15\n"
	       "3000 2024 1014 : 6\n"
	       "7000 5014 : 23\n"
	       "tasks 3 switches 8 traps 4 leaves-found 2\n");
	expect("guest: an interrupt in it, in which it leaves",
	       "begin 1000 sp=8000;"
	       "guest 1;"
	       "leave 1010 5000 1 stack=20000 save=H;"
	       "call 5010 6000 2 -16;"
	       "enter 6008 9000 3 sp=1ff00 save=A;"
	       "call 9010 a000 4 -16;"
	       "guest 0;"
	       "enter a008 1014 5 sp=@H save=B;"
	       "guest 1;"
	       "leave 1010 a008 6 stack=@B;"
	       "return a010 9014 7 +16;"
	       "leave 9020 6008 8 sp=@A;"
	       "return 6010 5014 9 +16;"
	       "jump 5020 5024 10;",
	       "1000 : 7\n"
	       "5000 : 12\n"
	       "6000 5014 : 12\n"
	       "9000 6009 5014 : 12\n"
	       "a000 9014 6009 5014 : 12\n"
	       "tasks 2 switches 3 traps 2 leaves 3 leaves-found 2\n");
	expect_on(
		PUSHES,
		"guest: it leaves at a call, a return and a fault, where no stack pointer is known",
		"begin 1000 sp=8000;"
		"guest 1;"
		"leave 1010 5000 1 stack=20000 save=H;"
		"guest 0;"
		"enter 5010 1014 2 next=0 after=5014 ? left=0 sp=@H;"
		"guest 1;"
		"leave 1010 6000 3 stack=1fff8;"
		"guest 0;"
		"enter 6010 1014 4 next=0 ? left=0 sp=@H;"
		"guest 1;"
		"leave 1010 5014 5 stack=20000;"
		"guest 0;"
		"enter 5018 1014 6 next=0 ? left=0 sp=@H;"
		"guest 1;"
		"leave 1010 5018 7 stack=1ffe8;"
		"call 5020 6000 8;"
		"jump 6010 6014 9;",
		"1000 : 16\n"
		"5000 : 16\n"
		"6000 5014 : 4\n"
		"6000 5024 : 9\n"
		"tasks 2 switches 7 traps 3 leaves 4 leaves-found 3\n");
	expect("guest: the trace begins in it",
	       "guest 1;"
	       "begin 5000 sp=20000;"
	       "call 5010 6000 1 -16;"
	       "guest 0;"
	       "enter 6008 1014 2 sp=8000 save=A;"
	       "call 1020 2000 3 -16;"
	       "guest 1;"
	       "leave 2010 6008 4 stack=@A save=H;"
	       "guest 0;"
	       "enter 600c 2014 5 sp=@H;"
	       "return 2020 1024 6 +16;"
	       "jump 1030 1034 7;",
	       "5000 : 1\n"
	       "6000 5014 : 7\n"
	       "1000 : 10\n"
	       "2000 1024 : 10\n"
	       "tasks 2 switches 3 traps 2 leaves 1\n");
	expect("guest: its kernel returns from an exception that the trace did not see",
	       "begin 1000 sp=8000;"
	       "guest 1;"
	       "leave 1010 5000 1 stack=20000 save=H;"
	       "call 5010 6000 2 -16;"
	       "guest 0;"
	       "enter 6008 1014 3 sp=@H save=A;"
	       "guest 1;"
	       "leave 1010 9000 4 stack=1ff00;"
	       "leave 9020 6008 5 sp=@A;"
	       "return 6010 5014 6 +16;"
	       "jump 5020 5024 7;",
	       "1000 : 5\n"
	       "5000 : 9\n"
	       "6000 5014 : 9\n"
	       "9000 5014 : 5\n"
	       "tasks 2 switches 3 traps 1 leaves 3 leaves-found 1 doubtful 11 rooted 17\n");
}

int main(void)
{
	test_guests();
	return test_result();
}

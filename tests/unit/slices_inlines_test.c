// SPDX-License-Identifier: GPL-2.0-or-later
/* pass/calls_inlines: inlined functions as slices. */
#include "slices_text.h"

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

int main(void)
{
	test_inlines();
	return test_result();
}

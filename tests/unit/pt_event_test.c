// SPDX-License-Identifier: GPL-2.0-or-later
/* pt/flow: interrupts, the end of tracing, notes, transactions, modes and overflows. */
#include "fuzz/pt_code.h"
#include "pt_text.h"

static const struct pt_bytes code = { pt_code, sizeof(pt_code) };

static const uint8_t write_code[] = {
	0x90,			      /* 00: nop */
	0xf3, 0x48, 0x0f, 0xae, 0xe0, /* 01: ptwrite %rax */
	0x90,			      /* 06: nop */
	0xf3, 0x48, 0x0f, 0xae, 0xe0, /* 07: ptwrite %rax */
	0xf3, 0x48, 0x0f, 0xae, 0xe0, /* 0c: ptwrite %rax */
	0x0f, 0x05,		      /* 11: syscall */
	0xeb, 0xeb,		      /* 13: jmp 0 */
};
static const struct pt_bytes writes = { write_code, sizeof(write_code) };

static void test_interrupts(void)
{
	pt_expect("an interrupt inside a block", code,
		  "psb:0 tnt:1 fup:15 tip:1c tip:15 tnt:0 pgd0",
		  "on ->0 0; jump 1>10 2; call 10>15 1; int 15>1c 0; leave 1c>15 1; end "
		  "18>- 3; +0");
	pt_expect("an interrupt before the first instruction", code,
		  "psb:0 fup:0 tip:1c tip:0 tnt:10 pgd0",
		  "on ->0 0; int 0>1c 0; leave 1c>0 1; jump 1>10 2; call 10>15 1; end "
		  "18>- 3; +0");
	pt_expect("a call that is interrupted returns", code,
		  "psb:5 fup:21 tip:1c tip:21 tnt:11 fup:a pgd0",
		  "on ->5 0; call 5>20 1; int 21>1c 1; leave 1c>21 1; jump 21>25 1; ret "
		  "26>a 2; pause a>- 0; +0");
}

static void test_ends(void)
{
	pt_expect("tracing ends inside a block", code, "psb:0 tnt:1 fup:15 pgd0",
		  "on ->0 0; jump 1>10 2; call 10>15 1; pause 15>- 0; +0");
	pt_expect("and goes on", code, "psb:0 tnt:1 fup:15 pgd0 pge:16 tnt:0 pgd0",
		  "on ->0 0; jump 1>10 2; call 10>15 1; pause 15>- 0; begin ->16 0; end "
		  "18>- 2; +0");
	pt_expect("a system call out of the traced code", code, "psb:18 pgd0 pge:1c pgd0",
		  "on ->18 0; end 18>- 1; begin ->1c 0; end 1c>- 1; +0");
	pt_expect("a conditional branch out of it", code, "psb:35 pgd:20 pge:37 fup:3d pgd0",
		  "on ->35 0; end 35>- 1; begin ->37 0; pause 3d>- 1; +0");
	pt_expect("a direct jump out of it", code, "psb:2d pgd:30 pge:35 pgd:20",
		  "on ->2d 0; end 2d>- 1; begin ->35 0; end 35>- 1; +0");
	pt_expect("a call out of it", code, "psb:5 pgd:20 pge:a pgd:0",
		  "on ->5 0; end 5>- 1; begin ->a 0; end a>- 1; +0");
	pt_expect("two calls, the second one out of it", code, "psb:2d pgd:20 pge:35 pgd:20",
		  "on ->2d 0; jump 2d>30 1; end 30>- 1; begin ->35 0; end 35>- 1; +0");
	pt_expect("tracing stops", code, "psb:18 pgd0 stop psb pge:1c pgd0",
		  "on ->18 0; end 18>- 1; begin ->1c 0; end 1c>- 1; +0");
}

static void test_notes(void)
{
	pt_expect("a value with its place", code, "psb:28 ptwip:1234 fup:28 tnt:1 fup:25 pgd0",
		  "on ->28 0; ptwrite 28=1234 0; jump 2d>30 2; call 30>20 1; jump 21>25 2; "
		  "pause 25>- 0; +0");
	pt_expect("and without", code, "psb:28 ptw:1234 tnt:1 fup:25 pgd0",
		  "on ->28 0; ptwrite -=1234 0; jump 2d>30 2; call 30>20 1; jump 21>25 2; "
		  "pause 25>- 0; +0");
	pt_expect("inside a block, whose instructions it does not divide", writes,
		  "psb:0 ptwip:8 fup:1 ptwip:9 fup:7 ptw:a pgd0",
		  "on ->0 0; ptwrite 1=8 1; ptwrite 7=9 3; ptwrite -=a 3; end 11>- 6; +0");
	pt_expect("after a jump on the way to it", writes, "psb:13 ptwip:5 fup:1 fup:6 pgd0",
		  "on ->13 0; jump 13>0 1; ptwrite 1=5 1; pause 6>- 2; +0");
	pt_expect("while tracing is off", code, "psb:18 pgd0 ptwip:7 fup:28 pge:1c pgd0",
		  "on ->18 0; end 18>- 1; ptwrite 28=7 0; begin ->1c 0; end 1c>- 1; +0");
	pt_expect("the largest value", code, "psb:28 ptw:ffffffffffffffff fup:2d pgd0",
		  "on ->28 0; ptwrite -=ffffffffffffffff 0; pause 2d>- 1; +0");
}

static void test_power(void)
{
	pt_expect("the clock stops", code, "psb:37 exstopip fup:40 fup:40 pgd0",
		  "on ->37 0; exstop 40=0 2; pause 40>- 2; +0");
	pt_expect("mwait", code, "psb:37 mwait exstopip fup:40 pwre pwrx fup:43 pgd0",
		  "on ->37 0; mwait 40=4030201 2; exstop 40=0 2; pwre -=2200 2; pwrx -=21 2; "
		  "pause 43>- 3; +0");
	pt_expect("mwait, and the clock stops elsewhere", code,
		  "psb:37 mwait exstop fup:40 pwre pwrx fup:43 pgd0",
		  "on ->37 0; mwait 40=4030201 2; exstop -=0 2; pwre -=2200 2; pwrx -=21 2; "
		  "pause 43>- 3; +0");
	pt_expect("a C-state before the address of mwait", code,
		  "psb:37 mwait pwre exstopip fup:40 fup:43 pgd0",
		  "on ->37 0; mwait 40=4030201 2; pwre -=2200 2; exstop 40=0 2; pause 43>- 3; +0");
	pt_expect("a C-state while tracing is off", code,
		  "psb:18 pgd0 pwre exstop pwrx pge:1c pgd0",
		  "on ->18 0; end 18>- 1; pwre -=2200 0; exstop -=0 0; pwrx -=21 0; begin ->1c 0; "
		  "end 1c>- 1; +0");
	pt_expect("a frequency, once", code, "psb:37 cbr:20 cbr:20 fup:3d pgd0 cbr:8 cbr:20",
		  "on ->37 0; cbr -=14 0; pause 3d>- 1; cbr -=8 0; cbr -=14 0; +0");
}

/* The value is known, even if the packet with its address is missing. */
static void test_notes_without_address(void)
{
	pt_expect("a PSB packet in place of the address", code,
		  "psb:37 ptwip:1 psb:3d ovf fup:40 fup:40 pgd0",
		  "on ->37 0; ptwrite -=1 0; gap 3d at 64 overflow 1; begin ->40 0; pause 40>- 0; "
		  "+0");
	pt_expect("an overflow", code, "psb:37 ptwip:1 ovf fup:3d fup:40 pgd0",
		  "on ->37 0; ptwrite -=1 0; gap 37 at 37 overflow 0; begin ->3d 0; pause 40>- 1; "
		  "+0");
	pt_expect(
		"an address that the code does not reach", code, "psb:16 ptwip:1 fup:1",
		"on ->16 0; ptwrite -=1 0; gap 16 at 37 a FUP packet with an address that the code "
		"does not reach 0; +0");
	pt_expect("the end", code, "psb:18 pgd0 ptwip:1",
		  "on ->18 0; end 18>- 1; ptwrite -=1 0; +0");
	pt_expect("more than wait", code,
		  "psb:18 pgd0 ptwip:1 ptwip:2 ptwip:3 ptwip:4 ptwip:5 ptwip:6 ptwip:7 ptwip:8 "
		  "ptwip:9 pge:1c ovf",
		  "on ->18 0; end 18>- 1; ptwrite -=1 0; ptwrite -=2 0; ptwrite -=3 0; "
		  "ptwrite -=4 0; ptwrite -=5 0; ptwrite -=6 0; ptwrite -=7 0; ptwrite -=8 0; "
		  "ptwrite -=9 0; begin ->1c 0; gap 1c at 127 overflow 0; +0");
}

static void test_transactions(void)
{
	pt_expect("a transaction begins and is committed", code,
		  "psb:37 tsx:begin fup:37 tsx:commit fup:3d fup:40 pgd0",
		  "on ->37 0; pause 40>- 2; +0");
	pt_expect("a transaction is aborted", code,
		  "psb:37 tsx:begin fup:37 tsx:abort fup:3d tip:40 fup:43 pgd0",
		  "on ->37 0; int 3d>40 1; pause 43>- 1; +0");
	pt_expect("a transaction ends while tracing is off", code,
		  "psb:18 pgd0 tsx:commit pge:0 fup:1 tip:1c pgd0",
		  "on ->18 0; end 18>- 1; begin ->0 0; int 1>1c 1; end 1c>- 1; +0");
}

static void test_modes(void)
{
	/* dec %eax; iret, or iretq */
	pt_expect("32-bit code", code, "psb:a mode:32 tip:1c mode:64 tip:27 pgd0",
		  "on ->a 0; any a>1c 1; leave 1d>27 2; end 27>- 1; +0");
	pt_expect("from the begin on", code, "PSB mode:32 fup:1c PSBEND fup:1d pgd0",
		  "on ->1c 0; pause 1d>- 1; +0");
	pt_expect("addresses wrap around", code, "psb:a mode:32 tip:5a tnt:1 tip:0",
		  "on ->a 0; any a>5a 1; jump 5a>@80401060 1; gap @80401060 at 39 code not found, "
		  "or not a valid instruction 0; +0");
}

static void test_overflows(void)
{
	pt_expect("an overflow, and tracing is on", code, "psb:0 ovf fup:1 tnt:1 fup:10 pgd0",
		  "on ->0 0; gap 0 at 27 overflow 0; begin ->1 0; jump 1>10 1; pause 10>-"
		  " 0; +0");
	pt_expect("or off", code, "psb:0 ovf pge:1 tnt:1 fup:10 pgd0",
		  "on ->0 0; gap 0 at 27 overflow 0; begin ->1 0; jump 1>10 1; pause 10>-"
		  " 0; +0");
	pt_expect("or it goes on with a PSB packet", code, "psb:0 ovf psb:1 tnt:1 fup:10 pgd0",
		  "on ->0 0; gap 0 at 27 overflow 0; begin ->1 0; jump 1>10 1; pause 10>-"
		  " 0; +0");
	pt_expect("an overflow inside a PSB packet", code, "PSB ovf fup:1 tnt:1 fup:10 pgd0",
		  "gap - at 16 overflow 0; begin ->1 0; jump 1>10 1; pause 10>- 0; +0");
	pt_expect("an overflow forgets calls", code, "psb:5 ovf fup:26 tip:a fup:a pgd0",
		  "on ->5 0; gap 5 at 27 overflow 0; begin ->26 0; ret 26>a 1; pause a>- "
		  "0; +0");
}

/* What processors do although the specification says otherwise. The gap keeps libipt 2.0 out, which fails here. */
static void test_errata(void)
{
	pt_expect("mwait while tracing is off has no address", code,
		  "psb:18 pgd0 mwait pwre exstopip pwrx pge:0 fup:1 pgd0 ovf",
		  "on ->18 0; end 18>- 1; mwait -=4030201 0; pwre -=2200 0; exstop -=0 0; "
		  "pwrx -=21 0; begin ->0 0; pause 1>- 1; gap - at 70 overflow 0; +0");
	pt_expect("no address after an overflow: goes on at a target", code,
		  "psb:0 ovf tsc:9 mode:64 tip:1 tnt:1 fup:10 pgd0",
		  "on ->0 0; gap 0 at 27 overflow 0; begin ->1 0; jump 1>10 1; pause 10>- 0; +0");
	pt_expect("but not after conditions", code, "psb:0 ovf tnt:1 tip:1 tnt:1 psb:16 tnt:0 pgd0",
		  "on ->0 0; gap 0 at 27 overflow 0; gap - at 29 a branch packet does not match "
		  "the tracing state (on or off) 0; begin ->16 0; end 18>- 2; +0");
	pt_expect("an address after an overflow, but tracing is off", code,
		  "psb:0 ovf fup:5 pge:1 tnt:1 fup:10 pgd0",
		  "on ->0 0; gap 0 at 27 overflow 0; begin ->1 0; jump 1>10 1; pause 10>- 0; +0");
	pt_expect("likewise, with a PSB packet", code,
		  "psb:0 ovf fup:5 psb pge:1 tnt:1 fup:10 pgd0",
		  "on ->0 0; gap 0 at 27 overflow 0; begin ->1 0; jump 1>10 1; pause 10>- 0; +0");
	pt_expect("but not if code ran", code, "psb:0 ovf fup:1 tnt:1 pge:1 psb:16 tnt:0 pgd0",
		  "on ->0 0; gap 0 at 27 overflow 0; begin ->1 0; jump 1>10 1; gap 10 at 39 a "
		  "branch packet does not match the tracing state (on or off) 0; begin ->16 0; "
		  "end 18>- 2; +0");
	pt_expect("a clock packet with bits that are reserved", code,
		  "psb:0 hex:02730101010100 tnt:1 fup:10 pgd0 ovf",
		  "on ->0 0; jump 1>10 2; pause 10>- 0; gap - at 45 overflow 0; +0");
	pt_expect("triggers", code,
		  "psb:0 hex:d90001 hex:d9c0010500 fup:1 tnt:1 hex:d98001 fup:10 fup:10 pgd0 ovf",
		  "on ->0 0; jump 1>10 2; pause 10>- 0; gap - at 67 overflow 0; +0");
	pt_expect("a trigger that is cut off", code, "psb:0 tnt:1 hex:d9400105",
		  "on ->0 0; jump 1>10 2; gap 10 at 28 cut off packet 0; +0");
}

static void test_psb(void)
{
	pt_expect("a PSB packet inside a block", code, "psb:0 tnt:1 psb:16 tnt:0 pgd0",
		  "on ->0 0; jump 1>10 2; call 10>15 1; end 18>- 3; +0");
	pt_expect("forgets calls", code, "psb:5 psb:20 tnt:1 tip:a fup:a pgd0",
		  "on ->5 0; call 5>20 1; jump 21>25 2; ret 26>a 2; pause a>- 0; +0");
	pt_expect("a trace begins at its PSB packet, and again", code,
		  "psb:0 pge:0 tnt:1 fup:10 pgd0", "on ->0 0; jump 1>10 2; pause 10>- 0; +0");
}

int main(void)
{
	if (!pt_can_test())
		return 0;
	test_interrupts();
	test_ends();
	test_notes();
	test_power();
	test_notes_without_address();
	test_transactions();
	test_modes();
	test_overflows();
	test_errata();
	test_psb();
	return test_result();
}

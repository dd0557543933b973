// SPDX-License-Identifier: GPL-2.0-or-later
/* pt/flow: packets that libipt 2.0 does not know, and guests, whose code is not this machine's. */
#include "fuzz/pt_code.h"
#include "pt_text.h"

static const struct pt_bytes code = { pt_code, sizeof(pt_code) };

static void expect(const char *name, const char *trace, const char *expected)
{
	pt_expect_alone(name, code, trace, expected);
}

static void test_guests(void)
{
	expect("a guest runs",
	       "psb:67 pip:1 tip:20 tnt:1 tip:5 tnt:110 tip:@1234 pip:0 tip:0 tnt:1 fup:10 pgd0",
	       "on ->67 0; end 67>- 1; begin ->0 0; jump 1>10 2; pause 10>- 0; +0");
	expect("until an interrupt",
	       "psb:67 pip:1 tip:20 fup:25 pip:0 mode:64 tip:0 tnt:1 fup:10 pgd0",
	       "on ->67 0; end 67>- 1; begin ->0 0; jump 1>10 2; pause 10>- 0; +0");
	expect("its own interrupts and page tables do not matter",
	       "psb:67 pip:1 tip:20 fup:25 tip:a pip:1 tip:c fup:e pip:1 tip:0 tip:@77 pip:0 tip:0 "
	       "fup:1 tip:1c pgd0",
	       "on ->67 0; end 67>- 1; begin ->0 0; int 1>1c 1; end 1c>- 1; +0");
	expect("page tables of the host", "psb:0 pip:0 tnt:1 fup:10 pgd0",
	       "on ->0 0; jump 1>10 2; pause 10>- 0; +0");
	expect("an interrupt leads to a guest",
	       "psb:0 fup:1 pip:1 tip:20 tnt:1 fup:26 pip:0 tip:1 tnt:1 fup:10 pgd0",
	       "on ->0 0; pause 1>- 1; begin ->1 0; jump 1>10 1; pause 10>- 0; +0");
	expect("it begins in a guest",
	       "PSB tsc:5 pip:1 mode:64 fup:20 PSBEND tnt:1 fup:26 pip:0 tip:0 fup:1 pgd0",
	       "begin ->0 0; pause 1>- 1; +0");
	expect("PSB packets in a guest",
	       "psb:67 pip:1 tip:20 PSB pip:1 mode:64 fup:20 PSBEND tnt:1 tip:5 fup:20 pip:0 tip:0 "
	       "fup:1 pgd0",
	       "on ->67 0; end 67>- 1; begin ->0 0; pause 1>- 1; +0");
	expect("PSB packets tell that it is over",
	       "psb:67 pip:1 tip:20 PSB pip:0 mode:64 fup:0 PSBEND tnt:1 fup:10 pgd0",
	       "on ->67 0; end 67>- 1; begin ->0 0; jump 1>10 2; pause 10>- 0; +0");
	expect("and that it should be one",
	       "psb:0 PSB pip:1 mode:64 fup:20 PSBEND tnt:1 psb tnt:1 tip:5 fup:20 pip:0 "
	       "tip:0 fup:1 pgd0",
	       "on ->0 0; gap 0 at 43 a branch packet does not match the tracing state (on or off) "
	       "0; "
	       "begin ->0 0; pause 1>- 1; +0");
	expect("tracing goes off and on in a guest",
	       "psb:67 pip:1 tip:20 fup:25 pgd0 pge:5 tnt:1 tip:7 pgd0 pip:0 pge:0 tnt:1 fup:10 "
	       "pgd0",
	       "on ->67 0; end 67>- 1; begin ->0 0; jump 1>10 2; pause 10>- 0; +0");
	expect("it goes off for a guest", "psb:67 pip:1 pgd0 pip:0 pge:0 fup:1 pgd0",
	       "on ->67 0; end 67>- 1; begin ->0 0; pause 1>- 1; +0");
	expect("and on in one",
	       "psb:18 pgd0 pip:1 pge:20 tnt:1 tip:@7 fup:20 pip:0 tip:0 fup:1 pgd0",
	       "on ->18 0; end 18>- 1; begin ->0 0; pause 1>- 1; +0");
	expect("an overflow in a guest",
	       "psb:67 pip:1 tip:20 ovf fup:20 tnt:1 fup:20 pip:0 tip:0 fup:1 pgd0",
	       "on ->67 0; end 67>- 1; gap - at 44 overflow 0; begin ->0 0; pause 1>- 1; +0");
	expect("a value of a guest, without its place",
	       "psb:67 pip:1 tip:20 ptwip:77 fup:20 pip:0 tip:0 fup:1 pgd0",
	       "on ->67 0; end 67>- 1; ptwrite -=77 0; begin ->0 0; pause 1>- 1; +0");
	expect("targets come before a guest", "psb:67 tnt:1 pip:1 tip:20 psb:16 tnt:0 pgd0",
	       "on ->67 0; gap 67 at 36 a TNT packet, but the code has no conditional branch here "
	       "0; begin "
	       "->16 0; end 18>- 2; +0");
}

/* The first byte of an item is 4 and its number times 8: as a TNT packet, this would be 0, and more conditions. */
static void test_items(void)
{
	expect("items of 8 bytes",
	       "psb:0 bbp:8 hex:04cd00ff0282028202 hex:0c0000000000000000 bep tnt:0 fup:3 pgd0",
	       "on ->0 0; pause 3>- 2; +0");
	expect("items of 4 bytes",
	       "psb:0 bbp:4 hex:0401020304 hex:fc04040404 bep tnt:1 fup:10 pgd0",
	       "on ->0 0; jump 1>10 2; pause 10>- 0; +0");
	expect("several blocks",
	       "psb:0 bbp:4 hex:0401020304 bbp:8 hex:0c0102030405060708 bep tnt:1 fup:10 pgd0",
	       "on ->0 0; jump 1>10 2; pause 10>- 0; +0");
	expect("the place of a block",
	       "psb:0 bbp:8 hex:0c0102030405060708 bepip fup:1 tnt:10 tip:1c pgd0",
	       "on ->0 0; jump 1>10 2; call 10>15 1; enter 18>1c 3; end 1c>- 1; +0");
	expect("without one, an interrupt",
	       "psb:0 bbp:8 hex:0c0102030405060708 bep fup:1 tip:1c pgd0",
	       "on ->0 0; int 1>1c 1; end 1c>- 1; +0");
	expect("time between items",
	       "psb:0 bbp:4 hex:0401020304 cyc:3 hex:0401020304 mtc:4 tsc:9 tma:5,6 cbr:20 "
	       "hex:00 hex:0401020304 bep "
	       "tnt:1 fup:10 pgd0",
	       "on ->0 0; cbr -=14 0; jump 1>10 2; pause 10>- 0; +0");
	expect("conditions end a block", "psb:0 bbp:4 hex:0401020304 tnt:1 tnt:0 fup:18 pgd0",
	       "on ->0 0; jump 1>10 2; call 10>15 1; pause 18>- 2; +0");
	expect("so does a target", "psb:a bbp:4 hex:0401020304 tip:0 tnt:0 fup:3 pgd0",
	       "on ->a 0; any a>0 1; pause 3>- 2; +0");
	expect("an item is cut off", "psb:0 bbp:8 hex:0c010203",
	       "on ->0 0; gap 0 at 30 cut off packet 0; +0");
	expect("a PSB packet follows", "psb:0 bbp:4 hex:0401020304 psb:0 tnt:0 fup:3 pgd0",
	       "on ->0 0; pause 3>- 2; +0");
}

static void test_events(void)
{
	expect("an event with its place", "psb:0 tnt:1 cfeip fup:15 tnt:0 tip:1c pgd0",
	       "on ->0 0; jump 1>10 2; call 10>15 1; enter 18>1c 3; end 1c>- 1; +0");
	expect("the event of an interrupt", "psb:0 cfe fup:1 tip:1c pgd0",
	       "on ->0 0; int 1>1c 1; end 1c>- 1; +0");
	expect("with data", "psb:0 hex:0253000102030405060708 cfe fup:1 mode:64 tip:1c pgd0",
	       "on ->0 0; int 1>1c 1; end 1c>- 1; +0");
	expect("while tracing is off", "psb:18 pgd0 cfeip fup:77 cfe pge:0 fup:1 tip:1c pgd0",
	       "on ->18 0; end 18>- 1; begin ->0 0; int 1>1c 1; end 1c>- 1; +0");
	expect("a trigger", "psb:0 trig tnt:1 trig fup:16 tip:1c pgd0",
	       "on ->0 0; jump 1>10 2; call 10>15 1; int 16>1c 1; end 1c>- 1; +0");
	expect("a trigger with its place", "psb:0 tnt:1 trigip fup:15 tnt:0 tip:1c pgd0",
	       "on ->0 0; jump 1>10 2; call 10>15 1; enter 18>1c 3; end 1c>- 1; +0");
	expect("a trigger that is cut off", "psb:0 hex:d94001ff",
	       "on ->0 0; gap 0 at 27 cut off packet 0; +0");
}

static void test_interrupt_flag(void)
{
	expect("interrupts go on", "psb:0 tnt:1 mode:64if fup:15 tnt:0 tip:1c pgd0",
	       "on ->0 0; jump 1>10 2; call 10>15 1; enter 18>1c 3; end 1c>- 1; +0");
	expect("and off while tracing is off", "psb:18 pgd0 mode:64 pge:0 fup:1 tip:1c pgd0",
	       "on ->18 0; end 18>- 1; begin ->0 0; int 1>1c 1; end 1c>- 1; +0");
	pt_expect("a target tells where", code, "psb:a mode:64 tip:0 fup:1 tip:1c pgd0",
		  "on ->a 0; any a>0 1; int 1>1c 1; end 1c>- 1; +0");
	pt_expect("an interrupt switches them off", code, "psb:0 fup:1 mode:64 tip:16 fup:16 pgd0",
		  "on ->0 0; int 1>16 1; pause 16>- 0; +0");
}

int main(void)
{
	if (!pt_can_test())
		return 0;
	test_guests();
	test_items();
	test_events();
	test_interrupt_flag();
	return test_result();
}

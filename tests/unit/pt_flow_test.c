// SPDX-License-Identifier: GPL-2.0-or-later
/* pt/flow: conditions, targets, calls and returns, over the code of fuzz/pt_code.h. */
#include "fuzz/pt_code.h"
#include "pt_text.h"

static const struct pt_bytes code = { pt_code, sizeof(pt_code) };

static void test_conditions(void)
{
	pt_expect("conditions, taken and not", code, "psb:0 tnt:110 pgd0",
		  "on ->0 0; jump 1>10 2; call 10>15 1; jump 16>10 2; call 10>15 1; end 18>- 3; "
		  "+0");
	pt_expect("many conditions in one packet", code,
		  "psb:20 tnt:0101010101011 tip:a fup:a pgd0",
		  "on ->20 0; jump 23>21 3; jump 23>21 2; jump 23>21 2; jump 23>21 2; "
		  "jump 23>21 2; jump 23>21 2; jump 21>25 1; ret 26>a 2; pause a>- 0; +0");
	pt_expect("a direct jump needs no packet", code, "psb:0 tnt:00 pgd0",
		  "on ->0 0; jump 3>10 3; call 10>15 1; end 18>- 3; +0");
}

static void test_addresses(void)
{
	pt_expect("addresses in all forms", code,
		  "psb:a tip1:c tip2:a tip3:c tip4:a tip6:1c tip6:27 pgd0",
		  "on ->a 0; any a>c 1; call c>a 1; any a>c 1; call c>a 1; any a>1c 1; "
		  "leave 1c>27 1; end 27>- 1; +0");
	pt_expect("an address of 6 bytes is extended by its sign", code,
		  "psb:a tip3:@ffffffff81000000 tnt:1",
		  "on ->a 0; any a>@ffffffff81000000 1; gap @ffffffff81000000 at 34 code not "
		  "found, or not a valid instruction 0; +0");
	pt_expect("or has the upper bytes of the one before", code,
		  "psb:a tip6:@1234000000401000 hex:8d001040000000 pgd0",
		  "on ->a 0; any a>@1234000000401000 1; gap @1234000000401000 at 36 code not "
		  "found, or not a valid instruction 0; +0");
}

static void test_calls(void)
{
	pt_expect("a call and its return in one bit", code, "psb:5 tnt:11 tip:0 fup:0 pgd0",
		  "on ->5 0; call 5>20 1; jump 21>25 2; ret 26>a 2; any a>0 1; pause 0>- 0; +0");
	pt_expect("a return with its target", code, "psb:5 tnt:1 tip:a fup:a pgd0",
		  "on ->5 0; call 5>20 1; jump 21>25 2; ret 26>a 2; pause a>- 0; +0");
	pt_expect("a return without a call", code, "psb:20 tnt:1 tip:a fup:a pgd0",
		  "on ->20 0; jump 21>25 2; ret 26>a 2; pause a>- 0; +0");
	pt_expect("an indirect call and its return", code, "psb:c tip:20 tnt:11 tip:0 fup:0 pgd0",
		  "on ->c 0; call c>20 1; jump 21>25 2; ret 26>e 2; ret e>0 1; pause 0>- 0; +0");
	pt_expect("a call of the next instruction is not one to return to", code,
		  "psb:5 tnt:1 tip:10 tnt:0 tip:26 tnt:1 fup:a pgd0",
		  "on ->5 0; call 5>20 1; jump 21>25 2; ret 26>10 2; call 10>15 1; "
		  "enter 18>26 3; ret 26>a 1; pause a>- 0; +0");
	pt_expect("unless it is indirect", code, "psb:5 tnt:1 tip:c tip:e tnt:11 fup:a pgd0",
		  "on ->5 0; call 5>20 1; jump 21>25 2; ret 26>c 2; call c>e 1; ret e>e 1; "
		  "ret e>a 1; pause a>- 0; +0");
	pt_expect("targets come after the conditions behind them", code,
		  "psb:a tnt:101 tip:16 tip:20 fup:26 pgd0",
		  "on ->a 0; any a>16 1; jump 16>10 1; call 10>15 1; enter 18>20 3; "
		  "jump 21>25 2; pause 26>- 1; +0");
}

static void test_deep(void)
{
	/* je 07; call 00; ret */
	static const uint8_t bytes[] = { 0x74, 0x05, 0xe8, 0xf9, 0xff, 0xff, 0xff, 0xc3 };
	const struct pt_bytes deep = { bytes, sizeof(bytes) };
	static struct pt_trace t;
	static struct pt_result r;

	pt_add_text(&t, "psb:0");
	for (int i = 0; i < 70; i++)
		pt_add_text(&t, "tnt:0");
	pt_add_text(&t, "tnt:1");
	for (int i = 0; i < 64; i++)
		pt_add_text(&t, "tnt:1");
	for (int i = 0; i < 6; i++)
		pt_add_text(&t, "tip:7");
	pt_add_text(&t, "fup:7 pgd0");
	pt_decode(&t, deep, &r);
	check("64 of 70 calls are remembered", !r.gap && r.insns == 211 && r.nr_targets == 141);
	check("as libipt has it", pt_agrees(&t, deep, &r));
}

int main(void)
{
	if (!pt_can_test())
		return 0;
	test_conditions();
	test_addresses();
	test_calls();
	test_deep();
	return test_result();
}

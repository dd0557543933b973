// SPDX-License-Identifier: GPL-2.0-or-later
/* pt/flow: each kind of error, with its position, and how decoding goes on behind it. */
#include "fuzz/pt_code.h"
#include "pt_text.h"

static const struct pt_bytes code = { pt_code, sizeof(pt_code) };

static void test_gaps(void)
{
	pt_expect("an unknown packet", code, "psb:0 hex:02ff tnt:1 psb:16 tnt:0 pgd0",
		  "on ->0 0; gap 0 at 27 unknown packet 0; begin ->16 0; end 18>- 2; +0");
	pt_expect("a reserved form of an address", code, "psb:a hex:ad0102 psb:16 tnt:0 pgd0",
		  "on ->a 0; gap a at 27 unknown packet 0; begin ->16 0; end 18>- 2; +0");
	pt_expect("a long packet without conditions", code,
		  "psb:0 hex:02a3000000000000 psb:16 tnt:0 pgd0",
		  "on ->0 0; gap 0 at 27 unknown packet 0; begin ->16 0; end 18>- 2; +0");
	pt_expect("code that is not known", code, "psb:a tip:@500000 tnt:1 psb:16 tnt:0 pgd0",
		  "on ->a 0; any a>@500000 1; gap @500000 at 36 code not found, or not a valid "
		  "instruction 0; begin ->16 0; end 18>- 2; +0");
	pt_expect("bytes that are no instruction", code, "psb:60 tip:63 tnt:1 psb:16 tnt:0 pgd0",
		  "on ->60 0; ret 60>63 1; gap 63 at 36 code not found, or not a valid instruction "
		  "0; begin ->16 0; end 18>- 2; +0");
	pt_expect("the address of unknown code alone is no error", code,
		  "psb:a tip:@500000 fup:@500000 pgd0 pge:16 tnt:0 pgd0",
		  "on ->a 0; any a>@500000 1; pause @500000>- 0; begin ->16 0; end 18>- "
		  "2; +0");
	pt_expect("a target, but a condition is due", code, "psb:0 tip:10 psb:16 tnt:0 pgd0",
		  "on ->0 0; gap 0 at 27 a TIP packet, but the code has no indirect branch here 0; "
		  "begin ->16 0; end 18>- 2; +0");
	pt_expect("conditions, and none is due before a target", code,
		  "psb:a tnt:1 tnt:1 psb:16 tnt:0 pgd0",
		  "on ->a 0; gap a at 28 a TNT packet, but the code has no conditional branch here "
		  "0; begin"
		  " ->16 0; end 18>- 2; +0");
	pt_expect("an interrupt, but a target is due", code, "psb:a tnt:1 fup:a psb:16 tnt:0 pgd0",
		  "on ->a 0; gap a at 28 a TNT packet, but the code has no conditional branch here "
		  "0; begin"
		  " ->16 0; end 18>- 2; +0");
	pt_expect("a return that is not taken", code, "psb:5 tnt:10 psb:16 tnt:0 pgd0",
		  "on ->5 0; call 5>20 1; jump 21>25 2; gap 25 at 27 a TNT packet says \"not "
		  "taken\" at a return 0; begin ->16 0; end 18>- 2; +0");
	pt_expect("an interrupt where the code does not come by", code,
		  "psb:0 fup:20 tip:0 psb:16 tnt:0 pgd0",
		  "on ->0 0; gap 0 at 27 a FUP packet with an address that the code does not reach "
		  "0; begin ->16 0; end 18>- 2; +0");
	pt_expect("an interrupt inside an instruction", code,
		  "psb:10 fup:11 tip:0 psb:16 tnt:0 pgd0",
		  "on ->10 0; gap 10 at 27 a FUP packet with an address that the code does not "
		  "reach 0; begin ->16 0; end 18>- 2; +0");
	pt_expect("conditions while tracing is off", code, "psb tnt:1 psb:16 tnt:0 pgd0",
		  "gap - at 20 a branch packet does not match the tracing state (on or off) 0; "
		  "begin ->16 0; end 18>- "
		  "2; +0");
	pt_expect("a target while tracing is off", code, "psb tip:0 psb:16 tnt:0 pgd0",
		  "gap - at 20 a branch packet does not match the tracing state (on or off) 0; "
		  "begin ->16 0; end 18>- "
		  "2; +0");
	pt_expect("tracing begins while it is on", code, "psb:0 pge:1 psb:16 tnt:0 pgd0",
		  "on ->0 0; gap 0 at 27 a branch packet does not match the tracing state (on or "
		  "off) 0; begin ->16 0;"
		  " end 18>- 2; +0");
	pt_expect("an endless loop before a condition", code, "psb:1a tnt:1 psb:16 tnt:0 pgd0",
		  "on ->1a 0; gap 1a at 27 an infinite loop without packets 0; begin ->16 0; end "
		  "18>- 2; "
		  "+0");
	pt_expect("before a target", code, "psb:1a tip:0 psb:16 tnt:0 pgd0",
		  "on ->1a 0; gap 1a at 27 an infinite loop without packets 0; begin ->16 0; end "
		  "18>- 2; "
		  "+0");
	pt_expect("before an interrupt", code, "psb:1a fup:0 psb:16 tnt:0 pgd0",
		  "on ->1a 0; gap 1a at 27 an infinite loop without packets 0; begin ->16 0; end "
		  "18>- 2; "
		  "+0");
	pt_expect("before the end", code, "psb:1a pgd0 psb:16 tnt:0 pgd0",
		  "on ->1a 0; gap 1a at 27 an infinite loop without packets 0; begin ->16 0; end "
		  "18>- 2; "
		  "+0");
	pt_expect("calls without end", code, "psb:48 tnt:1 psb:16 tnt:0 pgd0",
		  "on ->48 0; gap 48 at 27 an infinite loop without packets 0; begin ->16 0; end "
		  "18>- 2; "
		  "+0");
	pt_expect("an interrupt in an endless loop is none", code, "psb:1a fup:1a tip:1c pgd0",
		  "on ->1a 0; int 1a>1c 0; end 1c>- 1; +0");
	pt_expect("a packet that is cut off", code, "psb:0 tnt:1 hex:cd01",
		  "on ->0 0; jump 1>10 2; gap 10 at 28 cut off packet 0; +0");
	pt_expect("a cut off packet of another kind", code, "psb:0 tnt:1 hex:02b201",
		  "on ->0 0; jump 1>10 2; gap 10 at 28 cut off packet 0; +0");
	pt_expect("bytes before the first PSB packet", code, "tnt:1 tip:0 psb:16 tnt:0 pgd0",
		  "on ->16 0; end 18>- 2; +0");
	pt_expect("no PSB packet at all", code, "tnt:1 tip:0 tip:10", "+0");
}

/* Code that is mapped, but not at hand: the trace goes on at the next target outside of it. */
static void test_foreign(void)
{
	pt_expect("conditions in foreign code", code, "psb:a tip:@501000 tnt:1 tip:16 tnt:0 pgd0",
		  "on ->a 0; any a>@501000 1; gap @501000 at 36 the binary was not found 0; "
		  "begin ->16 0; end 18>- 2; +0");
	pt_expect("targets in foreign code are one gap", code,
		  "psb:a tip:@501000 tip:@501800 tnt:1 fup:@501804 tip:@501900 tip:16 tnt:0 pgd0",
		  "on ->a 0; any a>@501000 1; gap @501000 at 36 the binary was not found 0; "
		  "begin ->16 0; end 18>- 2; +0");
	pt_expect("an interrupt of foreign code", code,
		  "psb:a tip:@501000 tnt:1 fup:@501004 tip:1c tip:@501004 tip:16 tnt:0 pgd0",
		  "on ->a 0; any a>@501000 1; gap @501000 at 36 the binary was not found 0; "
		  "begin ->1c 0; leave 1c>@501004 1; gap @501004 at 64 the binary was not found 0; "
		  "begin ->16 0; end 18>- 2; +0");
	pt_expect("foreign code is left for untraced code", code,
		  "psb:a tip:@501000 tnt:1 pgd0 pge:16 tnt:0 pgd0",
		  "on ->a 0; any a>@501000 1; gap @501000 at 36 the binary was not found 0; "
		  "begin ->16 0; end 18>- 2; +0");
	pt_expect("the trace only looks at foreign code", code,
		  "psb pge:@501000 fup:@501000 pgd0 pge:@501004 pgd0 pge:16 tnt:0 pgd0 ovf",
		  "begin ->16 0; end 18>- 2; gap - at 60 overflow 0; +0");
	pt_expect("the trace begins in foreign code", code, "psb:@501000 tnt:1 tip:16 tnt:0 pgd0",
		  "gap @501000 at 27 the binary was not found 0; begin ->16 0; end 18>- 2; +0");
	pt_expect("or an interrupt comes at once", code,
		  "psb:@501000 fup:@501000 tip:16 tnt:0 pgd0 ovf",
		  "begin ->16 0; end 18>- 2; gap - at 47 overflow 0; +0");
	pt_expect("a PSB packet in foreign code", code,
		  "psb:a tip:@501000 psb:@501004 tip:26 tip:0 fup:0 pgd0",
		  "on ->a 0; any a>@501000 1; gap @501000 at 54 the binary was not found 0; "
		  "begin ->26 0; ret 26>0 1; pause "
		  "0>- 0; +0");
	pt_expect("foreign code may have called: a return with a target", code,
		  "psb:5 tnt:1 fup:25 tip:@501000 tnt:1 tip:26 tip:0 fup:0 pgd0",
		  "on ->5 0; call 5>20 1; jump 21>25 2; int 25>@501000 0; gap @501000 at 46 the "
		  "binary was not found 0; begin ->26 0; ret 26>0 1; pause 0>- 0; +0");
	pt_expect("or without", code,
		  "psb:a tip:@501000 tnt:1 tip:26 tnt:1 tnt:10 tip:5 tnt:11 fup:a pgd0",
		  "on ->a 0; any a>@501000 1; gap @501000 at 36 the binary was not found 0; "
		  "begin ->26 0; gap 26 at 46 a return whose call was in a binary that was not "
		  "found 0; begin ->5 0; call 5>20 1; jump 21>25 2; ret 26>a 2; pause a>- 0; +0");
	pt_expect("until the next PSB packet", code,
		  "psb:a tip:@501000 tnt:1 tip:25 psb:25 tnt:1 tip:0 tnt:1 fup:10 pgd0",
		  "on ->a 0; any a>@501000 1; gap @501000 at 36 the binary was not found 0; "
		  "begin ->25 0; ret 26>0 2; jump 1>10 2; call 10>15 1; jump 16>10 2; pause 10>- "
		  "0; +0");
}

/* Any part of a trace can be decoded, and its end may be anywhere. */
static void test_cuts(void)
{
	static struct pt_trace whole, part;
	static struct pt_result r;
	bool good = true;

	pt_add_text(&whole,
		    "tsc:100 psb:5 tma:5,6 cbr:20 tnt:11 tip:0 tnt:1 cyc:5000 fup:15 tip:1c "
		    "tip:15 mtc:3 ptwip:1 fup:15 tnt:0 tip:1c pgd0 ovf pge:0 tnt:101010101");
	for (size_t from = 0; from < whole.len; from++) {
		for (size_t to = from; to <= whole.len; to++) {
			part.len = 0;
			pt_add(&part, whole.data + from, to - from);
			pt_decode(&part, code, &r);
			good &= r.insns < 40;
		}
	}
	check("parts of a trace", good);
}

int main(void)
{
	if (!pt_can_test())
		return 0;
	test_gaps();
	test_foreign();
	test_cuts();
	return test_result();
}

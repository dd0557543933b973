// SPDX-License-Identifier: GPL-2.0-or-later
/* pt/flow: where guests, overflows, errata, code that is not at hand, items and notes meet. */
#include "fuzz/pt_code.h"
#include "pt_text.h"

static const struct pt_bytes code = { pt_code, sizeof(pt_code) };

static void expect(const char *name, const char *trace, const char *expected)
{
	pt_expect_alone(name, code, trace, expected);
}

static void test_guests(void)
{
	expect("an overflow in a guest does not outlive it",
	       "psb:67 pip:1 tip:20 ovf tnt:1 pip:0 tip:0 fup:1 tip:1c pgd0",
	       "on ->67 0; end 67>- 1; gap - at 44 overflow 0; begin ->0 0; int 1>1c 1; end 1c>- "
	       "1; +0");
	expect("a guest is left without an address",
	       "psb:67 pip:1 tip:20 pip:0 tip0 pge:0 fup:1 pgd0",
	       "on ->67 0; end 67>- 1; begin ->0 0; pause 1>- 1; +0");
	expect("code that is not at hand, a guest, and again such code",
	       "psb:a tip:@501000 tnt:1 pip:1 tip:20 tnt:1 pip:0 tip:@501100 tnt:1 tip:0 fup:1 "
	       "pgd0",
	       "on ->a 0; any a>@501000 1; gap @501000 at 36 the binary was not found 0; gap "
	       "@501100 at 72 the binary was not found 0; begin ->0 0; pause 1>- 1; +0");
	expect("an interrupt of code that is not at hand leads to a guest",
	       "psb:a tip:@501000 fup:@501000 pip:1 tip:20 pip:0 tip:0 fup:1 pgd0",
	       "on ->a 0; any a>@501000 1; pause @501000>- 0; begin ->0 0; pause 1>- 1; +0");
}

static void test_notes(void)
{
	expect("a note after an overflow has the address that follows",
	       "psb:0 ovf ptwip:77 fup:0 tnt:1 fup:15 tip:1c pgd0",
	       "on ->0 0; gap 0 at 27 overflow 0; begin ->0 0; ptwrite 0=77 0; jump 1>10 2; call "
	       "10>15 1; int 15>1c 0; end 1c>- 1; +0");
	expect("a note in code that is not at hand",
	       "psb:a tip:@501000 ptwip:5 fup:@501004 tip:0 fup:1 tip:1c pgd0",
	       "on ->a 0; any a>@501000 1; ptwrite -=5 0; gap @501000 at 46 the binary was not "
	       "found 0; begin ->0 0; int 1>1c 1; end 1c>- 1; +0");
	expect("and at the start of a trace", "psb:@501000 ptwip:5 fup:@501008 tip:0 fup:1 pgd0",
	       "ptwrite -=5 0; gap @501000 at 37 the binary was not found 0; begin ->0 0; pause "
	       "1>- 1; +0");
}

/* Erratum APL12: a FUP packet follows an overflow although the trace is off. */
static void test_false_address(void)
{
	static const char expected[] = "on ->0 0; gap 0 at 27 overflow 0; %sbegin ->10 0; call "
				       "10>15 1; end 18>- 3; +0";
	static const struct {
		const char *name, *packets, *note;
	} cases[] = {
		{ "alone", "fup:1", "" },
		{ "and another frequency", "fup:1 cbr:30", "cbr -=1e 0; " },
		{ "and a power state", "fup:1 pwrx", "pwrx -=21 0; " },
		{ "and a note that waits", "fup:1 ptwip:1", "ptwrite -=1 0; " },
		{ "in code that is not at hand", "fup:@501000", "" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		char trace[100], text[200], name[100];

		snprintf(name, sizeof(name), "a false address after an overflow, %s",
			 cases[i].name);
		snprintf(trace, sizeof(trace), "psb:0 ovf %s pge:10 tnt:0 pgd0", cases[i].packets);
		snprintf(text, sizeof(text), expected, cases[i].note);
		expect(name, trace, text);
	}
}

static void test_not_at_hand(void)
{
	expect("an overflow there", "psb:a tip:@501000 tnt:1 ovf tip:0 fup:1 pgd0",
	       "on ->a 0; any a>@501000 1; gap @501000 at 36 the binary was not found 0; gap - at "
	       "37 overflow 0; begin ->0 0; pause 1>- 1; +0");
	expect("a PSB packet that says that tracing is off",
	       "psb:a tip:@501000 tnt:1 psb pge:0 fup:1 pgd0",
	       "on ->a 0; any a>@501000 1; gap @501000 at 36 the binary was not found 0; begin ->0 "
	       "0; pause 1>- 1; +0");
	expect("tracing ends there", "psb:a tip:@501000 fup:@501000 pgd0 pge:0 fup:1 pgd0",
	       "on ->a 0; any a>@501000 1; pause @501000>- 0; begin ->0 0; pause 1>- 1; +0");
	expect("a block of items goes on",
	       "psb:a tip:@501000 bbp:8 hex:0c0102030405060708 fup:@501008 hex:0c0102030405060708 "
	       "bep tip:0 fup:1 pgd0",
	       "on ->a 0; any a>@501000 1; gap @501000 at 48 the binary was not found 0; begin ->0 "
	       "0; pause 1>- 1; +0");
}

/* Decodes a trace, and hands over the flow, which the caller releases. */
static void run(struct pt_machine *m, struct ipt_flow *flow, const char *trace)
{
	static struct pt_trace t;

	t.len = 0;
	pt_add_text(&t, trace);
	*flow = (struct ipt_flow){ .all = true, .world = &m->world };
	flow->clock.info = &m->clock;
	ipt_flow_begin(flow);
	ipt_flow_run(flow, t.data, t.len, 0, true);
}

static uint64_t time_of_last(const struct ipt_flow *flow, enum ipt_branch_kind kind)
{
	for (size_t i = flow->nr; i-- > 0;) {
		if (flow->branches[i].kind == kind)
			return flow->branches[i].time;
	}
	return UINT64_MAX;
}

static bool goes_back(const struct ipt_flow *flow)
{
	for (size_t i = 1; i < flow->nr; i++) {
		if (flow->branches[i].time < flow->branches[i - 1].time)
			return true;
	}
	return false;
}

static void test_times(void)
{
	struct pt_machine m;
	struct ipt_flow flow;

	pt_open(&m, code);
	run(&m, &flow, "psb:67 tsc:100 pip:1 tip:20 pip:0 pgd0 tsc:500 pge:0 fup:1 pgd0");
	check("the time after a guest that tracing left",
	      time_of_last(&flow, IPT_DID_BEGIN) == 500);
	ipt_flow_release(&flow);
	run(&m, &flow,
	    "PSB tsc:9000 pip:1 mode:64 fup:20 PSBEND tnt:1 fup:26 pip:0 tip:0 tsc:500 fup:1 pgd0");
	check("a guest's time does not last", time_of_last(&flow, IPT_DID_PAUSE) == 500);
	ipt_flow_release(&flow);
	run(&m, &flow,
	    "PSB tsc:9000 hex:0200 PSB pip:1 mode:64 fup:20 PSBEND tnt:1 fup:26 pip:0 tip:0 fup:1 "
	    "pgd0");
	check("a gap before a guest is known", flow.nr && !goes_back(&flow));
	ipt_flow_release(&flow);
	run(&m, &flow, "PSB tsc:5 ovf fup:0 tnt:1 fup:10 pgd0");
	check("an overflow in its first PSB packet begins a piece, too", flow.begun);
	ipt_flow_release(&flow);
	pt_close(&m);
}

int main(void)
{
	if (!pt_can_test())
		return 0;
	test_guests();
	test_notes();
	test_false_address();
	test_not_at_hand();
	test_times();
	return test_result();
}

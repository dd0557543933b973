// SPDX-License-Identifier: GPL-2.0-or-later
/* pt/clock: the arithmetic of TSC, TMA, MTC, CYC and CBR packets. */
#include "pt/clock.h"
#include "test.h"

/* A tick of the slower clock is 80 ticks of the TSC, and an MTC packet comes every 8 of them. */
static const struct ipt_clock_info usual = { { 160, 2 }, 3, 20 };

static void test_mtc(void)
{
	struct ipt_clock clock = { .info = &usual };

	ipt_clock_mtc(&clock, 5);
	check("MTC packets before the first TMA packet tell nothing", clock.now == 0);
	ipt_clock_tsc(&clock, 100000);
	/* 7 ticks before, the slower clock was at 0x7fb: 3 ticks after the one of an MTC packet */
	ipt_clock_tma(&clock, 0x7fb, 7);
	check("the time of a TSC packet", clock.now == 100000);
	ipt_clock_mtc(&clock, 0x00);
	check("the next MTC packet, which wraps around", clock.now == 100000 - 7 + 5 * 80);
	ipt_clock_mtc(&clock, 0x01);
	check("and the one after it", clock.now == 100000 - 7 + 13 * 80);
	ipt_clock_mtc(&clock, 0x00);
	check("255 are missing", clock.now == 100000 - 7 + (13 + 255 * 8) * 80);
	ipt_clock_tsc(&clock, 300000);
	ipt_clock_mtc(&clock, 0x02);
	check("none counts between a TSC packet and its TMA packet", clock.now == 300000);
}

/* A TMA packet has 7 of the 8 bits of an MTC packet. */
static void test_long_period(void)
{
	static const struct ipt_clock_info info = { { 80, 1 }, 9, 20 };
	struct ipt_clock clock = { .info = &info };

	ipt_clock_tsc(&clock, 1000000);
	ipt_clock_tma(&clock, 5 << 9, 0);
	ipt_clock_mtc(&clock, 0x86);
	check("the bits of an MTC packet that a TMA packet lacks", clock.now == 1000000 + 512 * 80);
	ipt_clock_tsc(&clock, 2000000);
	ipt_clock_tma(&clock, 0x7f << 9, 0);
	ipt_clock_mtc(&clock, 0x80);
	check("a carry into them", clock.now == 2000000 + 512 * 80);
	ipt_clock_mtc(&clock, 0x82);
	check("later ones have all bits", clock.now == 2000000 + 3 * 512 * 80);
}

static void test_cycles(void)
{
	struct ipt_clock clock = { .info = &usual };

	ipt_clock_tsc(&clock, 1000);
	ipt_clock_cyc(&clock, 50);
	check("cycles of unknown length", clock.now == 1000);
	ipt_clock_tsc(&clock, 1000);
	ipt_clock_cbr(&clock, 40); /* twice the speed of the TSC */
	ipt_clock_cyc(&clock, 100);
	check("short cycles", clock.now == 1050);
	ipt_clock_cbr(&clock, 10);
	ipt_clock_cyc(&clock, 100);
	check("longer ones from now on", clock.now == 1250);
	ipt_clock_tsc(&clock, 1200);
	check("time does not run backwards", clock.now == 1250);
	ipt_clock_cyc(&clock, 20);
	check("it stands until the clock has caught up", clock.now == 1250);
	ipt_clock_cyc(&clock, 20);
	check("and goes on", clock.now == 1280);
	ipt_clock_cyc(&clock, UINT64_MAX / 2);
	check("a count that no time can hold", clock.now == 1280);
	ipt_clock_cbr(&clock, 0);
	ipt_clock_cyc(&clock, 20);
	check("a ratio of 0", clock.now == 1280);
}

static void test_unknown(void)
{
	static const struct ipt_clock_info unknown;
	struct ipt_clock clock = { .info = &unknown };

	ipt_clock_tsc(&clock, 1000);
	ipt_clock_tma(&clock, 1, 2);
	ipt_clock_mtc(&clock, 9);
	ipt_clock_cbr(&clock, 10);
	ipt_clock_cyc(&clock, 100);
	check("only TSC packets, if nothing is known about the clocks", clock.now == 1000);
}

int main(void)
{
	test_mtc();
	test_long_period();
	test_cycles();
	test_unknown();
	return test_result();
}

// SPDX-License-Identifier: GPL-2.0-or-later
/* target/timer_*.h with registers that are memory: how long the timers run, also beyond what they can count. */
#include <string.h>

#include "test.h"

static uint32_t *m_register(uint32_t address);
#define KSCOPE_CORTEX_M_REGISTER(address) (*m_register(address))
static unsigned masked;
static uint32_t kscope_mask_interrupts(void)
{
	return masked++;
}

static void kscope_unmask_interrupts(uint32_t before)
{
	masked = before;
}
#include "target/timer_cortex_m.h"
#include "target/timer_apic.h"

#define SECOND 1000000000ull

/* ---- a local APIC ---- */

static uint32_t apic_memory[0x400 / 4];
static uint64_t clock_now;

static struct kscope_apic new_apic(uint64_t hertz)
{
	memset(apic_memory, 0, sizeof(apic_memory));
	return (struct kscope_apic){ .base = apic_memory, .hertz = hertz };
}

/* Runs the timer until it is over. Returns the ticks that it took. */
static uint64_t run_apic(struct kscope_apic *apic)
{
	uint64_t ticks = 0;

	do {
		ticks += apic_memory[KSCOPE_APIC_TIMER_START / 4];
	} while (!kscope_apic_timer_fired(apic));
	return ticks;
}

static uint64_t apic_ticks(uint64_t hertz, uint64_t ns)
{
	struct kscope_apic apic = new_apic(hertz);

	kscope_apic_timer_set(&apic, ns);
	return run_apic(&apic);
}

/* 25 MHz; the clock advances by 7 us each time it is read. */
static uint64_t slow_clock(void *data)
{
	check("the clock gets its data", data == apic_memory);
	clock_now += 7000;
	apic_memory[KSCOPE_APIC_TIMER_NOW / 4] =
		apic_memory[KSCOPE_APIC_TIMER_START / 4] - (uint32_t)((clock_now - 7000) / 40);
	return clock_now;
}

static void test_apic(void)
{
	struct kscope_apic apic = new_apic(SECOND);

	check("APIC: a millisecond", apic_ticks(25000000, 1000000) == 25000);
	check("APIC: the shortest time", apic_ticks(1000000, 1) == 1);
	check("APIC: just 32 bits", apic_ticks(SECOND, UINT32_MAX) == UINT32_MAX);
	check("APIC: one more", apic_ticks(SECOND, UINT32_MAX + 1ull) == UINT32_MAX + 1ull);
	check("APIC: an hour", apic_ticks(3000000000, 3600 * SECOND) == 3600 * 3000000000ull);
	kscope_apic_timer_set(&apic, 3600 * SECOND);
	kscope_apic_timer_set(&apic, 0);
	check("APIC: off", !apic_memory[KSCOPE_APIC_TIMER_START / 4] && !apic.left);
	kscope_apic_timer_init(&apic, 0x30);
	check("APIC: one shot, undivided",
	      apic_memory[KSCOPE_APIC_TIMER / 4] == 0x30 &&
		      apic_memory[KSCOPE_APIC_TIMER_DIVIDE / 4] == 0xb);
	clock_now = 0;
	check("APIC: calibrated",
	      kscope_apic_calibrate(&apic, slow_clock, apic_memory, 20000) == 25000000);
	check("APIC: the entry is as before", apic_memory[KSCOPE_APIC_TIMER / 4] == 0x30);
	apic_memory[KSCOPE_APIC_COUNTERS / 4] = 0x10040;
	kscope_apic_counters(&apic, 0x40);
	check("APIC: counters interrupt again", apic_memory[KSCOPE_APIC_COUNTERS / 4] == 0x40);
}

/* ---- a Cortex-M ---- */

static struct {
	uint32_t control, reload, value, debug, dwt, cycles, lock;
	uint32_t step; /* of the cycle counter, at each access */
} m;

static uint32_t *m_register(uint32_t address)
{
	static uint32_t other;

	switch (address) {
	case 0xe000e010: return &m.control;
	case 0xe000e014: return &m.reload;
	case 0xe000e018: return &m.value;
	case 0xe000edfc: return &m.debug;
	case 0xe0001000: return &m.dwt;
	case 0xe0001004: m.cycles += m.dwt & 1 ? m.step : 0; return &m.cycles;
	case 0xe0001fb0: return &m.lock;
	default: check("a register of Cortex-M", false); return &other;
	}
}

static uint64_t systick_ticks(uint32_t hertz, uint64_t ns)
{
	struct kscope_systick timer = { .hertz = hertz };
	uint64_t ticks = 0;
	bool good = true;

	kscope_systick_set(&timer, ns);
	do {
		good &= m.control == 7 && m.reload && !(m.reload >> 24);
		ticks += m.reload + 1;
	} while (!kscope_systick_fired(&timer));
	return good && !m.control ? ticks : 0;
}

static void test_systick(void)
{
	struct kscope_systick timer = { .hertz = 48000000 };

	check("SysTick: a millisecond", systick_ticks(168000000, 1000000) == 168000);
	check("SysTick: the shortest time", systick_ticks(1000000, 1) == 2);
	check("SysTick: just 24 bits", systick_ticks(1000000000, 1 << 24) == 1 << 24);
	check("SysTick: a little more", systick_ticks(1000000000, (1 << 24) + 5) == (1 << 24) + 5);
	check("SysTick: an hour", systick_ticks(48000000, 3600 * SECOND) == 3600 * 48000000ull);
	kscope_systick_set(&timer, SECOND);
	kscope_systick_set(&timer, 0);
	check("SysTick: off", !m.control && !timer.left);
}

static void test_cycles(void)
{
	struct kscope_cycles cycles = { .hertz = 168000000 };
	uint64_t sum = 0, before = 0;
	bool good = true;

	m.step = 3;
	m.dwt = KSCOPE_DWT_HAS_NONE;
	check("cycles: a processor without", !kscope_cycles_init(&cycles));
	m.dwt = 0;
	m.step = 0;
	check("cycles: a counter that stands still", !kscope_cycles_init(&cycles));
	m.step = 3;
	check("cycles: a counter", kscope_cycles_init(&cycles) && m.debug == 1 << 24 &&
					   m.dwt == 1 && m.lock == 0xc5acce55);
	m.step = 0x70000000;
	sum = m.cycles;
	for (unsigned i = 0; i < 100; i++) {
		before = kscope_cycles_now(&cycles);
		sum += m.step;
		good &= before == sum && !masked;
	}
	check("cycles: 64 bits", good && before > 40ull << 32);
	m.step = 0;
	check("cycles: nanoseconds",
	      kscope_cycles_ns(&cycles) ==
		      (uint64_t)((unsigned __int128)before * SECOND / 168000000));
}

static void test_scale(void)
{
	uint64_t state = 1;
	bool good = true;

	for (unsigned i = 0; i < 100000; i++) {
		uint64_t number = (uint64_t)next_random(&state) << (i % 20);
		uint64_t by = next_random(&state), over = next_random(&state) + 1ull;

		good &= kscope_scale(number, by, over) ==
			(uint64_t)((unsigned __int128)number * by / over);
	}
	check("scale", good);
}

int main(void)
{
	test_apic();
	test_systick();
	test_cycles();
	test_scale();
	return test_result();
}

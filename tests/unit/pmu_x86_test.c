// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * target/pmu_x86.c with a processor that this test makes up, after Intel's manual: counters that wrap around, and
 * registers that fault where they do not exist.
 */
#include <linux/perf_event.h>
#include <string.h>

#include "test.h"

#define KSCOPE_X86_REGISTERS
static uint64_t read_msr(uint32_t msr);
static void write_msr(uint32_t msr, uint64_t value);
static void read_cpuid(uint32_t leaf, uint32_t registers[4]);
#include "target/pmu_x86.c"

static struct cpu {
	unsigned version, fixed, general, width;
	uint32_t missing, known;
	bool wide, capabilities;
	/* Registers */
	uint64_t select[8], pmc[8], fixed_count[8], fixed_control, control, status;
	unsigned interrupts;
} cpu;
static unsigned faults; /* of all of them */

static uint64_t mask(unsigned bits)
{
	return UINT64_MAX >> (64 - bits);
}

static void read_cpuid(uint32_t leaf, uint32_t r[4])
{
	memset(r, 0, 4 * sizeof(r[0]));
	if (leaf == 0) {
		r[0] = cpu.version ? 13 : 7;
	} else if (leaf == 1) {
		r[2] = cpu.capabilities ? 1u << 15 : 0;
	} else if (leaf == 10) {
		r[0] = cpu.version | cpu.general << 8 | cpu.width << 16 | cpu.known << 24;
		r[1] = cpu.missing;
		r[3] = cpu.version >= 2 ? cpu.fixed | cpu.width << 5 : 0;
	}
}

/* The register, or NULL where it does not exist. */
static uint64_t *find(uint32_t msr)
{
	if (msr >= 0xc1 && msr < 0xc1 + cpu.general)
		return &cpu.pmc[msr - 0xc1];
	if (msr >= 0x4c1 && msr < 0x4c1 + cpu.general && cpu.wide)
		return &cpu.pmc[msr - 0x4c1];
	if (msr >= 0x186 && msr < 0x186 + cpu.general)
		return &cpu.select[msr - 0x186];
	if (cpu.version < 2)
		return NULL;
	if (msr >= 0x309 && msr < 0x309 + cpu.fixed)
		return &cpu.fixed_count[msr - 0x309];
	switch (msr) {
	case 0x38d: return cpu.fixed ? &cpu.fixed_control : NULL;
	case 0x38e: return &cpu.status;
	case 0x38f: return &cpu.control;
	default: return NULL;
	}
}

static uint64_t read_msr(uint32_t msr)
{
	const uint64_t *at = find(msr);

	if (msr == 0x345 && cpu.capabilities)
		return cpu.wide ? 1u << 13 : 0;
	faults += !at;
	return at ? *at : 0;
}

static void write_msr(uint32_t msr, uint64_t value)
{
	uint64_t *at = find(msr);

	if (msr == 0x390 && cpu.version >= 2) {
		cpu.status &= ~value;
		return;
	}
	if (!at || msr == 0x38e) {
		faults++;
		return;
	}
	/* Narrow writes extend the sign of bit 31; others fault at bits that the counter has not. */
	if (msr >= 0xc1 && msr < 0xc1 + 8)
		value = (uint64_t)(int64_t)(int32_t)value & mask(cpu.width);
	else if (at >= cpu.pmc && at < cpu.fixed_count + 8 && value & ~mask(cpu.width))
		faults++;
	*at = value;
}

/* Lets events happen, of the kind that this counter counts. */
static void happen(uint64_t *counter, bool enabled, unsigned place, bool interrupt, uint64_t nr)
{
	uint64_t before = *counter;

	if (!enabled || (cpu.version >= 2 && !(cpu.control >> place & 1)))
		return;
	*counter = (before + nr) & mask(cpu.width);
	if (*counter >= before)
		return;
	if (cpu.version >= 2)
		cpu.status |= 1ull << place;
	cpu.interrupts += interrupt;
}

static void happen_general(unsigned i, uint64_t nr)
{
	happen(&cpu.pmc[i], cpu.select[i] >> 22 & 1, i, cpu.select[i] >> 20 & 1, nr);
}

static void happen_fixed(unsigned i, uint64_t nr)
{
	uint64_t control = cpu.fixed_control >> (4 * i);

	happen(&cpu.fixed_count[i], control & 3, 32 + i, control & 8, nr);
}

static const struct kscope_pmu *const pmu = &kscope_pmu_x86;

static struct cpu modern(void)
{
	return (struct cpu){ .version = 5,
			     .fixed = 3,
			     .general = 8,
			     .width = 48,
			     .known = 8,
			     .wide = true,
			     .capabilities = true };
}

static const struct kscope_event *event_of(const char *name)
{
	const struct kscope_event *e = pmu->events;

	while (strcmp(e->name, name))
		e++;
	return e;
}

/* ---- tests ---- */

static void test_events(void)
{
	static const struct {
		const char *name;
		uint64_t config, select;
	} known[] = {
		{ "cycles", PERF_COUNT_HW_CPU_CYCLES, 0x003c },
		{ "cpu-cycles", PERF_COUNT_HW_CPU_CYCLES, 0x003c },
		{ "instructions", PERF_COUNT_HW_INSTRUCTIONS, 0x00c0 },
		{ "cache-references", PERF_COUNT_HW_CACHE_REFERENCES, 0x4f2e },
		{ "cache-misses", PERF_COUNT_HW_CACHE_MISSES, 0x412e },
		{ "branches", PERF_COUNT_HW_BRANCH_INSTRUCTIONS, 0x00c4 },
		{ "branch-instructions", PERF_COUNT_HW_BRANCH_INSTRUCTIONS, 0x00c4 },
		{ "branch-misses", PERF_COUNT_HW_BRANCH_MISSES, 0x00c5 },
		{ "bus-cycles", PERF_COUNT_HW_BUS_CYCLES, 0x013c },
		{ "ref-cycles", PERF_COUNT_HW_REF_CPU_CYCLES, 0x0300 },
	};
	bool same = true;

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		const struct kscope_event *e = &pmu->events[i];

		same &= e->name && !strcmp(e->name, known[i].name) &&
			e->type == PERF_TYPE_HARDWARE && e->config == known[i].config &&
			e->raw == known[i].select;
	}
	check("events have perf's names and numbers", same && !pmu->events[10].name);
}

static void test_init(void)
{
	cpu = (struct cpu){ 0 };
	check("a processor without the leaf has no counters", pmu->init() == 0);
	cpu = (struct cpu){ .version = 1, .known = 7, .width = 40 };
	check("nor one whose leaf names none", pmu->init() == 0);
	cpu = modern();
	check("three fixed and four general counters", pmu->init() == 7);
	check("all are on", cpu.control == 0x70000000f && cpu.fixed_control == 0xbbb);
	cpu = (struct cpu){ .version = 2, .fixed = 3, .general = 2, .width = 40, .known = 7 };
	check("as many as there are", pmu->init() == 5);
	cpu = (struct cpu){ .version = 1, .general = 2, .width = 40, .known = 7 };
	check("version 1 has general ones only", pmu->init() == 2);
	check("no register is used that does not exist", !faults);
}

static unsigned takers(const struct kscope_event *event, unsigned counters)
{
	unsigned bits = 0;

	for (unsigned counter = 0; counter < counters; counter++)
		bits |= (unsigned)pmu->takes(counter, event) << counter;
	return bits;
}

static void test_takes(void)
{
	struct kscope_event raw = { NULL, KSCOPE_RAW, 0x01a2, 0x01a2 };
	struct kscope_event any_thread = { NULL, KSCOPE_RAW, 0x2000c0, 0x2000c0 };

	cpu = modern();
	pmu->init();
	check("instructions: the first fixed counter, and general ones",
	      takers(event_of("instructions"), 7) == 0x79);
	check("cycles: the second", takers(event_of("cycles"), 7) == 0x7a);
	check("reference cycles: only the third", takers(event_of("ref-cycles"), 7) == 0x04);
	check("others: general ones", takers(event_of("branch-misses"), 7) == 0x78);
	check("raw events: general ones", takers(&raw, 7) == 0x78);
	check("no raw event sets what is not perf's", takers(&any_thread, 7) == 0);
	cpu.missing = 1u << 6;
	pmu->init();
	check("an event that the processor has not", takers(event_of("branch-misses"), 7) == 0);
	cpu.missing = 0;
	cpu.known = 3;
	pmu->init();
	check("an event that it does not know of", takers(event_of("branch-misses"), 7) == 0);
	check("one that it knows of", takers(event_of("bus-cycles"), 7) == 0x78);
}

/* Overflows come with the last event of a period, once. */
static bool is_exact(unsigned counter, unsigned register_number, bool fixed, uint64_t period)
{
	void (*let)(unsigned i, uint64_t nr) = fixed ? happen_fixed : happen_general;
	unsigned before = cpu.interrupts;

	let(register_number, period - 1);
	if (pmu->overflows() || cpu.interrupts != before)
		return false;
	let(register_number, 1);
	return cpu.interrupts == before + 1 && pmu->overflows() == 1u << counter;
}

static bool counts(unsigned counter, unsigned register_number, bool fixed, const char *name)
{
	uint64_t most = pmu->period_max(counter);
	const uint64_t periods[] = { 1, 100003, INT32_MAX - 1, INT32_MAX, most - 1, most };
	bool good = true;

	pmu->set(counter, event_of(name), 12345);
	good &= is_exact(counter, register_number, fixed, 12345);
	for (size_t i = 0; i < sizeof(periods) / sizeof(periods[0]); i++) {
		pmu->set(counter, NULL, periods[i]);
		good &= is_exact(counter, register_number, fixed, periods[i]);
	}
	pmu->set(counter, NULL, 0);
	return good;
}

static void test_periods(void)
{
	cpu = modern();
	pmu->init();
	check("periods of 47 bits",
	      pmu->period_max(0) == mask(47) && pmu->period_max(3) == mask(47));
	check("a fixed counter is exact", counts(1, 1, true, "cycles"));
	check("a general counter is exact", counts(4, 1, false, "branch-misses"));
	cpu.capabilities = cpu.wide = false;
	pmu->init();
	check("narrow writes: 31 bits",
	      pmu->period_max(3) == INT32_MAX && pmu->period_max(0) == mask(47));
	check("narrow writes: exact", counts(3, 0, false, "cycles"));
	cpu = (struct cpu){ .version = 1, .general = 2, .width = 40, .known = 7 };
	pmu->init();
	check("version 1: exact", counts(1, 1, false, "instructions"));
	check("no write faults", !faults);
}

static void test_select(void)
{
	struct kscope_event raw = { NULL, KSCOPE_RAW, 0x010401a2, 0x010401a2 };

	cpu = modern();
	pmu->init();
	pmu->set(5, &raw, 1000);
	check("user, kernel, interrupt, enabled", cpu.select[2] == (0x010401a2 | 0x530000));
	check("the count", cpu.pmc[2] == (-1000ull & mask(48)));
	pmu->set(5, NULL, 2000);
	check("set again: the same event", cpu.select[2] == (0x010401a2 | 0x530000));
	pmu->set(5, NULL, 0);
	check("stopped", !(cpu.select[2] & 1u << 22));
	happen_general(2, mask(47));
	check("what is stopped does not overflow", !pmu->overflows() && !cpu.interrupts);
}

static void test_several(void)
{
	cpu = modern();
	pmu->init();
	pmu->set(0, event_of("instructions"), 100);
	pmu->set(3, event_of("branches"), 50);
	pmu->set(4, event_of("cycles"), 1000);
	happen_fixed(0, 100);
	happen_general(0, 60);
	happen_general(1, 999);
	check("several at once", pmu->overflows() == 0x9 && !pmu->overflows());
	happen_general(1, 1);
	cpu.status |= 1ull << 62 | 1ull << 7; /* of others */
	check("the rest of the status is not ours",
	      pmu->overflows() == 0x10 && cpu.status == (1ull << 62 | 1ull << 7));
	pmu->set(0, NULL, 100);
	happen_fixed(0, 100);
	pmu->set(0, NULL, 200);
	check("what overflowed before it was set does not count", !pmu->overflows());
	pmu->set(0, NULL, 0);
	happen_fixed(0, 1ull << 40);
	check("a fixed counter that is stopped runs on in silence", !pmu->overflows());
	check("nothing faults", !faults);
}

int main(void)
{
	test_events();
	test_init();
	test_takes();
	test_periods();
	test_select();
	test_several();
	return test_result();
}

// SPDX-License-Identifier: MIT
/*
 * pmu_x86: the counters of x86-64 processors with architectural performance monitoring (CPUID leaf 10): Intel's, and
 * virtual machines that have it. AMD's have other registers, and QEMU without KVM has none: init() returns 0.
 *
 * The kernel routes the interrupt: on each cpu, it writes a vector (or the NMI mode, 0x400) to the local APIC's LVT
 * entry for performance counters, and calls kscope_counter() there. Processors set the mask bit of that entry at each
 * interrupt: the kernel has to write the entry again, after kscope_counter(). timer_apic.h has functions for both.
 *
 * A period begins when it is set: what the interrupt did before, above all the sample, does not count.
 *
 * This driver has not run on hardware: tests/unit/pmu_x86_test.c runs it with registers that it makes up.
 */
#include "kscope.h"

/* MSRs */
#define PMC 0xc1       /* general counters: only 32 bits can be written, the sign is extended */
#define PMC_WIDE 0x4c1 /* the same, all bits */
#define EVENT_SELECT 0x186
#define FIXED 0x309
#define CAPABILITIES 0x345
#define FIXED_CONTROL 0x38d
#define GLOBAL_STATUS 0x38e
#define GLOBAL_CONTROL 0x38f
#define GLOBAL_CLEAR 0x390

#define CAPABILITY_WIDE (1u << 13)
#define FIXED_PLACE 32 /* of the fixed counters, in the global registers */

/* Bits of EVENT_SELECT */
#define USER (1u << 16)
#define KERNEL (1u << 17)
#define INTERRUPT (1u << 20)
#define ENABLE (1u << 22)
/* Those that perf lets a raw event have: event, mask, edge, invert, threshold */
#define RAW_BITS 0xff84ffffull

/* A fixed counter's bits in FIXED_CONTROL: kernel, user, interrupt */
#define FIXED_ON 0xbull
#define FIXED_SHIFT 4

/* Bits of CPUID leaf 1, ECX */
#define HAS_CAPABILITIES (1u << 15)

/* perf's number for the event that only the third fixed counter has */
#define REF_CYCLES 0x0300
#define FIXED_COUNTERS 3

/* Tests have their own. */
#ifndef KSCOPE_X86_REGISTERS
static uint64_t read_msr(uint32_t msr)
{
	uint32_t low, high;

	__asm__ volatile("rdmsr" : "=a"(low), "=d"(high) : "c"(msr));
	return (uint64_t)high << 32 | low;
}

static void write_msr(uint32_t msr, uint64_t value)
{
	__asm__ volatile("wrmsr"
			 :
			 : "c"(msr), "a"((uint32_t)value), "d"((uint32_t)(value >> 32))
			 : "memory");
}

static void read_cpuid(uint32_t leaf, uint32_t registers[4])
{
	__asm__ volatile("cpuid"
			 : "=a"(registers[0]), "=b"(registers[1]), "=c"(registers[2]),
			   "=d"(registers[3])
			 : "a"(leaf), "c"(0));
}
#endif

/* The same on all cpus. Fixed counters come first, so that their events get them first. */
static struct {
	unsigned version;
	unsigned fixed, general; /* numbers of counters */
	unsigned fixed_width, width;
	uint32_t missing; /* of the architecture's events */
	bool wide;
} machine;

/* ---- events ---- */

/* As perf maps its general events; all but the last are the architecture's, by these numbers. */
static const struct kscope_event events[] = {
	{ "cycles", KSCOPE_HARDWARE, 0, 0x003c },
	{ "cpu-cycles", KSCOPE_HARDWARE, 0, 0x003c },
	{ "instructions", KSCOPE_HARDWARE, 1, 0x00c0 },
	{ "cache-references", KSCOPE_HARDWARE, 2, 0x4f2e },
	{ "cache-misses", KSCOPE_HARDWARE, 3, 0x412e },
	{ "branches", KSCOPE_HARDWARE, 4, 0x00c4 },
	{ "branch-instructions", KSCOPE_HARDWARE, 4, 0x00c4 },
	{ "branch-misses", KSCOPE_HARDWARE, 5, 0x00c5 },
	{ "bus-cycles", KSCOPE_HARDWARE, 6, 0x013c },
	{ "ref-cycles", KSCOPE_HARDWARE, 9, REF_CYCLES },
	{ 0 },
};

/* By their bits in CPUID */
static const uint16_t architectural[] = { 0x003c, 0x00c0, 0x013c, 0x4f2e, 0x412e, 0x00c4, 0x00c5 };
static const uint16_t fixed_events[FIXED_COUNTERS] = { 0x00c0, 0x003c, REF_CYCLES };

static bool is_available(uint64_t raw)
{
	for (unsigned i = 0; i < sizeof(architectural) / sizeof(architectural[0]); i++) {
		if (raw == architectural[i])
			return !(machine.missing >> i & 1);
	}
	return true;
}

/* ---- registers ---- */

static bool is_fixed(unsigned counter)
{
	return counter < machine.fixed;
}

/* The bit in the global registers */
static uint64_t place(unsigned counter)
{
	return 1ull << (is_fixed(counter) ? FIXED_PLACE + counter : counter - machine.fixed);
}

static uint64_t all_places(void)
{
	return ((1ull << machine.fixed) - 1) << FIXED_PLACE | ((1ull << machine.general) - 1);
}

static uint32_t select_msr(unsigned counter)
{
	return EVENT_SELECT + counter - machine.fixed;
}

static uint32_t count_msr(unsigned counter)
{
	if (is_fixed(counter))
		return FIXED + counter;
	return (machine.wide ? PMC_WIDE : PMC) + counter - machine.fixed;
}

static unsigned width(unsigned counter)
{
	return is_fixed(counter) ? machine.fixed_width : machine.width;
}

/* ---- the interface ---- */

/* Bits of EAX without a bit in EBX are of events that the processor does not know. */
static bool read_machine(void)
{
	uint32_t r[4];
	unsigned known;

	read_cpuid(0, r);
	if (r[0] < 10)
		return false;
	read_cpuid(10, r);
	machine.version = r[0] & 0xff;
	machine.general = r[0] >> 8 & 0xff;
	machine.width = r[0] >> 16 & 0xff;
	known = r[0] >> 24;
	machine.missing = known < 32 ? r[1] | ~0u << known : r[1];
	machine.fixed = machine.version >= 2 ? r[3] & 0x1f : 0;
	machine.fixed_width = r[3] >> 5 & 0xff;
	if (!machine.version || !machine.general || machine.width < 32 || machine.width > 64)
		return false;
	if (machine.fixed_width < 32 || machine.fixed_width > 64)
		machine.fixed = 0;
	if (machine.fixed > FIXED_COUNTERS)
		machine.fixed = FIXED_COUNTERS;
	if (machine.general > KSCOPE_EVENTS - 1 - machine.fixed)
		machine.general = KSCOPE_EVENTS - 1 - machine.fixed;
	read_cpuid(1, r);
	machine.wide = r[2] & HAS_CAPABILITIES && read_msr(CAPABILITIES) & CAPABILITY_WIDE;
	return true;
}

/*
 * Fixed counters share a control register, which an NMI may change between a read and a write. So they always run;
 * one that is stopped begins at 0, and the overflow after hours is not asked for.
 */
static unsigned x86_init(void)
{
	uint64_t control = 0;

	if (!read_machine())
		return 0;
	for (unsigned i = 0; i < machine.general; i++)
		write_msr(EVENT_SELECT + i, 0);
	for (unsigned i = 0; i < machine.fixed; i++) {
		write_msr(FIXED + i, 0);
		control |= FIXED_ON << (FIXED_SHIFT * i);
	}
	if (machine.fixed)
		write_msr(FIXED_CONTROL, control);
	if (machine.version >= 2) {
		write_msr(GLOBAL_CLEAR, all_places());
		write_msr(GLOBAL_CONTROL, all_places());
	}
	return machine.fixed + machine.general;
}

static bool x86_takes(unsigned counter, const struct kscope_event *event)
{
	if (is_fixed(counter))
		return event->raw == fixed_events[counter];
	return event->raw != REF_CYCLES && !(event->raw & ~RAW_BITS) && is_available(event->raw);
}

/* Without the wide registers, bit 31 is the sign. Version 1 tells by the sign what has overflowed. */
static uint64_t x86_period_max(unsigned counter)
{
	if (!is_fixed(counter) && !machine.wide)
		return INT32_MAX;
	return (1ull << (width(counter) - 1)) - 1;
}

static uint64_t preload(unsigned counter, uint64_t period)
{
	if (!is_fixed(counter) && !machine.wide)
		return (uint32_t)-period;
	return -period & (UINT64_MAX >> (64 - width(counter)));
}

static void x86_set(unsigned counter, const struct kscope_event *event, uint64_t period)
{
	uint64_t select = 0;

	if (!is_fixed(counter)) {
		select = event ? event->raw : read_msr(select_msr(counter)) & RAW_BITS;
		write_msr(select_msr(counter), select & RAW_BITS);
	}
	if (machine.version >= 2)
		write_msr(GLOBAL_CLEAR, place(counter));
	write_msr(count_msr(counter), preload(counter, period));
	if (period && !is_fixed(counter))
		write_msr(select_msr(counter),
			  (select & RAW_BITS) | USER | KERNEL | INTERRUPT | ENABLE);
}

/* A counter is negative until it overflows. */
static bool has_overflowed(unsigned counter)
{
	return read_msr(select_msr(counter)) & ENABLE &&
	       !(read_msr(count_msr(counter)) >> (width(counter) - 1) & 1);
}

static uint32_t x86_overflows(void)
{
	uint64_t status = machine.version >= 2 ? read_msr(GLOBAL_STATUS) & all_places() : 0;
	uint32_t result = 0;

	if (status)
		write_msr(GLOBAL_CLEAR, status);
	for (unsigned counter = 0; counter < machine.fixed + machine.general; counter++) {
		bool is_set = machine.version >= 2 ? (status & place(counter)) != 0
						   : has_overflowed(counter);

		result |= (uint32_t)is_set << counter;
	}
	return result;
}

const struct kscope_pmu kscope_pmu_x86 = {
	.name = "x86",
	.events = events,
	.init = x86_init,
	.takes = x86_takes,
	.set = x86_set,
	.overflows = x86_overflows,
	.period_max = x86_period_max,
};

// SPDX-License-Identifier: MIT
/*
 * pmu_armv8: the counters of AArch64, PMUv3, for a kernel in EL1 or EL2. They count in EL0 and in the kernel.
 *
 * The kernel routes the interrupt, which is a level (usually PPI 23), to kscope_counter(), on each cpu. If there is
 * firmware or a hypervisor above it, that must let it use the PMU (MDCR_EL2.TPM and MDCR_EL3.TPM are 0) and count
 * there (MDCR_EL3.SPME, for a secure kernel).
 *
 * A period begins when it is set: what the interrupt did before, above all the sample, does not count.
 *
 * QEMU with -icount (7.2 and 10.0) looks at an event counter one event before it overflows, and then not again, until
 * some other counter is due or an exception comes. Where kscope_pmu_armv8_qemu is true, each event counter has the
 * next one as its companion, which starts a little later with the same period: QEMU looks again in time. Only half of
 * the event counters are left then. The cycle counter is exact without.
 */
#include "kscope.h"

/* Bits of PMCR_EL0 */
#define ENABLE (1u << 0)
#define CYCLES_64 (1u << 6) /* LC */
#define EVENTS_64 (1u << 7) /* LP */
#define COUNTERS_SHIFT 11
#define COUNTERS_MASK 0x1f

#define VERSION_V3P5 6
#define VERSION_OTHER 0xf /* a PMU that is none of these */

#define CPU_CYCLES 0x11
#define PC_WRITE_RETIRED 0x0c
#define BR_RETIRED 0x21
#define COUNT_EL2 (1u << 27) /* in filters, which are 0 to count EL0 and EL1 */

/*
 * Counter 0 is the cycle counter, so that cycles get it first; the others are the event counters, as many as there can
 * be events. In registers, the cycle counter is bit 31, and event counter n is bit n.
 */
#define CYCLE_COUNTER 0
#define CYCLE_BIT 31
#define EVENT_COUNTERS (KSCOPE_EVENTS - 2)
_Static_assert(EVENT_COUNTERS == 6, "the registers that have their number in their names");

bool kscope_pmu_armv8_qemu;

#define READ(register)                                                 \
	({                                                             \
		uint64_t value_;                                       \
		__asm__ volatile("mrs %0, " #register : "=r"(value_)); \
		value_;                                                \
	})
#define WRITE(register, value) __asm__ volatile("msr " #register ", %0" : : "r"((uint64_t)(value)))
#define EACH(n, what)           \
	switch (n) {            \
	case 0: what(0); break; \
	case 1: what(1); break; \
	case 2: what(2); break; \
	case 3: what(3); break; \
	case 4: what(4); break; \
	case 5: what(5); break; \
	}

/* ---- registers. Not by PMSELR_EL0: an NMI may come between the selection and the access. ---- */

static void barrier(void)
{
	__asm__ volatile("isb" ::: "memory");
}

static void write_type(unsigned n, uint64_t value)
{
#define WRITE_TYPE(number) WRITE(pmevtyper##number##_el0, value)
	EACH(n, WRITE_TYPE)
}

static void write_count(unsigned n, uint64_t value)
{
#define WRITE_COUNT(number) WRITE(pmevcntr##number##_el0, value)
	EACH(n, WRITE_COUNT)
}

static unsigned version(void)
{
	return READ(id_aa64dfr0_el1) >> 8 & 0xf;
}

static bool in_el2(void)
{
	return (READ(CurrentEL) >> 2 & 3) == 2;
}

static uint64_t filter(void)
{
	return in_el2() ? COUNT_EL2 : 0;
}

/* Those that the kernel may use: EL2 can keep some from EL1, which then sees fewer, and from itself. */
static unsigned event_counters(void)
{
	unsigned nr = READ(pmcr_el0) >> COUNTERS_SHIFT & COUNTERS_MASK;

	if (in_el2() && (READ(mdcr_el2) & COUNTERS_MASK) < nr)
		nr = READ(mdcr_el2) & COUNTERS_MASK;
	return nr < EVENT_COUNTERS ? nr : EVENT_COUNTERS;
}

/* Event counters from one of ours to the next. */
static unsigned step(void)
{
	return kscope_pmu_armv8_qemu ? 2 : 1;
}

static unsigned event_counter(unsigned counter)
{
	return (counter - 1) * step();
}

/* Which bit in the registers is the counter's. */
static unsigned place(unsigned counter)
{
	return counter == CYCLE_COUNTER ? CYCLE_BIT : event_counter(counter);
}

/* The counter's bit, and that of its companion. */
static uint64_t bits(unsigned counter)
{
	if (counter == CYCLE_COUNTER)
		return 1ull << CYCLE_BIT;
	return (kscope_pmu_armv8_qemu ? 3ull : 1ull) << event_counter(counter);
}

/* ---- events ---- */

/* PMCEID0 and 1 have a bit for each event that is common to all processors: 0 to 0x3f and 0x4000 to 0x403f. */
static bool is_implemented(uint64_t number)
{
	uint64_t low = READ(pmceid0_el0), high = READ(pmceid1_el0);

	if (number < 0x40)
		return (number < 0x20 ? low : high) >> (number & 0x1f) & 1;
	if (number >= 0x4000 && number < 0x4040)
		return (number < 0x4020 ? low : high) >> (32 + (number & 0x1f)) & 1;
	return number <= 0xffff;
}

/* Processors count branches as one of two events; perf prefers the same one. */
static uint64_t number_of(const struct kscope_event *event)
{
	if (event->type == KSCOPE_HARDWARE && event->raw == PC_WRITE_RETIRED &&
	    is_implemented(BR_RETIRED))
		return BR_RETIRED;
	return event->raw;
}

static const struct kscope_event events[] = {
	/* As perf maps its general events */
	{ "cycles", KSCOPE_HARDWARE, 0, CPU_CYCLES },
	{ "cpu-cycles", KSCOPE_HARDWARE, 0, CPU_CYCLES },
	{ "instructions", KSCOPE_HARDWARE, 1, 0x08 },
	{ "cache-references", KSCOPE_HARDWARE, 2, 0x04 },
	{ "cache-misses", KSCOPE_HARDWARE, 3, 0x03 },
	{ "branches", KSCOPE_HARDWARE, 4, PC_WRITE_RETIRED },
	{ "branch-instructions", KSCOPE_HARDWARE, 4, PC_WRITE_RETIRED },
	{ "branch-misses", KSCOPE_HARDWARE, 5, 0x10 },
	{ "bus-cycles", KSCOPE_HARDWARE, 6, 0x1d },
	{ "stalled-cycles-frontend", KSCOPE_HARDWARE, 7, 0x23 },
	{ "stalled-cycles-backend", KSCOPE_HARDWARE, 8, 0x24 },
/* The architecture's, by the names that they have in Linux' armv8_pmuv3 */
#define EVENT(number, name)                      \
	{                                        \
		name, KSCOPE_RAW, number, number \
	}
	EVENT(0x00, "sw_incr"),
	EVENT(0x01, "l1i_cache_refill"),
	EVENT(0x02, "l1i_tlb_refill"),
	EVENT(0x03, "l1d_cache_refill"),
	EVENT(0x04, "l1d_cache"),
	EVENT(0x05, "l1d_tlb_refill"),
	EVENT(0x06, "ld_retired"),
	EVENT(0x07, "st_retired"),
	EVENT(0x08, "inst_retired"),
	EVENT(0x09, "exc_taken"),
	EVENT(0x0a, "exc_return"),
	EVENT(0x0b, "cid_write_retired"),
	EVENT(PC_WRITE_RETIRED, "pc_write_retired"),
	EVENT(0x0d, "br_immed_retired"),
	EVENT(0x0e, "br_return_retired"),
	EVENT(0x0f, "unaligned_ldst_retired"),
	EVENT(0x10, "br_mis_pred"),
	EVENT(CPU_CYCLES, "cpu_cycles"),
	EVENT(0x12, "br_pred"),
	EVENT(0x13, "mem_access"),
	EVENT(0x14, "l1i_cache"),
	EVENT(0x15, "l1d_cache_wb"),
	EVENT(0x16, "l2d_cache"),
	EVENT(0x17, "l2d_cache_refill"),
	EVENT(0x18, "l2d_cache_wb"),
	EVENT(0x19, "bus_access"),
	EVENT(0x1a, "memory_error"),
	EVENT(0x1b, "inst_spec"),
	EVENT(0x1c, "ttbr_write_retired"),
	EVENT(0x1d, "bus_cycles"),
	EVENT(0x1f, "l1d_cache_allocate"),
	EVENT(0x20, "l2d_cache_allocate"),
	EVENT(BR_RETIRED, "br_retired"),
	EVENT(0x22, "br_mis_pred_retired"),
	EVENT(0x23, "stall_frontend"),
	EVENT(0x24, "stall_backend"),
	EVENT(0x25, "l1d_tlb"),
	EVENT(0x26, "l1i_tlb"),
	EVENT(0x27, "l2i_cache"),
	EVENT(0x28, "l2i_cache_refill"),
	EVENT(0x29, "l3d_cache_allocate"),
	EVENT(0x2a, "l3d_cache_refill"),
	EVENT(0x2b, "l3d_cache"),
	EVENT(0x2c, "l3d_cache_wb"),
	EVENT(0x2d, "l2d_tlb_refill"),
	EVENT(0x2e, "l2i_tlb_refill"),
	EVENT(0x2f, "l2d_tlb"),
	EVENT(0x30, "l2i_tlb"),
	EVENT(0x31, "remote_access"),
	EVENT(0x32, "ll_cache"),
	EVENT(0x33, "ll_cache_miss"),
	EVENT(0x34, "dtlb_walk"),
	EVENT(0x35, "itlb_walk"),
	EVENT(0x36, "ll_cache_rd"),
	EVENT(0x37, "ll_cache_miss_rd"),
	EVENT(0x38, "remote_access_rd"),
	EVENT(0x39, "l1d_cache_lmiss_rd"),
	EVENT(0x3a, "op_retired"),
	EVENT(0x3b, "op_spec"),
	EVENT(0x3c, "stall"),
	EVENT(0x3d, "stall_slot_backend"),
	EVENT(0x3e, "stall_slot_frontend"),
	EVENT(0x3f, "stall_slot"),
	{ 0 },
};

/* ---- the interface ---- */

static void stop(uint64_t which)
{
	WRITE(pmcntenclr_el0, which);
	WRITE(pmintenclr_el1, which);
	barrier();
	WRITE(pmovsclr_el0, which);
}

static unsigned armv8_init(void)
{
	unsigned nr;

	if (version() == 0 || version() == VERSION_OTHER)
		return 0;
	nr = event_counters();
	stop(1ull << CYCLE_BIT | ((1ull << nr) - 1));
	WRITE(pmcr_el0, ENABLE | CYCLES_64 | (version() >= VERSION_V3P5 ? EVENTS_64 : 0));
	WRITE(pmccfiltr_el0, filter());
	barrier();
	return 1 + nr / step();
}

static bool armv8_takes(unsigned counter, const struct kscope_event *event)
{
	if (counter == CYCLE_COUNTER)
		return event->raw == CPU_CYCLES;
	return is_implemented(number_of(event));
}

/* Also all the bits that a counter has. */
static uint64_t armv8_period_max(unsigned counter)
{
	return counter == CYCLE_COUNTER || version() >= VERSION_V3P5 ? UINT64_MAX : UINT32_MAX;
}

static void set_type(unsigned counter, const struct kscope_event *event)
{
	for (unsigned i = 0; i < step(); i++)
		write_type(event_counter(counter) + i, filter() | number_of(event));
}

/* The overflow comes with the last event of the period: the counter becomes 0 then. */
static void load(unsigned counter, uint64_t period)
{
	uint64_t count = -period & armv8_period_max(counter);

	if (counter == CYCLE_COUNTER) {
		WRITE(pmccntr_el0, count);
		return;
	}
	for (unsigned i = 0; i < step(); i++)
		write_count(event_counter(counter) + i, count);
}

/*
 * The count comes last, when the counter already runs: QEMU before 7.2 forgets what was written before. From 0, a
 * counter does not overflow in between.
 */
static void armv8_set(unsigned counter, const struct kscope_event *event, uint64_t period)
{
	stop(bits(counter));
	if (!period)
		return;
	if (event && counter != CYCLE_COUNTER)
		set_type(counter, event);
	load(counter, 0);
	WRITE(pmintenset_el1, 1ull << place(counter));
	WRITE(pmcntenset_el0, bits(counter));
	barrier();
	load(counter, period);
	barrier();
}

/* Counters that do not interrupt are not ours, or companions: they keep their flags. */
static uint32_t armv8_overflows(void)
{
	uint64_t flags = READ(pmovsclr_el0) & READ(pmintenset_el1);
	uint32_t counters = 0;

	WRITE(pmovsclr_el0, flags);
	barrier();
	for (unsigned counter = 0; counter <= EVENT_COUNTERS / step(); counter++)
		counters |= (uint32_t)(flags >> place(counter) & 1) << counter;
	return counters;
}

const struct kscope_pmu kscope_pmu_armv8 = {
	.name = "armv8_pmuv3",
	.events = events,
	.init = armv8_init,
	.takes = armv8_takes,
	.set = armv8_set,
	.overflows = armv8_overflows,
	.period_max = armv8_period_max,
};

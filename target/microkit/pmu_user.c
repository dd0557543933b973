// SPDX-License-Identifier: MIT
/*
 * pmu_user: the counters of AArch64 for user code, where the kernel exports them. pmu_armv8 is for kernels: it uses
 * registers that user code cannot. A kernel with PMU faults has switched the interrupts of all counters on; which events
 * there are is the same. Code in the kernel is not counted, because seL4 runs in EL2.
 */
#include "domain.h"

#define READ(register)                                                 \
	({                                                             \
		uint64_t value_;                                       \
		__asm__ volatile("mrs %0, " #register : "=r"(value_)); \
		value_;                                                \
	})
#define WRITE(register, value) \
	__asm__ volatile("msr " #register ", %0\n\tisb" ::"r"((uint64_t)(value)) : "memory")

/* Bits of PMCR_EL0 */
#define ENABLE (1u << 0)
#define CYCLES_64 (1u << 6)
#define COUNTERS_SHIFT 11
#define COUNTERS_MASK 0x1f

#define CPU_CYCLES 0x11

/* Counter 0 is the cycle counter, bit 31 in the registers; counter n is event counter n - 1. */
#define CYCLE_COUNTER 0
#define CYCLE_BIT 31
#define EVENT_COUNTERS (KSCOPE_EVENTS - 2)

static uint64_t bit(unsigned counter)
{
	return 1ull << (counter == CYCLE_COUNTER ? CYCLE_BIT : counter - 1);
}

static unsigned event_counters(void)
{
	unsigned nr = READ(pmcr_el0) >> COUNTERS_SHIFT & COUNTERS_MASK;

	return nr < EVENT_COUNTERS ? nr : EVENT_COUNTERS;
}

static void stop(uint64_t which)
{
	WRITE(pmcntenclr_el0, which);
	WRITE(pmovsclr_el0, which);
}

static unsigned user_init(void)
{
	unsigned nr = event_counters();

	stop(1ull << CYCLE_BIT | ((1ull << nr) - 1));
	WRITE(pmcr_el0, ENABLE | CYCLES_64);
	WRITE(pmccfiltr_el0, 0);
	return 1 + nr;
}

static bool user_takes(unsigned counter, const struct kscope_event *event)
{
	uint64_t known = event->raw < 0x20 ? READ(pmceid0_el0) : READ(pmceid1_el0);

	if (counter == CYCLE_COUNTER)
		return event->raw == CPU_CYCLES;
	/* Of events beyond these, the registers say nothing. */
	return event->raw > 0x3f ? event->raw <= 0xffff : known >> (event->raw & 0x1f) & 1;
}

static uint64_t user_period_max(unsigned counter)
{
	return counter == CYCLE_COUNTER ? UINT64_MAX : UINT32_MAX;
}

/* Of a cpu with one task, nothing comes between the selection and the access. */
static void load(unsigned counter, const struct kscope_event *event, uint64_t period)
{
	if (counter == CYCLE_COUNTER) {
		WRITE(pmccntr_el0, -period);
		return;
	}
	WRITE(pmselr_el0, counter - 1);
	if (event)
		WRITE(pmxevtyper_el0, event->raw);
	WRITE(pmxevcntr_el0, -period & UINT32_MAX);
}

static void user_set(unsigned counter, const struct kscope_event *event, uint64_t period)
{
	stop(bit(counter));
	if (!period)
		return;
	load(counter, event, period);
	WRITE(pmcntenset_el0, bit(counter));
	/* Some versions of QEMU forget what was written while the counter was off. */
	load(counter, event, period);
}

static uint32_t user_overflows(void)
{
	uint64_t flags = READ(pmovsclr_el0);
	uint32_t counters = 0;

	WRITE(pmovsclr_el0, flags);
	for (unsigned counter = 0; counter <= EVENT_COUNTERS; counter++)
		counters |= (uint32_t) !!(flags & bit(counter)) << counter;
	return counters;
}

struct kscope_pmu domain_pmu = {
	.name = "armv8_pmuv3",
	.init = user_init,
	.takes = user_takes,
	.set = user_set,
	.overflows = user_overflows,
	.period_max = user_period_max,
};

// SPDX-License-Identifier: MIT
/*
 * pmu_riscv: the counters of RISC-V, for a kernel in S-mode: the firmware's PMU extension (SBI 0.3 and later) programs
 * them, Sscofpmf interrupts. They count in U-mode and S-mode; whether also in M-mode is up to the firmware.
 *
 * The kernel calls kscope_counter() at interrupt 13, on each cpu; init() enables that in sie.
 *
 * The firmware knows the counters, but does not say whether they interrupt. The device tree does; this driver asks the
 * processor, so that a kernel without device tree needs not say it: it reads scountovf, with a trap vector of its own.
 *
 * A period begins when it is set: what the interrupt did before, above all the sample, does not count.
 */
#include "kscope.h"

#define SBI_BASE 0x10
#define SBI_PROBE 3
#define SBI_PMU 0x504d55
enum sbi_pmu {
	NUM_COUNTERS = 0,
	COUNTER_GET_INFO = 1,
	COUNTER_CONFIG_MATCHING = 2,
	COUNTER_START = 3,
	COUNTER_STOP = 4,
};

/* Flags */
#define CONFIG_CLEAR_VALUE 2
#define START_SET_VALUE 1
#define STOP_RESET 1

/* The answer of COUNTER_GET_INFO */
#define INFO_CSR(info) ((info)&0xfff)
#define INFO_WIDTH(info) (((info) >> 12 & 0x3f) + 1)
#define INFO_IS_FIRMWARE(info) ((long)(info) < 0)

/* CSRs: hpmcounter3 to 31 interrupt; cycle, time and instret do not. */
#define CSR_CYCLE 0xc00
#define CSR_HPMCOUNTER3 0xc03
#define CSR_HPMCOUNTER31 0xc1f
#define OVERFLOW_INTERRUPT (1ul << 13) /* in sie and sip */

#define EVENT_RAW 0x20000

#define COUNTERS (KSCOPE_EVENTS - 1)

/* The same on all cpus */
static struct {
	uint8_t index; /* the firmware's */
	uint8_t place; /* the bit in scountovf */
	uint8_t width;
} counters[COUNTERS];
static unsigned nr_counters;

struct answer {
	long error;
	unsigned long value;
};

/* ---- the firmware and the processor ---- */

static struct answer sbi(unsigned long extension, unsigned long function,
			 const unsigned long *arguments)
{
	register unsigned long a0 __asm__("a0") = arguments[0];
	register unsigned long a1 __asm__("a1") = arguments[1];
	register unsigned long a2 __asm__("a2") = arguments[2];
	register unsigned long a3 __asm__("a3") = arguments[3];
	register unsigned long a4 __asm__("a4") = arguments[4];
	register unsigned long a5 __asm__("a5") = arguments[5];
	register unsigned long a6 __asm__("a6") = function;
	register unsigned long a7 __asm__("a7") = extension;

	__asm__ volatile("ecall"
			 : "+r"(a0), "+r"(a1)
			 : "r"(a2), "r"(a3), "r"(a4), "r"(a5), "r"(a6), "r"(a7)
			 : "memory");
	return (struct answer){ (long)a0, a1 };
}

static bool has_extension(void)
{
	struct answer answer = sbi(SBI_BASE, SBI_PROBE, (unsigned long[6]){ SBI_PMU });

	return !answer.error && answer.value;
}

/* A number of 64 bits takes two arguments on a 32-bit machine. */
#if __riscv_xlen == 32
#define NUMBER_64(value) (unsigned long)(value), (unsigned long)((value) >> 32)
#else
#define NUMBER_64(value) (value)
#endif

/* Returns the firmware's number of the counter that it chose. */
static struct answer configure(unsigned counter, unsigned long event, uint64_t data)
{
	return sbi(SBI_PMU, COUNTER_CONFIG_MATCHING,
		   (unsigned long[6]){ counters[counter].index, 1, CONFIG_CLEAR_VALUE, event,
				       NUMBER_64(data) });
}

static void start(unsigned counter, uint64_t value)
{
	sbi(SBI_PMU, COUNTER_START,
	    (unsigned long[6]){ counters[counter].index, 1, START_SET_VALUE, NUMBER_64(value) });
}

static void stop(unsigned counter, unsigned long flags)
{
	sbi(SBI_PMU, COUNTER_STOP, (unsigned long[6]){ counters[counter].index, 1, flags });
}

static unsigned long read_scountovf(void)
{
	unsigned long value;

	__asm__ volatile("csrr %0, 0xda0" : "=r"(value));
	return value;
}

static bool has_overflowed(unsigned counter)
{
	return read_scountovf() >> counters[counter].place & 1;
}

/* Returns whether an interrupt was pending. */
static bool clear_interrupt(void)
{
	unsigned long before;

	__asm__ volatile("csrrc %0, sip, %1" : "=r"(before) : "r"(OVERFLOW_INTERRUPT) : "memory");
	return before & OVERFLOW_INTERRUPT;
}

/*
 * If scountovf does not exist, the processor traps to the label; otherwise it gets there by itself. Interrupts are off
 * meanwhile, and the registers of the trap are as they were afterwards.
 */
static bool has_sscofpmf(void)
{
	unsigned long exists, status, vector, pc, cause, value, scratch;

	__asm__ volatile("	csrrci %[status], sstatus, 2\n"
			 "	csrr %[pc], sepc\n"
			 "	csrr %[cause], scause\n"
			 "	csrr %[value], stval\n"
			 "	li %[exists], 0\n"
			 "	la %[scratch], 1f\n"
			 "	csrrw %[vector], stvec, %[scratch]\n"
			 "	csrr %[scratch], 0xda0\n"
			 "	li %[exists], 1\n"
			 "	.balign 4\n"
			 "1:	csrw stvec, %[vector]\n"
			 "	csrw stval, %[value]\n"
			 "	csrw scause, %[cause]\n"
			 "	csrw sepc, %[pc]\n"
			 "	csrw sstatus, %[status]\n"
			 : [exists] "=&r"(exists), [status] "=&r"(status), [vector] "=&r"(vector),
			   [pc] "=&r"(pc), [cause] "=&r"(cause), [value] "=&r"(value),
			   [scratch] "=&r"(scratch)
			 :
			 : "memory");
	return exists;
}

/* ---- events ---- */

/* SBI has the general events of perf, in their order, from 1. */
#define EVENT(number, name)                                 \
	{                                                   \
		name, KSCOPE_HARDWARE, number, (number) + 1 \
	}
static const struct kscope_event events[] = {
	EVENT(0, "cycles"),
	EVENT(0, "cpu-cycles"),
	EVENT(1, "instructions"),
	EVENT(2, "cache-references"),
	EVENT(3, "cache-misses"),
	EVENT(4, "branches"),
	EVENT(4, "branch-instructions"),
	EVENT(5, "branch-misses"),
	EVENT(6, "bus-cycles"),
	EVENT(7, "stalled-cycles-frontend"),
	EVENT(8, "stalled-cycles-backend"),
	EVENT(9, "ref-cycles"),
	{ 0 },
};

/* Where none of ours is good for cycles or instructions, firmware offers its fixed counters, which do not interrupt. */
static bool choose(unsigned counter, const struct kscope_event *event)
{
	bool is_raw = event->type == KSCOPE_RAW;
	struct answer answer = configure(counter, is_raw ? EVENT_RAW : (unsigned long)event->raw,
					 is_raw ? event->raw : 0);

	return !answer.error && answer.value == counters[counter].index;
}

/* ---- the interface ---- */

static void add_counter(unsigned long index)
{
	struct answer answer = sbi(SBI_PMU, COUNTER_GET_INFO, (unsigned long[6]){ index });
	unsigned long csr = INFO_CSR(answer.value);

	if (answer.error || INFO_IS_FIRMWARE(answer.value) || csr < CSR_HPMCOUNTER3 ||
	    csr > CSR_HPMCOUNTER31)
		return;
	counters[nr_counters].index = (uint8_t)index;
	counters[nr_counters].place = (uint8_t)(csr - CSR_CYCLE);
	counters[nr_counters].width = INFO_WIDTH(answer.value);
	nr_counters++;
}

static void find_counters(void)
{
	struct answer answer = sbi(SBI_PMU, NUM_COUNTERS, (unsigned long[6]){ 0 });
	unsigned long nr = answer.error ? 0 : answer.value;

	for (unsigned long index = 0; index < nr && index < 256 && nr_counters < COUNTERS; index++)
		add_counter(index);
}

static unsigned riscv_init(void)
{
	if (!has_sscofpmf() || !has_extension())
		return 0;
	if (!nr_counters)
		find_counters();
	for (unsigned counter = 0; counter < nr_counters; counter++)
		stop(counter, STOP_RESET);
	clear_interrupt();
	__asm__ volatile("csrs sie, %0" : : "r"(OVERFLOW_INTERRUPT));
	return nr_counters;
}

/* Tries it. */
static bool riscv_takes(unsigned counter, const struct kscope_event *event)
{
	bool takes = choose(counter, event);

	if (takes)
		stop(counter, STOP_RESET);
	return takes;
}

/* Also all the bits that a counter has. */
static uint64_t riscv_period_max(unsigned counter)
{
	return UINT64_MAX >> (64 - counters[counter].width);
}

/*
 * OpenSBI clears the overflow when it starts a counter, but only if no interrupt is pending. One may come from another
 * counter: it is taken back before and made pending again afterwards, and if it came in between, all that is repeated.
 * A period can be so short that it is over at once, so not forever.
 */
static void restart(unsigned counter, uint64_t period)
{
	bool pending = false;

	for (unsigned tries = 0; tries < 3; tries++) {
		stop(counter, 0);
		pending |= clear_interrupt();
		start(counter, -period & riscv_period_max(counter));
		if (!has_overflowed(counter))
			break;
		pending = true;
	}
	if (pending)
		__asm__ volatile("csrs sip, %0" : : "r"(OVERFLOW_INTERRUPT) : "memory");
}

static void riscv_set(unsigned counter, const struct kscope_event *event, uint64_t period)
{
	if (event || !period)
		stop(counter, STOP_RESET);
	if (event && period && !choose(counter, event))
		return;
	if (period)
		restart(counter, period);
}

/* They stay in scountovf until they are set again. */
static uint32_t riscv_overflows(void)
{
	uint32_t result = 0;

	clear_interrupt();
	for (unsigned counter = 0; counter < nr_counters; counter++)
		result |= (uint32_t)has_overflowed(counter) << counter;
	return result;
}

const struct kscope_pmu kscope_pmu_riscv = {
	.name = "riscv_sbi",
	.events = events,
	.init = riscv_init,
	.takes = riscv_takes,
	.set = riscv_set,
	.overflows = riscv_overflows,
	.period_max = riscv_period_max,
};

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The machines of pmu.c: QEMU's virt with AArch64, in EL1 or EL2, or with RISC-V, below OpenSBI. */
#ifndef KSCOPE_TESTS_GUEST_PMU_MACHINE_H
#define KSCOPE_TESTS_GUEST_PMU_MACHINE_H

#include "target/kscope.h"
#ifdef __riscv
#include "target/timer_sbi.h"
#endif

/* pmu.c */
void guest_main(void);
void counter_interrupt(bool user);

/* pmu_aarch64.S, pmu_riscv64.S */
void run_user(void (*function)(void)); /* with interrupts on, until it calls leave_user() */
void trap_c(unsigned kind);

#ifdef __aarch64__

#define REG(address) (*(volatile uint32_t *)(address))
#define TRAP_INTERRUPT 1
#define PMU_INTERRUPT 23
#define TOGETHER KSCOPE_EVENTS
#define OVERFLOWS_ARE_CLEARED true

static const struct kscope_pmu *const pmu = &kscope_pmu_armv8;

static inline void put_char(char c)
{
	REG(0x09000000) = (uint8_t)c;
}

static inline bool are_counting(void)
{
	uint64_t enabled;

	__asm__ volatile("mrs %0, pmcntenset_el0" : "=r"(enabled));
	return enabled;
}

static inline uint64_t time_timer(uint64_t ns)
{
	return ns; /* there is no timer to test */
}

static inline uint64_t now(void)
{
	uint64_t count, hertz;

	__asm__ volatile("isb; mrs %0, cntvct_el0; mrs %1, cntfrq_el0" : "=r"(count), "=r"(hertz));
	return count * (1000000000 / hertz);
}

static inline void interrupts_on(void)
{
	__asm__ volatile("msr daifclr, #2; isb" ::: "memory");
}

static inline void interrupts_off(void)
{
	__asm__ volatile("msr daifset, #2" ::: "memory");
}

static inline void wait(void)
{
	__asm__ volatile("wfi" ::: "memory");
}

static inline void leave_user(void)
{
	__asm__ volatile("svc #0" ::: "memory");
}

static inline void machine_init(void)
{
#ifndef NO_COMPANIONS
	kscope_pmu_armv8_qemu = true;
#endif
	REG(0x08000000) = 1;
	REG(0x08000100) = 1u << PMU_INTERRUPT;
	REG(0x08010004) = 0xff;
	REG(0x08010000) = 1;
}

static inline bool from_user(void)
{
	uint64_t level, state;

	__asm__ volatile("mrs %0, CurrentEL" : "=r"(level));
	if (level == 2 << 2)
		__asm__ volatile("mrs %0, spsr_el2" : "=r"(state));
	else
		__asm__ volatile("mrs %0, spsr_el1" : "=r"(state));
	return (state & 0xf) == 0;
}

static inline _Noreturn void power_off(void)
{
	register uint64_t x0 __asm__("x0") = 0x84000008;
	uint64_t level;

	__asm__ volatile("mrs %0, CurrentEL" : "=r"(level));
	if (level == 2 << 2)
		__asm__ volatile("smc #0" : : "r"(x0));
	else
		__asm__ volatile("hvc #0" : : "r"(x0));
	for (;;)
		wait();
}

static inline void fail(void)
{
	put_char('?');
	power_off();
}

/* Called with the kind of the vector. */
static inline void handle_trap(unsigned kind)
{
	uint32_t number = REG(0x0801000c);

	if (kind != TRAP_INTERRUPT)
		fail();
	if ((number & 0x3ff) == PMU_INTERRUPT) {
		counter_interrupt(from_user());
		REG(0x08010010) = number;
	}
}

#else /* RISC-V */

#define TOGETHER 2		    /* QEMU has one counter for each event */
#define OVERFLOWS_ARE_CLEARED false /* until the counter is set again */
#define TIMEBASE 10000000
#define CAUSE_INTERRUPT (1ul << (__riscv_xlen - 1))
#define COUNTER_INTERRUPT 13
#define TIMER_INTERRUPT 5

static const struct kscope_pmu *const pmu = &kscope_pmu_riscv;
static volatile unsigned timer_interrupts;

static inline long sbi(unsigned long extension, unsigned long function, unsigned long argument)
{
	register unsigned long a0 __asm__("a0") = argument;
	register unsigned long a1 __asm__("a1") = 0;
	register unsigned long a6 __asm__("a6") = function;
	register unsigned long a7 __asm__("a7") = extension;

	__asm__ volatile("ecall" : "+r"(a0), "+r"(a1) : "r"(a6), "r"(a7) : "memory");
	return (long)a1;
}

static inline void put_char(char c)
{
	sbi(1, 0, (unsigned long)c);
}

static inline uint64_t now(void)
{
	uint64_t cycles;

	__asm__ volatile("rdcycle %0" : "=r"(cycles));
	return cycles;
}

static inline void interrupts_on(void)
{
	__asm__ volatile("csrsi sstatus, 2" ::: "memory");
}

static inline void interrupts_off(void)
{
	__asm__ volatile("csrci sstatus, 2" ::: "memory");
}

static inline void wait(void)
{
	__asm__ volatile("wfi" ::: "memory");
}

static inline void leave_user(void)
{
	__asm__ volatile("ecall" ::: "memory");
}

static inline void machine_init(void)
{
	kscope_sbi_timer(0, TIMEBASE);
	__asm__ volatile("csrs sie, %0" : : "r"(1ul << TIMER_INTERRUPT));
}

/* The first two counters */
static inline bool are_counting(void)
{
	unsigned long before[2], after[2];

	__asm__ volatile("csrr %0, 0xc03\n\tcsrr %1, 0xc04" : "=&r"(before[0]), "=&r"(before[1]));
	__asm__ volatile("csrr %0, 0xc03\n\tcsrr %1, 0xc04" : "=&r"(after[0]), "=&r"(after[1]));
	return before[0] != after[0] || before[1] != after[1];
}

/* How long a timer takes that should take so many nanoseconds, by the clock of timer_sbi.h; 0: it never comes. */
static inline uint64_t time_timer(uint64_t ns)
{
	uint64_t begin = kscope_sbi_ns(TIMEBASE);
	unsigned before = timer_interrupts;

	kscope_sbi_timer(ns, TIMEBASE);
	wait();
	interrupts_on();
	interrupts_off();
	return timer_interrupts == before + 1 ? kscope_sbi_ns(TIMEBASE) - begin : 0;
}

static inline _Noreturn void power_off(void)
{
	sbi(0x53525354, 0, 0);
	for (;;)
		wait();
}

static inline void fail(void)
{
	put_char('?');
	power_off();
}

static inline void handle_trap(unsigned kind)
{
	unsigned long cause, status;

	(void)kind;
	__asm__ volatile("csrr %0, scause" : "=r"(cause));
	__asm__ volatile("csrr %0, sstatus" : "=r"(status));
	if (cause == (CAUSE_INTERRUPT | TIMER_INTERRUPT)) {
		timer_interrupts++;
		kscope_sbi_timer(0, TIMEBASE);
	} else if (cause == (CAUSE_INTERRUPT | COUNTER_INTERRUPT)) {
		counter_interrupt(!(status & 0x100));
	} else {
		fail();
	}
}
#endif

#endif

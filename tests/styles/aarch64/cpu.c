// SPDX-License-Identifier: GPL-2.0-or-later
/* AArch64: QEMU's virt machine, in EL1 or EL2. */
#include "common.h"
#include "level.h"

#define DEVICE(address) ((volatile uint32_t *)(address))
#define SERIAL DEVICE(0x09000000)
#define GIC_DISTRIBUTOR DEVICE(0x08000000)
#define GIC_CPU DEVICE(0x08010000)
#define GIC_ENABLE (0x100 / 4)
#define GIC_SOFT (0xf00 / 4)
#define GIC_ACKNOWLEDGE (0xc / 4)
#define GIC_END (0x10 / 4)
#define SOFT 1
#define TIMER 27
#define TO_SELF (2 << 24)
#define TICK_TIME (TICK / 16) /* at 62.5 MHz */

#define PSCI_OFF 0x84000008
#define SEMIHOSTING_EXIT 0x20

#define CLASS_CALL 0x15 /* exception class of svc */

struct frame { /* what a vector leaves on the stack; sp_el0 only of user code */
	uint64_t x[31], pc, status, sp_el0;
};
_Static_assert(sizeof(struct frame) == FRAME_SIZE, "level.h");
_Static_assert(offsetof(struct frame, pc) == FRAME_PC, "level.h");

#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)

void put_char(char c)
{
	SERIAL[0] = (uint8_t)c;
}

_Noreturn void power_off(bool good)
{
	register uint64_t x0 __asm__("x0") = good ? PSCI_OFF : SEMIHOSTING_EXIT;
	const uint64_t block[] = { 0x20026, 1 };
	register const uint64_t *x1 __asm__("x1") = block;

	if (!good)
		__asm__ volatile("hlt #0xf000" : : "r"(x0), "r"(x1) : "memory");
#if LEVEL == 2
	__asm__ volatile("smc #0" : : "r"(x0));
#else
	__asm__ volatile("hvc #0" : : "r"(x0));
#endif
	for (;;)
		__asm__ volatile("wfi");
}

void interrupts_on(void)
{
	__asm__ volatile("msr daifclr, #2" ::: "memory");
}

void interrupts_off(void)
{
	__asm__ volatile("msr daifset, #2" ::: "memory");
}

void trap_call(void)
{
	__asm__ volatile("svc #0" ::: "memory");
}

void soft_interrupt(void)
{
	GIC_DISTRIBUTOR[GIC_SOFT] = TO_SELF | SOFT;
}

static void timer_start(void)
{
	__asm__ volatile("msr cntv_tval_el0, %0" : : "r"((uint64_t)TICK_TIME));
	__asm__ volatile("msr cntv_ctl_el0, %0" : : "r"(1ul));
}

void cpu_init(void)
{
	GIC_DISTRIBUTOR[0] = 1;
	GIC_DISTRIBUTOR[GIC_ENABLE] = 1u << TIMER | 1u << SOFT;
	GIC_CPU[1] = 0xff; /* every priority */
	GIC_CPU[0] = 1;
	timer_start();
}

struct frame *first_frame(void *stack_top, void (*start)(void))
{
	struct frame *frame = (struct frame *)stack_top - 1;

	*frame = (struct frame){ .x[19] = (uintptr_t)start,
				 .x[30] = 0,
				 .pc = (uintptr_t)frame_start,
				 .status = LEVEL << 2 | 1 };
	return frame;
}

void *first_switch(void *stack_top, void (*start)(void))
{
	uint64_t *sp = (uint64_t *)stack_top - 12;

	for (unsigned i = 0; i < 12; i++)
		sp[i] = 0;
	sp[11] = (uintptr_t)start + 4;
	return sp;
}

static struct frame *interrupt(struct frame *frame)
{
	uint32_t number = GIC_CPU[GIC_ACKNOWLEDGE];

	if (number == TIMER)
		timer_start();
	else if (number != SOFT)
		return frame;
	GIC_CPU[GIC_END] = number;
	return style_trap(frame, number == TIMER ? TRAP_TIMER : TRAP_SOFT);
}

struct frame *trap(struct frame *frame, unsigned kind);
struct frame *trap(struct frame *frame, unsigned kind)
{
	uint64_t why;

	if (kind == TRAP_KIND_INTERRUPT)
		return interrupt(frame);
	__asm__ volatile("mrs %0, " TEXT(EL(esr)) : "=r"(why));
	if (kind == TRAP_KIND_SYNC && why >> 26 == CLASS_CALL)
		return style_trap(frame, TRAP_CALL);
	fail("exception in", "aarch64");
}

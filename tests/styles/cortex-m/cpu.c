// SPDX-License-Identifier: GPL-2.0-or-later
/* Cortex-M3 and M4: QEMU's mps2-an385 and mps2-an386. */
#include "common.h"

#define REGISTER(address) (*(volatile uint32_t *)(address))
#define SERIAL_DATA REGISTER(0x40004000)
#define SERIAL_CONTROL REGISTER(0x40004008)
#define SERIAL_DIVIDER REGISTER(0x40004010)
#define TIMER_CONTROL REGISTER(0xe000e010)
#define TIMER_RELOAD REGISTER(0xe000e014)
#define TIMER_VALUE REGISTER(0xe000e018)
#define SOFT 31 /* an interrupt that no device uses */
#define SOFT_ENABLE REGISTER(0xe000e100)
#define SOFT_PEND REGISTER(0xe000e200)
#define SOFT_PRIORITY REGISTER(0xe000e400 + SOFT / 4 * 4)
#define PEND REGISTER(0xe000ed04)
#define PEND_SWITCH (1u << 28)
#define RESET REGISTER(0xe000ed0c)
#define CALL_PRIORITY REGISTER(0xe000ed1c)
#define SYSTEM_PRIORITY REGISTER(0xe000ed20)

#define TICK_TIME (TICK / 40) /* at 25 MHz */
#define TO_THREAD 0xfffffffd  /* EXC_RETURN: to a thread on PSP, without state of the FPU */

struct frame { /* what pendsv_handler and the processor leave on the stack of a thread */
	uint32_t r4_to_r11[8], exc_return;
	uint32_t r0_to_r3[4], r12, lr, pc, psr;
};

struct frame *pendsv_switch(struct frame *frame);
void svc_handler(void);
void timer_handler(void);
void soft_handler(void);
void fault_handler(void);

static volatile uint32_t softs;

void put_char(char c)
{
	SERIAL_DATA = (uint8_t)c;
}

_Noreturn void power_off(bool good)
{
	register uint32_t r0 __asm__("r0") = 0x18; /* semihosting: exit, with an error */
	register uint32_t r1 __asm__("r1") = 0;

	if (good)
		RESET = 0x05fa0004;
	else
		__asm__ volatile("bkpt 0xab" : : "r"(r0), "r"(r1));
	for (;;)
		;
}

void interrupts_on(void)
{
	__asm__ volatile("cpsie i" ::: "memory");
}

void interrupts_off(void)
{
	__asm__ volatile("cpsid i" ::: "memory");
}

void trap_call(void)
{
	__asm__ volatile("svc 0" ::: "memory");
}

void soft_interrupt(void)
{
	SOFT_PEND = 1u << SOFT;
	__asm__ volatile("dsb; isb" ::: "memory");
}

void cpu_init(void)
{
	SERIAL_DIVIDER = 16;
	SERIAL_CONTROL = 1;
	SOFT_ENABLE = 1u << SOFT;
	SOFT_PRIORITY = 0x40u << 24;
	CALL_PRIORITY = 0x80u << 24;
	SYSTEM_PRIORITY = 0x80u << 24 | 0xffu << 16; /* of the timer, and of PendSV */
	TIMER_RELOAD = TICK_TIME;
	TIMER_VALUE = 0;
	TIMER_CONTROL = 7;
}

struct frame *first_frame(void *stack_top, void (*start)(void))
{
	struct frame *frame = (struct frame *)((uint8_t *)stack_top - 8) - 1;

	/* The processor's part is aligned to 8 bytes. */
	*frame = (struct frame){ .r4_to_r11 = { (uintptr_t)start },
				 .exc_return = TO_THREAD,
				 .pc = (uintptr_t)frame_start & ~1u,
				 .psr = 1u << 24 };
	return frame;
}

/* ---- handlers ---- */

struct frame *pendsv_switch(struct frame *frame)
{
	return style_trap(frame, TRAP_CALL);
}

/* A thread lets others run: PendSV follows without a return to the thread. */
void svc_handler(void)
{
	PEND = PEND_SWITCH;
}

NOINLINE static uint32_t soft_leaf(uint32_t x)
{
	MIX(x, 30);
	return x;
}

void soft_handler(void)
{
	softs += soft_leaf(softs) | 1;
}

NOINLINE static uint32_t timer_leaf(uint32_t x)
{
	MIX(x, 30);
	return x;
}

/* The interrupt that it requests has a higher priority and nests; PendSV follows. */
void timer_handler(void)
{
	uint32_t before = softs;
	uint32_t x = timer_leaf(before);

	soft_interrupt();
	if (softs == before || timer_leaf(before) != x)
		fail("the interrupt did not nest", "");
	PEND = PEND_SWITCH;
}

void fault_handler(void)
{
	fail("exception in", "cortex-m");
}

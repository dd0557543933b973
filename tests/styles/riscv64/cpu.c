// SPDX-License-Identifier: GPL-2.0-or-later
/* RISC-V: QEMU's virt machine, in machine mode or supervisor mode. */
#include "common.h"
#include "mode.h"

#define SERIAL ((volatile uint8_t *)0x10000000)
#define POWER ((volatile uint32_t *)0x100000)
#define CLINT_SOFT ((volatile uint32_t *)0x2000000)
#define CLINT_TIMER ((volatile uint64_t *)0x2004000)
#define CLINT_TIME ((volatile uint64_t *)0x200bff8)
#define TICK_TIME (TICK / 100) /* at 10 MHz */

struct frame { /* what trap_entry leaves on the stack */
	uint64_t x[32], status, unused;
};
_Static_assert(sizeof(struct frame) == FRAME_SIZE, "mode.h");
_Static_assert(offsetof(struct frame, status) == FRAME_STATUS, "mode.h");

#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)
#define READ_CSR(name)                                                       \
	({                                                                   \
		uint64_t value;                                              \
		__asm__ volatile("csrr %0, " TEXT(CSR(name)) : "=r"(value)); \
		value;                                                       \
	})
#define SET_CSR(name, bits) __asm__ volatile("csrs " TEXT(CSR(name)) ", %0" ::"r"(bits) : "memory")
#define CLEAR_CSR(name, bits) \
	__asm__ volatile("csrc " TEXT(CSR(name)) ", %0" ::"r"(bits) : "memory")

#define INTERRUPT (1ul << 63)
#ifdef MACHINE_MODE
enum cause { CAUSE_SOFT = 3, CAUSE_TIMER = 7, CAUSE_USER_CALL = 8, CAUSE_CALL = 11 };

static void timer_start(void)
{
	*CLINT_TIMER = *CLINT_TIME + TICK_TIME;
}

static void soft_set(bool on)
{
	*CLINT_SOFT = on;
}
#else
enum cause { CAUSE_SOFT = 1, CAUSE_TIMER = 5, CAUSE_USER_CALL = 8, CAUSE_CALL = 9 };

static void timer_start(void)
{
	uint64_t now;

	__asm__ volatile("rdtime %0" : "=r"(now));
	__asm__ volatile("csrw 0x14d, %0" : : "r"(now + TICK_TIME)); /* stimecmp */
}

static void soft_set(bool on)
{
	if (on)
		SET_CSR(ip, 1 << CAUSE_SOFT);
	else
		CLEAR_CSR(ip, 1 << CAUSE_SOFT);
}
#endif

void put_char(char c)
{
	*SERIAL = (uint8_t)c;
}

_Noreturn void power_off(bool good)
{
	*POWER = good ? 0x5555 : 0x13333;
	for (;;)
		;
}

void interrupts_on(void)
{
	SET_CSR(status, STATUS_ON);
}

void interrupts_off(void)
{
	CLEAR_CSR(status, STATUS_ON);
}

void trap_call(void)
{
	__asm__ volatile("ecall" ::: "memory");
}

void soft_interrupt(void)
{
	soft_set(true);
}

void cpu_init(void)
{
	SET_CSR(ie, 1 << CAUSE_SOFT | 1 << CAUSE_TIMER);
	timer_start();
}

struct frame *first_frame(void *stack_top, void (*start)(void))
{
	struct frame *frame = (struct frame *)stack_top - 1;

	*frame = (struct frame){ .x[0] = (uintptr_t)frame_start,
				 .x[9] = (uintptr_t)start,
				 .status = STATUS_KEPT };
	return frame;
}

void *first_switch(void *stack_top, void (*start)(void))
{
	uint64_t *sp = (uint64_t *)stack_top - 14;

	for (unsigned i = 0; i < 14; i++)
		sp[i] = 0;
	sp[0] = (uintptr_t)start + 2;
	return sp;
}

struct frame *trap(struct frame *frame, unsigned kind);
struct frame *trap(struct frame *frame, unsigned kind)
{
	(void)kind;
	switch (READ_CSR(cause)) {
	case INTERRUPT | CAUSE_TIMER: timer_start(); return style_trap(frame, TRAP_TIMER);
	case INTERRUPT | CAUSE_SOFT: soft_set(false); return style_trap(frame, TRAP_SOFT);
	case CAUSE_USER_CALL:
	case CAUSE_CALL: frame->x[0] += 4; return style_trap(frame, TRAP_CALL);
	}
	fail("exception in", "riscv64");
}

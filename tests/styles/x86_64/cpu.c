// SPDX-License-Identifier: GPL-2.0-or-later
/* x86-64: QEMU's pc, in ring 0. */
#include "common.h"

#define SERIAL 0x3f8
#define POWER 0x604
#define DEBUG_EXIT 0xf4
#define APIC ((volatile uint32_t *)0xfee00000)

enum apic {
	APIC_END = 0xb0 / 4,
	APIC_SPURIOUS = 0xf0 / 4,
	APIC_COMMAND = 0x300 / 4,
	APIC_TIMER = 0x320 / 4,
	APIC_TIMER_COUNT = 0x380 / 4,
	APIC_TIMER_DIVIDE = 0x3e0 / 4,
};
#define PERIODIC (1 << 17)
#define TO_SELF (1 << 18)
#define BY_ONE 0xb

enum vector { VECTOR_TIMER = 0x40, VECTOR_SOFT = 0x50, VECTOR_CALL = 0x80, VECTOR_SPURIOUS = 0xff };

struct frame { /* what trap_entry leaves on the stack */
	uint64_t r15, r14, r13, r12, r11, r10, r9, r8, rbp, rdi, rsi, rdx, rcx, rbx, rax;
	uint64_t vector, error, rip, cs, flags, rsp, ss;
};

struct gate {
	uint16_t low, selector, type, middle;
	uint32_t high, unused;
};

extern const uint8_t trap_stubs[256][16];
struct frame *trap(struct frame *frame, unsigned kind);

static struct gate gates[256] __attribute__((aligned(16)));

static void out8(uint16_t port, uint8_t value)
{
	__asm__ volatile("outb %0, %1" : : "a"(value), "d"(port));
}

void put_char(char c)
{
	out8(SERIAL, (uint8_t)c);
}

_Noreturn void power_off(bool good)
{
	if (good)
		__asm__ volatile("outw %0, %1" : : "a"((uint16_t)0x2000), "d"((uint16_t)POWER));
	else
		out8(DEBUG_EXIT, 1);
	for (;;)
		__asm__ volatile("hlt");
}

void interrupts_on(void)
{
	__asm__ volatile("sti" ::: "memory");
}

void interrupts_off(void)
{
	__asm__ volatile("cli" ::: "memory");
}

void trap_call(void)
{
	__asm__ volatile("int $0x80" ::: "memory");
}

void soft_interrupt(void)
{
	APIC[APIC_COMMAND] = TO_SELF | VECTOR_SOFT;
}

static void gates_init(void)
{
	struct {
		uint16_t limit;
		uint64_t base;
	} __attribute__((packed)) pointer = { sizeof(gates) - 1, (uintptr_t)gates };

	for (unsigned i = 0; i < 256; i++) {
		uintptr_t stub = (uintptr_t)trap_stubs[i];

		gates[i] = (struct gate){ .low = (uint16_t)stub,
					  .selector = 8,
					  .type = i == VECTOR_CALL ? 0xee00 : 0x8e00,
					  .middle = (uint16_t)(stub >> 16) };
	}
	__asm__ volatile("lidt %0" : : "m"(pointer));
}

void cpu_init(void)
{
	gates_init();
	out8(0x21, 0xff); /* the old interrupt controllers are not used */
	out8(0xa1, 0xff);
	APIC[APIC_SPURIOUS] = 0x100 | VECTOR_SPURIOUS;
	APIC[APIC_TIMER_DIVIDE] = BY_ONE;
	APIC[APIC_TIMER] = PERIODIC | VECTOR_TIMER;
	APIC[APIC_TIMER_COUNT] = TICK;
}

struct frame *first_frame(void *stack_top, void (*start)(void))
{
	struct frame *frame = (struct frame *)((uint8_t *)stack_top - 16) - 1;

	*frame = (struct frame){ .rbx = (uintptr_t)start,
				 .rip = (uintptr_t)frame_start + 1,
				 .cs = 8,
				 .ss = 16,
				 .flags = 0x202,
				 .rsp = (uintptr_t)stack_top - 16 };
	return frame;
}

/* Six registers, and where to continue. */
void *first_switch(void *stack_top, void (*start)(void))
{
	uint64_t *sp = (uint64_t *)stack_top - 9;

	for (unsigned i = 0; i < 9; i++)
		sp[i] = 0;
	sp[6] = (uintptr_t)start + 1;
	return sp;
}

struct frame *trap(struct frame *frame, unsigned kind)
{
	(void)kind;
	if (frame->vector == VECTOR_CALL)
		return style_trap(frame, TRAP_CALL);
	if (frame->vector < VECTOR_TIMER || frame->vector > VECTOR_SOFT)
		fail("exception in", "x86_64");
	APIC[APIC_END] = 0;
	return style_trap(frame, frame->vector == VECTOR_TIMER ? TRAP_TIMER : TRAP_SOFT);
}

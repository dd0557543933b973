// SPDX-License-Identifier: GPL-2.0-or-later
/* RISC-V: QEMU's virt machine: interrupts, timer and cpus by SBI, address spaces. */
#include "kernel.h"

#define SERIAL ((volatile uint8_t *)(KERNEL_OFFSET + 0x10000000))
#define CLOCK_NS 100 /* of a step of the clock */

/* SBI: extensions and their functions */
#define SBI_TIMER 0x54494d45
#define SBI_HARTS 0x48534d
#define SBI_HART_START 0
#define SBI_HART_STATE 2
#define SBI_RESET 0x53525354

/* Causes of traps, and bits of sie */
#define INTERRUPT (UINT64_C(1) << 63)
#define TIMER 5
#define PMU 13 /* of Sscofpmf; a hart without it ignores the bit */
#define SYSCALL 8

#define SV39 (UINT64_C(8) << 60)
#define TABLE 1
#define USER_PAGE 0xdf /* for the user, may do everything */

struct frame { /* what trap_entry leaves on the stack */
	uint64_t pc, x[31], status, unused;
	uint64_t link[2];
};
_Static_assert(sizeof(struct frame) == FRAME_SIZE, "arch.h");
_Static_assert(offsetof(struct frame, status) == FRAME_STATUS, "arch.h");
_Static_assert(offsetof(struct frame, link) == FRAME_LINK, "arch.h");

/* Registers in struct frame */
enum { RA = 0, SP = 1, S0 = 7, A0 = 9 };

extern uint64_t boot_table[512], boot_hart;
extern const uint8_t boot_entry[], trap_return[], task_start[];
void trap(struct frame *frame);

static uint64_t tables[2 * 4][512] __attribute__((aligned(4096)));

static uint64_t physical(const void *address)
{
	return (uintptr_t)address - KERNEL_OFFSET;
}

static int64_t sbi(uint64_t extension, uint64_t function, uint64_t a, uint64_t b, uint64_t c)
{
	register uint64_t a0 __asm__("a0") = a;
	register uint64_t a1 __asm__("a1") = b;
	register uint64_t a2 __asm__("a2") = c;
	register uint64_t a6 __asm__("a6") = function;
	register uint64_t a7 __asm__("a7") = extension;

	__asm__ volatile("ecall" : "+r"(a0), "+r"(a1) : "r"(a2), "r"(a6), "r"(a7) : "memory");
	return (int64_t)a0;
}

void put_char(char c)
{
	while (!(SERIAL[5] & 0x20))
		;
	SERIAL[0] = (uint8_t)c;
}

unsigned count_cpus(void)
{
	unsigned cpus = 1;

	while (cpus < MAX_CPUS && sbi(SBI_HARTS, SBI_HART_STATE, cpus, 0, 0) >= 0)
		cpus++;
	return cpus;
}

/* The firmware boots on any hart, which is cpu 0; the others follow in their order. */
static uint64_t hart_of(unsigned cpu)
{
	if (cpu == 0)
		return boot_hart;
	return cpu <= boot_hart ? cpu - 1 : cpu;
}

static uint64_t counter(void)
{
	uint64_t count;

	__asm__ volatile("rdtime %0" : "=r"(count) : : "memory");
	return count;
}

uint64_t time_ns(void)
{
	return counter() * CLOCK_NS;
}

void timer_set(uint64_t ns)
{
	sbi(SBI_TIMER, 0, counter() + (ns + CLOCK_NS - 1) / CLOCK_NS, 0, 0);
}

void cpu_init(unsigned cpu)
{
	tick_start(cpu);
	__asm__ volatile("csrw sie, %0" : : "r"(1ul << TIMER | 1ul << PMU));
}

void cpu_start(unsigned cpu, void *stack)
{
	(void)stack; /* boot_entry finds it by the number of the hart */
	sbi(SBI_HARTS, SBI_HART_START, hart_of(cpu), physical(boot_entry), 0);
}

void cpu_idle(void)
{
	__asm__ volatile("wfi; csrsi sstatus, %0; csrci sstatus, %0"
			 :
			 : "i"(STATUS_SIE)
			 : "memory");
}

_Noreturn void power_off(void)
{
	sbi(SBI_RESET, 0, 0, 0, 0);
	for (;;)
		__asm__ volatile("wfi");
}

void use_space(uint64_t space, void *kernel_stack)
{
	(void)kernel_stack; /* trap_return puts it into sscratch */
	__asm__ volatile("csrw satp, %0; sfence.vma" : : "r"(space) : "memory");
}

static uint64_t space_of(const uint64_t *table, uint64_t number)
{
	return SV39 | number << 44 | physical(table) >> 12;
}

uint64_t kernel_space(void)
{
	return space_of(boot_table, 0);
}

/* One large page at USER_TEXT; the kernel is mapped above. The number is the ASID. */
uint64_t user_space(unsigned number, uint8_t *memory)
{
	uint64_t *first = tables[2 * number], *second = tables[2 * number + 1];

	second[USER_TEXT / USER_SIZE] = physical(memory) >> 2 | USER_PAGE;
	first[0] = physical(second) >> 2 | TABLE;
	for (unsigned i = 256; i < 512; i++)
		first[i] = boot_table[i];
	return space_of(first, number);
}

/* The stack that switch_to expects: where to continue, and s0 to s11. */
static void *switch_context(void *stack, const void *where)
{
	uint64_t *sp = (uint64_t *)((uint8_t *)stack - SWITCH_SIZE);

	for (unsigned i = 1; i < SWITCH_SIZE / 8; i++)
		sp[i] = 0;
	sp[0] = (uintptr_t)where;
	return sp;
}

void *kernel_context(void *stack)
{
	return switch_context(stack, task_start);
}

void *user_context(void *stack, uint64_t argument)
{
	struct frame *frame = (struct frame *)stack - 1;

	*frame = (struct frame){ .pc = USER_TEXT,
				 .x[SP] = USER_TEXT + USER_SIZE,
				 .x[A0] = argument,
				 .status = STATUS_SPIE | STATUS_SUM };
	return switch_context(frame, trap_return);
}

static void interrupted_at(const struct frame *frame, struct interrupted *at)
{
	at->user = !(frame->status & STATUS_SPP);
	at->pc = frame->pc;
	at->fp = frame->x[S0];
	at->sp = frame->x[SP];
	at->link = frame->x[RA];
}

bool trap_interrupted(uintptr_t back, uintptr_t fp, struct interrupted *at)
{
	if (back != (uintptr_t)trap_back || !in_stack(fp, sizeof(struct frame)))
		return false;
	interrupted_at((const struct frame *)fp - 1, at);
	return true;
}

bool user_interrupted(const struct task *task, struct interrupted *at)
{
	const struct frame *frame = (const struct frame *)stack_top(task) - 1;

	if (!task->work || !task->work->program)
		return false;
	interrupted_at(frame, at);
	return at->user;
}

static void interrupt(const struct frame *frame, uint64_t number)
{
	struct interrupted at;

	interrupted_at(frame, &at);
	if (number == TIMER)
		timer_fired(&at);
	else if (number == PMU)
		pmu_fired(&at);
}

void trap(struct frame *frame)
{
	uint64_t why;

	__asm__ volatile("csrr %0, scause" : "=r"(why));
	if (why & INTERRUPT)
		interrupt(frame, why & ~INTERRUPT);
	else if (why == SYSCALL)
		task_exit();
	else
		panic("exception", frame->pc);
}

// SPDX-License-Identifier: GPL-2.0-or-later
/* AArch64: QEMU's virt machine: interrupts, timer, cpus by PSCI, address spaces. */
#include "kernel.h"

#define DEVICE(address) ((volatile uint32_t *)(KERNEL_OFFSET + (address)))
#define SERIAL DEVICE(0x09000000)
#define GIC_DISTRIBUTOR DEVICE(0x08000000)
#define GIC_CPU DEVICE(0x08010000)
#define GIC_ENABLE (0x100 / 4)
#define GIC_ACKNOWLEDGE (0xc / 4)
#define GIC_END (0x10 / 4)

/* Interrupts */
#define TIMER 27	/* virtual timer: the tick */
#define SAMPLE_TIMER 30 /* physical timer */
#define PMU 23

#define PSCI_OFF 0x84000008
#define PSCI_CPU_ON 0xc4000003
#define PSCI_CPU_STATE 0xc4000004

#define USER_PAGE 0x741 /* a block, normal memory, shared, for the user too */
#define TABLE 3

#define SECOND UINT64_C(1000000000)

#define SYSCALL 0x15 /* exception class of svc */

struct frame { /* what trap_entry leaves on the stack */
	uint64_t x[31], sp_el0, elr, spsr;
	uint64_t link[2];
};
_Static_assert(sizeof(struct frame) == FRAME_SIZE, "arch.h");
_Static_assert(offsetof(struct frame, elr) == FRAME_ELR, "arch.h");

extern uint64_t boot_low[512];
extern const uint8_t ap_entry[], trap_return[], task_start[];
void trap(struct frame *frame, unsigned kind);

static uint64_t tables[2 * 4][512] __attribute__((aligned(4096)));

static uint64_t physical(const void *address)
{
	return (uintptr_t)address - KERNEL_OFFSET;
}

static int64_t psci(uint64_t function, uint64_t a, uint64_t b, uint64_t c)
{
	register uint64_t x0 __asm__("x0") = function;
	register uint64_t x1 __asm__("x1") = a;
	register uint64_t x2 __asm__("x2") = b;
	register uint64_t x3 __asm__("x3") = c;

	__asm__ volatile("hvc #0" : "+r"(x0), "+r"(x1), "+r"(x2), "+r"(x3) : : "memory");
	return (int64_t)x0;
}

void put_char(char c)
{
	while (SERIAL[0x18 / 4] & 0x20)
		;
	SERIAL[0] = (uint8_t)c;
}

unsigned count_cpus(void)
{
	unsigned cpus = 1;

	while (cpus < MAX_CPUS && psci(PSCI_CPU_STATE, cpus, 0, 0) >= 0)
		cpus++;
	return cpus;
}

static uint64_t frequency(void)
{
	uint64_t hertz;

	__asm__ volatile("mrs %0, cntfrq_el0" : "=r"(hertz));
	return hertz;
}

static uint64_t counter(void)
{
	uint64_t count;

	__asm__ volatile("isb; mrs %0, cntvct_el0" : "=r"(count) : : "memory");
	return count;
}

/* a * b / c, where a * b may be too large but b * c is not */
static uint64_t scale(uint64_t a, uint64_t b, uint64_t c)
{
	return a / c * b + a % c * b / c;
}

uint64_t time_ns(void)
{
	return scale(counter(), SECOND, frequency());
}

static void timer_start(void)
{
	__asm__ volatile("msr cntv_tval_el0, %0" : : "r"(frequency() / 100));
	__asm__ volatile("msr cntv_ctl_el0, %0" : : "r"(1ul));
}

/* The two timers have the same counter: there is no hypervisor. */
void sample_timer(uint64_t ns)
{
	uint64_t due = counter() + scale(ns, frequency(), SECOND);

	__asm__ volatile("msr cntp_cval_el0, %0" : : "r"(due));
	__asm__ volatile("msr cntp_ctl_el0, %0; isb" : : "r"((uint64_t)(ns != 0)));
}

void cpu_init(unsigned cpu)
{
	if (cpu == 0)
		GIC_DISTRIBUTOR[0] = 1;
	GIC_DISTRIBUTOR[GIC_ENABLE] = 1u << TIMER | 1u << SAMPLE_TIMER | 1u << PMU;
	GIC_CPU[1] = 0xff; /* every priority */
	GIC_CPU[0] = 1;
	timer_start();
}

void cpu_start(unsigned cpu, void *stack)
{
	psci(PSCI_CPU_ON, cpu, physical(ap_entry), (uintptr_t)stack);
}

void cpu_idle(void)
{
	__asm__ volatile("wfi; msr daifclr, #2; isb; msr daifset, #2" ::: "memory");
}

_Noreturn void power_off(void)
{
	psci(PSCI_OFF, 0, 0, 0);
	for (;;)
		__asm__ volatile("wfi");
}

void use_space(uint64_t space, void *kernel_stack)
{
	(void)kernel_stack; /* SP_EL1 already points there */
	__asm__ volatile("msr ttbr0_el1, %0; isb" : : "r"(space) : "memory");
}

uint64_t kernel_space(void)
{
	return physical(boot_low);
}

/* One large page at USER_TEXT. The number is the ASID. */
uint64_t user_space(unsigned number, uint8_t *memory)
{
	uint64_t *first = tables[2 * number], *second = tables[2 * number + 1];

	second[USER_TEXT / USER_SIZE] = physical(memory) | USER_PAGE | 1ull << 11;
	first[0] = physical(second) | TABLE;
	__asm__ volatile("dsb ishst; ic ialluis; isb" ::: "memory");
	return physical(first) | (uint64_t)number << 48;
}

/* The stack that switch_to expects: x19 to x29, and where to continue. */
static void *switch_context(void *stack, const void *where)
{
	uint64_t *sp = (uint64_t *)stack - 12;

	for (unsigned i = 0; i < 11; i++)
		sp[i] = 0;
	sp[11] = (uintptr_t)where;
	return sp;
}

void *kernel_context(void *stack)
{
	return switch_context(stack, task_start);
}

void *user_context(void *stack, uint64_t argument)
{
	struct frame *frame = (struct frame *)stack - 1;

	*frame = (struct frame){ .x[0] = argument,
				 .elr = USER_TEXT,
				 .sp_el0 = USER_TEXT + USER_SIZE };
	return switch_context(frame, trap_return);
}

static void interrupted_at(const struct frame *frame, struct interrupted *at)
{
	at->user = (frame->spsr & 0xf) == 0;
	at->pc = frame->elr;
	at->fp = frame->x[29];
	at->sp = at->user ? frame->sp_el0 : (uintptr_t)(frame + 1);
	at->link = frame->x[30];
}

bool trap_interrupted(uintptr_t back, uintptr_t fp, struct interrupted *at)
{
	if (back != (uintptr_t)trap_back || !in_stack(fp, sizeof(struct frame)))
		return false;
	interrupted_at((const struct frame *)(fp + 16) - 1, at);
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

/* tick() comes last: it returns when this task runs again. */
static void interrupt(const struct frame *frame)
{
	uint32_t number = GIC_CPU[GIC_ACKNOWLEDGE];
	struct interrupted at;

	interrupted_at(frame, &at);
	switch (number & 0x3ff) {
	case TIMER: timer_start(); break;
	case SAMPLE_TIMER:
		sample_timer(0);
		sample_timer_fired(&at);
		break;
	case PMU: pmu_fired(&at); break;
	default: return;
	}
	GIC_CPU[GIC_END] = number;
	if ((number & 0x3ff) == TIMER)
		tick();
}

void trap(struct frame *frame, unsigned kind)
{
	uint64_t why;

	__asm__ volatile("mrs %0, esr_el1" : "=r"(why));
	if (kind == TRAP_INTERRUPT)
		interrupt(frame);
	else if (kind == TRAP_SYNC && why >> 26 == SYSCALL)
		task_exit();
	else
		panic("exception", frame->elr);
}

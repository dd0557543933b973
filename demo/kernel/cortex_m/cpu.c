// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Cortex-M3: exceptions, tasks, memory protection.
 *
 * Tasks run in thread mode, each on its own stack (PSP); user programs without privileges, in
 * memory that the MPU gives them. Handlers share one stack (MSP). The tick, the switch of tasks and
 * svc have the lowest priority: none of them interrupts another. The timer of samples interrupts
 * them all.
 */
#include "board.h"

#define TICK_TIMER DEVICE(0xe000e010)
#define NVIC_ENABLE DEVICE(0xe000e100)
#define NVIC_PRIORITY ((volatile uint8_t *)0xe000e400)
#define INTERRUPT_STATE DEVICE(0xe000ed04)
#define SYSTEM_PRIORITY ((volatile uint8_t *)0xe000ed14) /* by the number of the exception */
#define MPU DEVICE(0xe000ed90)

enum { SVCALL = 11, PENDSV = 14, SYSTICK = 15, INTERRUPTS = 16 };
#define PEND_SWITCH (1 << 28) /* PENDSV */
#define PRIORITY_SAMPLE 0x40
#define PRIORITY_LOWEST 0xff

enum { MPU_CONTROL = 1, MPU_REGION, MPU_BASE, MPU_SIZE }; /* the registers, in words */
#define MPU_ON 5 /* for user programs only: privileged code may do what it may without it */
#define MPU_ALL (3 << 24 | 1 << 17)
#define MPU_USER (MPU_ALL | (__builtin_ctz(USER_SIZE) - 1) << 1 | 1)

#define EXC_RETURN 0xffffff00 /* and above */
#define ON_PSP 4
#define THUMB (1 << 24)	 /* in xpsr */
#define SKIPPED (1 << 9) /* a word, to align the stack; in xpsr */
#define UNPRIVILEGED 1	 /* in control */

struct stored { /* by the hardware, on the stack of what it interrupts */
	uint32_t r0, r1, r2, r3, r12, lr, pc, xpsr;
};

enum { R4, R5, R6, R7, R8, R9, R10, R11, SAVED };

struct frame { /* what trap_entry leaves on the stack of handlers */
	uint32_t link[2];
	uint32_t unused;
	uint32_t r[SAVED];
	uint32_t exc_return;
};
_Static_assert(sizeof(struct frame) == FRAME_SIZE, "arch.h");
_Static_assert(offsetof(struct frame, r[R7]) == FRAME_R7, "arch.h");

struct context { /* of a task that is not running; at the top of its stack */
	uint32_t r[SAVED];
	struct stored *psp;
	uint32_t unused;
};
_Static_assert(sizeof(struct context) == CONTEXT_SIZE, "arch.h");

extern uint8_t handler_stack_top[];
extern const uint8_t trap_entry[], trap_linked[], trap_unlinked[], trap_end[];
extern const uint8_t task_start[];
void trap(struct frame *frame);

uintptr_t task_stack = (uintptr_t)&stacks[0];
static const struct context *next;

/* Pointers to functions have the Thumb bit. */
static uintptr_t address_of(const void *code)
{
	return (uintptr_t)code & ~(uintptr_t)1;
}

static struct stored *thread_stored(void)
{
	return (struct stored *)READ_SPECIAL(psp);
}

static bool thread_is_user(void)
{
	return READ_SPECIAL(control) & UNPRIVILEGED;
}

unsigned count_cpus(void)
{
	return 1;
}

void cpu_init(unsigned cpu)
{
	(void)cpu;
	SYSTEM_PRIORITY[SVCALL] = PRIORITY_LOWEST;
	SYSTEM_PRIORITY[PENDSV] = PRIORITY_LOWEST;
	SYSTEM_PRIORITY[SYSTICK] = PRIORITY_LOWEST;
	NVIC_PRIORITY[SAMPLE] = PRIORITY_SAMPLE;
	NVIC_ENABLE[0] = 1 << SAMPLE;
	MPU[MPU_CONTROL] = MPU_ON;
	TICK_TIMER[1] = 10000000 / CYCLE_NS - 1;
	TICK_TIMER[2] = 0;
	TICK_TIMER[0] = 7; /* on, with interrupts, by the clock of the core */
}

void cpu_start(unsigned cpu, void *stack)
{
	(void)cpu, (void)stack;
}

/* wfi does not wait while an interrupt is pending. */
void cpu_idle(void)
{
	__asm__ volatile("wfi\n cpsie i\n isb\n cpsid i" ::: "memory");
}

/* The space of a user program is its memory; it is used when the tasks switch. */
void use_space(uint64_t space, void *kernel_stack)
{
	(void)space, (void)kernel_stack;
}

uint64_t kernel_space(void)
{
	return 0;
}

uint64_t user_space(unsigned number, uint8_t *memory)
{
	(void)number;
	__asm__ volatile("dsb\n isb" ::: "memory");
	return (uintptr_t)memory;
}

static struct context *context_of(const struct task *task)
{
	return (struct context *)((uint8_t *)task + STACK_SIZE) - 1;
}

static struct task *task_of(const void *stack)
{
	return (struct task *)((uintptr_t)stack & ~(uintptr_t)(STACK_SIZE - 1));
}

/* Code that the hardware starts by the return from an exception. `top` is that of its stack. */
static struct stored *start_at(void *top, const void *code, uint64_t argument)
{
	struct stored *stored = (struct stored *)top - 1;

	*stored = (struct stored){ .r0 = (uint32_t)argument,
				   .r1 = (uint32_t)(argument >> 32),
				   .pc = address_of(code),
				   .xpsr = THUMB };
	return stored;
}

void *kernel_context(void *stack)
{
	struct context *context = (struct context *)stack - 1;

	*context = (struct context){ .psp = start_at(context, task_start, 0) };
	return context;
}

/* The program lies at the start of the task's space, its stack at the end. */
void *user_context(void *stack, uint64_t argument)
{
	struct context *context = (struct context *)stack - 1;
	uint8_t *memory = (uint8_t *)(uintptr_t)task_of(context)->space;

	*context = (struct context){ .psp = start_at(memory + USER_SIZE, memory, argument) };
	return context;
}

/* The switch is an exception, for after this handler. A thread has it now. */
void switch_to(void **from_sp, void *to_sp)
{
	*from_sp = context_of(current());
	next = to_sp;
	INTERRUPT_STATE[0] = PEND_SWITCH;
	if (READ_SPECIAL(ipsr))
		return;
	interrupts_on();
	interrupts_off();
}

static void enter_space(uintptr_t space)
{
	MPU[MPU_REGION] = 0;
	MPU[MPU_SIZE] = 0;
	MPU[MPU_BASE] = space;
	MPU[MPU_SIZE] = space ? MPU_USER : 0;
	WRITE_SPECIAL(control, space ? UNPRIVILEGED : 0);
}

/* Links what the handler returns to, as trap_entry does. */
static void link_thread(struct frame *frame)
{
	bool user = thread_is_user();

	frame->link[0] = user ? 0 : frame->r[R7];
	frame->link[1] = user ? 0 : thread_stored()->pc | 1;
}

static void switch_now(struct frame *frame)
{
	struct context *from = context_of(current());

	interrupts_off(); /* the sampler sees the one task or the other */
	for (unsigned i = 0; i < SAVED; i++) {
		from->r[i] = frame->r[i];
		frame->r[i] = next->r[i];
	}
	from->psp = thread_stored();
	WRITE_SPECIAL(psp, next->psp);
	task_stack = (uintptr_t)task_of(next);
	enter_space((uintptr_t)current()->space);
	link_thread(frame);
	interrupts_on();
}

/* There is one: a user program exits, in the kernel, as a thread. Interrupts stay off until then. */
static void system_call(struct frame *frame)
{
	interrupts_off();
	WRITE_SPECIAL(psp, start_at(context_of(current()), (const void *)task_exit, 0));
	WRITE_SPECIAL(control, 0);
	frame->r[R7] = 0;
	link_thread(frame);
}

static struct interrupted describe(const struct stored *stored, uint32_t r7, bool user)
{
	uintptr_t sp = (uintptr_t)(stored + 1);

	return (struct interrupted){ .pc = stored->pc & ~1u,
				     .fp = r7,
				     .sp = sp + (stored->xpsr & SKIPPED ? 4 : 0),
				     .link = stored->lr >= EXC_RETURN ? 0 : stored->lr,
				     .user = user };
}

/* At both ends of trap_entry, the frame pointer is that of the interrupted thread. */
static bool is_unlinked(uintptr_t pc)
{
	return (pc >= address_of(trap_entry) && pc < address_of(trap_linked)) ||
	       (pc >= address_of(trap_unlinked) && pc < address_of(trap_end));
}

static struct interrupted interrupted_by(const struct frame *frame)
{
	const struct stored *stored = (const struct stored *)(frame + 1);

	/* A handler that is interrupted has itself interrupted a thread. */
	if (frame->exc_return & ON_PSP || is_unlinked(stored->pc))
		return describe(thread_stored(), frame->r[R7], thread_is_user());
	return describe(stored, frame->r[R7], false);
}

bool trap_interrupted(uintptr_t back, uintptr_t fp, struct interrupted *at)
{
	uintptr_t top = (uintptr_t)handler_stack_top;

	if (back != address_of(trap_back) || fp > top - sizeof(struct frame) ||
	    fp < top - HANDLER_STACK_SIZE)
		return false;
	*at = interrupted_by((const struct frame *)fp);
	return true;
}

bool user_interrupted(const struct task *task, struct interrupted *at)
{
	const struct context *context = context_of(task);
	const struct frame *first = (const struct frame *)handler_stack_top - 1;

	if (task == current()) {
		if (!READ_SPECIAL(ipsr) || !thread_is_user())
			return false;
		*at = describe(thread_stored(), first->r[R7], true);
		return true;
	}
	if (!task->space || task->done)
		return false;
	*at = describe(context->psp, context->r[R7], true);
	return true;
}

static void interrupt(struct frame *frame)
{
	struct interrupted at = interrupted_by(frame);

	sample_interrupt(&at);
}

void trap(struct frame *frame)
{
	switch (READ_SPECIAL(ipsr)) {
	case SVCALL: system_call(frame); break;
	case PENDSV: switch_now(frame); break;
	case SYSTICK:
		time_ns();
		tick();
		break;
	case INTERRUPTS + SAMPLE: interrupt(frame); break;
	default: panic("exception", interrupted_by(frame).pc);
	}
}

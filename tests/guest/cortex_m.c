// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A guest for traces of Cortex-M: two threads on their own stacks, switched by PendSV, one of them
 * unprivileged, and exceptions in every order: nested, chained to each other and to themselves, late,
 * and in the middle of a block. At the end it prints how often each handler ran.
 */
#include <stdint.h>

#ifndef ROUNDS
#define ROUNDS 200
#endif
#ifndef LEAF
#define LEAF 7 /* turns of a loop */
#endif
#ifndef TICK
#define TICK 50 /* cycles */
#endif
#define WORDS 256

#define REG(address) (*(volatile uint32_t *)(address))
#define SYSTICK_CTRL REG(0xe000e010)
#define SYSTICK_LOAD REG(0xe000e014)
#define NVIC_ENABLE REG(0xe000e100)
#define NVIC_PEND REG(0xe000e200)
#define NVIC_PRIORITY REG(0xe000e400)
#define SCB_ICSR REG(0xe000ed04)
#define SCB_CCR REG(0xe000ed14)
#define SCB_PRIORITY_SVC REG(0xe000ed1c)
#define SCB_PRIORITY_TICK REG(0xe000ed20)
#define SCB_HANDLERS REG(0xe000ed24)
#define SCB_CPACR REG(0xe000ed88)
#define PEND_SWITCH (1u << 28)

struct thread {
	uint32_t *sp; /* first: the assembly below uses it */
	uint32_t control;
	uint32_t stack[WORDS] __attribute__((aligned(8)));
};

void reset(void);
void on_svc(void), on_switch(void), on_tick(void), on_fault(void), on_high(void), on_low(void);
void on_hard_fault(void);
void print(const char *text);
void finish(void) __attribute__((noreturn));
struct thread *pick(void);
void serve(uint32_t *frame);
unsigned leaf(unsigned n), deep(unsigned n);

struct thread threads[2];
struct thread *current;
uint32_t main_stack[WORDS * 2] __attribute__((aligned(8)));
volatile uint32_t n_svc, n_switch, n_tick, n_fault, n_high, n_low, done;
#ifdef __ARM_FP
typedef float number; /* exceptions then store the FPU's registers, too */
#else
typedef unsigned number;
#endif
volatile number product;

__attribute__((section(".vectors"), used)) static void *const vectors[18] = {
	main_stack + WORDS * 2,
	reset,
	on_hard_fault,
	on_hard_fault,
	on_hard_fault,
	on_hard_fault,
	on_fault,
	on_hard_fault,
	on_hard_fault,
	on_hard_fault,
	on_hard_fault,
	on_svc,
	on_hard_fault,
	on_hard_fault,
	on_switch,
	on_tick,
	on_high,
	on_low,
};

__attribute__((noinline)) unsigned leaf(unsigned n)
{
	for (unsigned i = 0; i < LEAF; i++)
		__asm__ volatile("add %0, %0, #3" : "+r"(n));
	return n;
}

__attribute__((noinline)) unsigned deep(unsigned n)
{
	unsigned sum = leaf(n);

	__asm__ volatile("" : "+r"(sum));
	return n ? sum + deep(n - 1) : sum;
}

void print(const char *text)
{
	register unsigned op __asm__("r0") = 4;
	register const char *argument __asm__("r1") = text;

	__asm__ volatile("bkpt 0xab" : "+r"(op) : "r"(argument) : "memory");
}

void finish(void)
{
	register unsigned op __asm__("r0") = 0x18;
	register unsigned reason __asm__("r1") = 0x20026;

	__asm__ volatile("bkpt 0xab" : "+r"(op) : "r"(reason) : "memory");
	for (;;)
		;
}

static void print_count(const char *name, uint32_t count)
{
	char text[11] = { 0 };
	int at = 10;

	print(name);
	do {
		text[--at] = (char)('0' + count % 10);
		count /= 10;
	} while (count);
	print(text + at);
	print("\n");
}

/* Handlers. Each returns in a different way. */

void on_hard_fault(void)
{
	print("hard fault\n");
	finish();
}

/* Has the highest priority, and is a leaf. */
__attribute__((naked)) void on_high(void)
{
	__asm__ volatile("ldr r0, =n_high\n"
			 "ldr r1, [r0]\n"
			 "adds r1, #1\n"
			 "str r1, [r0]\n"
			 "bx lr\n");
}

/* Is pending again every third time when it returns: it chains to itself. */
void on_low(void)
{
	if (++n_low % 3 == 0)
		NVIC_PEND = 2;
	deep(1);
}

void on_tick(void)
{
	n_tick++;
	deep(2);
	NVIC_PEND = 1; /* nested */
	__asm__ volatile("dsb\nisb" ::: "memory");
	SCB_ICSR = PEND_SWITCH; /* chained */
	if (n_tick % 2)
		NVIC_PEND = 2; /* first */
	deep(1);
}

/* Skips the instruction. */
__attribute__((naked)) void on_fault(void)
{
	__asm__ volatile("mrs r0, psp\n"
			 "ldr r1, [r0, #24]\n"
			 "adds r1, #2\n"
			 "str r1, [r0, #24]\n"
			 "ldr r0, =n_fault\n"
			 "ldr r1, [r0]\n"
			 "adds r1, #1\n"
			 "str r1, [r0]\n"
			 "mov r2, lr\n"
			 "bx r2\n");
}

void serve(uint32_t *frame)
{
	n_svc++;
	frame[0] = deep(frame[0] & 3);
	if (n_svc % 4 == 0)
		SCB_ICSR = PEND_SWITCH;
}

__attribute__((naked)) void on_svc(void)
{
	__asm__ volatile("mrs r0, psp\n"
			 "push {r3, lr}\n"
			 "bl serve\n"
			 "pop {r3, pc}\n");
}

struct thread *pick(void)
{
	n_switch++;
	current = current == &threads[0] ? &threads[1] : &threads[0];
	return current;
}

__attribute__((naked)) void on_switch(void)
{
	__asm__ volatile("ldr r2, =current\n"
			 "ldr r1, [r2]\n"
			 "cbz r1, 1f\n"
			 "mrs r0, psp\n"
#ifdef __ARM_FP
			 "tst lr, #16\n"
			 "it eq\n"
			 "vstmdbeq r0!, {s16-s31}\n"
#endif
			 "stmdb r0!, {r4-r11, lr}\n"
			 "str r0, [r1]\n"
			 "1: bl pick\n" /* no thread holds the old lr */
			 "ldr r1, [r0, #4]\n"
			 "msr control, r1\n"
			 "ldr r0, [r0]\n"
			 "ldmia r0!, {r4-r11, lr}\n"
#ifdef __ARM_FP
			 "tst lr, #16\n"
			 "it eq\n"
			 "vldmiaeq r0!, {s16-s31}\n"
#endif
			 "msr psp, r0\n"
			 "bx lr\n");
}

/* Threads */

__attribute__((noinline)) static unsigned ask(unsigned n)
{
	register unsigned value __asm__("r0") = n;

	__asm__ volatile("svc 1" : "+r"(value)::"memory");
	return value;
}

__attribute__((noinline)) static void fault(void)
{
	__asm__ volatile("nop\n"
			 "udf #1\n" /* in the middle of a block */
			 "nop\n");
}

/* Two interrupts at once; the one with the higher priority comes first. */
__attribute__((noinline)) static void late(void)
{
	__asm__ volatile("cpsid i" ::: "memory");
	NVIC_PEND = 2;
	NVIC_PEND = 1;
	__asm__ volatile("cpsie i\nisb" ::: "memory");
}

static void first_thread(void)
{
	number value = 1;

	for (unsigned i = 0; i < ROUNDS; i++) {
		ask(i);
		fault();
		late();
		deep(5);
		value *= 3;
		product = value;
	}
	done |= 1;
	while (done != 3)
		ask(0);
	SYSTICK_CTRL = 0;
	__asm__ volatile("isb");
	print_count("svc ", n_svc);
	print_count("switch ", n_switch);
	print_count("tick ", n_tick);
	print_count("fault ", n_fault);
	print_count("high ", n_high);
	print_count("low ", n_low);
	finish();
}

/* Unprivileged. */
static void second_thread(void)
{
	for (unsigned i = 0; i < ROUNDS; i++) {
		deep(3);
		ask(i);
	}
	done |= 2;
	for (;;)
		leaf(1);
}

static void start(struct thread *thread, void (*entry)(void), uint32_t control)
{
	uint32_t *sp = thread->stack + WORDS;

	*--sp = 1u << 24; /* xPSR: Thumb */
	*--sp = (uint32_t)entry & ~1u;
	sp -= 6;
	*--sp = 0xfffffffd;
	sp -= 8;
	thread->sp = sp;
	thread->control = control;
}

void reset(void)
{
#ifdef __ARM_FP
	SCB_CPACR |= 0xfu << 20;
	__asm__ volatile("dsb\nisb" ::: "memory");
#endif
	start(&threads[0], first_thread, 2);
	start(&threads[1], second_thread, 3);
	SCB_HANDLERS |= 1u << 18; /* usage faults */
	SCB_PRIORITY_SVC = 0xa0u << 24;
	SCB_PRIORITY_TICK = 0x80u << 24 | 0xe0u << 16;
	NVIC_PRIORITY = 0xc020; /* high: 0x20, low: 0xc0 */
	NVIC_ENABLE = 3;
	SYSTICK_LOAD = TICK;
	SYSTICK_CTRL = 7;
	SCB_ICSR = PEND_SWITCH;
	for (;;)
		__asm__ volatile("wfi");
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * svm: a hypervisor with the instructions of AMD SVM. Its guests run in ring 0, each with one
 * worker, and have their stacks at the same address. They leave by interrupts, and by instructions
 * that the hypervisor completes for them; the hypervisor also sends them interrupts. SVM_NESTED:
 * guests have equal page tables, below which the hypervisor has one table for each guest. SVM_USER:
 * guests run in ring 3, and handle interrupts in ring 0.
 */
#include "common.h"
#include "svm.h"

#define EFER 0xc0000080
#define HOST_SAVE 0xc0010117
#define EFER_SVM (1u << 12)

enum call { CALL_YIELD = 1, CALL_WORK, CALL_END };
enum exit { EXIT_UNDEFINED = 0x46, EXIT_INTERRUPT = 0x60, EXIT_CPUID = 0x72, EXIT_CALL = 0x81 };

#define ON_UNDEFINED (1u << 6)	       /* in vmcb.on_exceptions */
#define ON_INTERRUPT (1u | 1u << 18)   /* and cpuid */
#define ON_CALL 3u		       /* and vmrun */
#define MASK_INTERRUPTS (1ull << 24)   /* the guest's flag does not apply to them */
#define EVENT_CALL (1ull << 31 | 0x80) /* the interrupt that calls trap() with TRAP_CALL */
#define INTERRUPT_FLAG 0x200
#define LONG_CODE 0xa9b
#define DATA 0xc93
#define DPL_3 0x60
#define TASK_BUSY 0x8b
#define PAGE_USER 4

struct segment {
	uint16_t selector, attributes;
	uint32_t limit;
	uint64_t base;
};

struct vmcb {
	uint32_t on_registers, on_debug, on_exceptions, on_interrupt, on_call;
	uint8_t unused_1[0x44];
	uint32_t number, flush;
	uint64_t interrupts, shadow, exit, exit_info[2], exit_event, nested;
	uint8_t unused_2[0x10];
	uint64_t event, nested_table;
	uint8_t unused_3[0x348];
	struct segment es, cs, ss, ds, fs, gs, gdt, ldt, idt, task;
	uint8_t unused_4[0x2b], level;
	uint8_t unused_9[4];
	uint64_t efer;
	uint8_t unused_5[0x70];
	uint64_t cr4, cr3, cr0, dr7, dr6, flags, rip;
	uint8_t unused_6[0x58];
	uint64_t rsp;
	uint8_t unused_7[0x18];
	uint64_t rax;
	uint8_t unused_8[0xa00];
} __attribute__((aligned(4096)));
_Static_assert(offsetof(struct vmcb, number) == 0x58 && offsetof(struct vmcb, event) == 0xa8 &&
		       offsetof(struct vmcb, es) == 0x400 && offsetof(struct vmcb, efer) == 0x4d0 &&
		       offsetof(struct vmcb, cr4) == 0x548 && offsetof(struct vmcb, rsp) == 0x5d8 &&
		       offsetof(struct vmcb, rax) == 0x5f8 && sizeof(struct vmcb) == 4096,
	       "as the cpu has it");

struct guest {
	uint64_t registers[GUEST_REGISTERS];
	bool live;
};

/* svm.S */
void enter_guest(uint64_t vmcb, uint64_t *registers);
void leave_guest(uint64_t call);
void cause_undefined(void);
extern const uint8_t thread_start[];

void thread_run(uint64_t number);

static struct vmcb vmcbs[SPACES];
static struct guest guests[SPACES];
static uint8_t host_save[4096] __attribute__((aligned(4096)));
static unsigned ticks, calls, asked, undefined, events, hurried;

static uint64_t read_msr(uint32_t number)
{
	uint32_t low, high;

	__asm__ volatile("rdmsr" : "=a"(low), "=d"(high) : "c"(number));
	return (uint64_t)high << 32 | low;
}

static void write_msr(uint32_t number, uint64_t value)
{
	__asm__ volatile("wrmsr"
			 :
			 : "c"(number), "a"((uint32_t)value), "d"((uint32_t)(value >> 32)));
}

/* In a guest */

NOINLINE static void ask_cpu(void)
{
	uint32_t leaf = 0, other;

	__asm__ volatile("cpuid" : "+a"(leaf), "=c"(other) : : "ebx", "edx");
	if (leaf != 7 || other != 9)
		fail("wrong answer to", "cpuid");
}

/* Leaves the guest in all ways. */
void yield(void)
{
	static unsigned times;

	switch (times++ % 4) {
	case 0: leave_guest(CALL_YIELD); break;
	case 1: leave_guest(CALL_WORK); break;
	case 2: ask_cpu(); break;
	default: cause_undefined();
	}
}

void thread_run(uint64_t number)
{
	workers[number].main();
	leave_guest(CALL_END);
}

NOINLINE static void handle_event(void)
{
	uint32_t x = ++events;

	MIX(x, 30);
}

/* In the hypervisor, and for events in a guest */

struct frame *style_trap(struct frame *frame, enum trap why)
{
	switch (why) {
	case TRAP_CALL: handle_event(); break;
	case TRAP_TIMER: ticks++; break;
	default: hurried++;
	}
	return frame;
}

NOINLINE static void do_work(struct vmcb *vmcb)
{
	uint32_t x = (uint32_t)vmcb->rip;

	MIX(x, 50);
	vmcb->rax = x;
}

NOINLINE static void handle_call(struct vmcb *vmcb, struct guest *guest)
{
	calls++;
	switch (vmcb->rax) {
	case CALL_YIELD: break;
	case CALL_WORK: do_work(vmcb); break;
	case CALL_END: guest->live = false; break;
	default: fail("a guest", "calls");
	}
	vmcb->rip += 3;
}

/* Sometimes with an interrupt for which the guest leaves before it handles the event. */
NOINLINE static void send_event(struct vmcb *vmcb)
{
	if (ticks % 2 || !(vmcb->flags & INTERRUPT_FLAG))
		return;
	vmcb->event = EVENT_CALL;
	if (ticks % 3 == 0)
		soft_interrupt();
}

/* Completes what the guest did. Returns whether it goes on. */
NOINLINE static bool handle_exit(struct vmcb *vmcb, struct guest *guest)
{
	uint64_t call = vmcb->rax;

	switch (vmcb->exit) {
	case EXIT_INTERRUPT: send_event(vmcb); return false;
	case EXIT_CALL: handle_call(vmcb, guest); return call == CALL_WORK;
	case EXIT_CPUID:
		asked++;
		vmcb->rax = 7;
		guest->registers[GUEST_RCX] = 9;
		vmcb->rip += 2;
		return true;
	case EXIT_UNDEFINED:
		undefined++;
		vmcb->rip += 2;
		return true;
	default: fail("a guest", "leaves");
	}
}

NOINLINE static void run_guest(unsigned number)
{
	struct vmcb *vmcb = &vmcbs[number];
	struct guest *guest = &guests[number];

	do {
		enter_guest((uintptr_t)vmcb, guest->registers);
		vmcb->event = 0;
	} while (handle_exit(vmcb, guest));
}

/* Setup */

#ifdef SVM_NESTED
static uint64_t nested[SPACES][3][512] __attribute__((aligned(4096)));

/* All guests have the tables of the first one, with its memory at the same address of their own. */
static uint64_t make_space(struct vmcb *vmcb, unsigned number)
{
	static uint64_t space;
	static uint8_t *first;
	uint64_t(*table)[512] = nested[number];

	if (!number)
		space = space_make(0, &first);
	table[0][0] = (uintptr_t)table[1] | 7;
	table[1][0] = (uintptr_t)table[2] | 7;
	for (uint64_t i = 0; i < 512; i++)
		table[2][i] = i * USER_SIZE | 0x87;
	table[2][(uintptr_t)first / USER_SIZE] += number * USER_SIZE;
	vmcb->nested = 1;
	vmcb->nested_table = (uintptr_t)table[0];
	return space;
}
#else
static uint64_t make_space(struct vmcb *vmcb, unsigned number)
{
	uint8_t *memory;

	(void)vmcb;
	return space_make(number, &memory);
}
#endif

#ifdef SVM_USER
/* Interrupts, but not the worker, run in ring 0, on a stack of their own. */
static void start_in_user_mode(struct vmcb *vmcb)
{
	uint64_t *top = (uint64_t *)vmcb->cr3, *next = (uint64_t *)(*top & ~0xffful);

	*next |= PAGE_USER;
	task_state.rsp[0] = vmcb->rsp - 0x10000;
	vmcb->task =
		(struct segment){ TASK, TASK_BUSY, sizeof(task_state) - 1, (uintptr_t)&task_state };
	vmcb->cs = (struct segment){ USER_CODE, LONG_CODE | DPL_3, 0xffffffff, 0 };
	vmcb->ss = vmcb->ds = vmcb->es = (struct segment){ USER_DATA, DATA | DPL_3, 0xffffffff, 0 };
	vmcb->level = 3;
}
#endif

static void make_guest(unsigned number)
{
	struct vmcb *vmcb = &vmcbs[number];
	struct {
		uint16_t limit;
		uint64_t base;
	} __attribute__((packed)) gdt, idt;

	vmcb->cr3 = make_space(vmcb, number);
	__asm__ volatile("sgdt %0; sidt %1" : "=m"(gdt), "=m"(idt));
	__asm__ volatile("mov %%cr0, %0; mov %%cr4, %1" : "=r"(vmcb->cr0), "=r"(vmcb->cr4));
	vmcb->on_exceptions = ON_UNDEFINED;
	vmcb->on_interrupt = ON_INTERRUPT;
	vmcb->on_call = ON_CALL;
	vmcb->number = number + 1;
	vmcb->interrupts = MASK_INTERRUPTS;
	vmcb->efer = read_msr(EFER);
	vmcb->cs = (struct segment){ 8, LONG_CODE, 0xffffffff, 0 };
	vmcb->ss = vmcb->ds = vmcb->es = (struct segment){ 16, DATA, 0xffffffff, 0 };
	vmcb->gdt = (struct segment){ .limit = gdt.limit, .base = gdt.base };
	vmcb->idt = (struct segment){ .limit = idt.limit, .base = idt.base };
	vmcb->dr6 = 0xffff0ff0;
	vmcb->dr7 = 0x400;
	vmcb->flags = INTERRUPT_FLAG | 2;
	vmcb->rip = (uintptr_t)thread_start;
	vmcb->rsp = USER_BASE + USER_SIZE - 16;
	guests[number].registers[GUEST_RDI] = number;
	guests[number].live = true;
#ifdef SVM_USER
	start_in_user_mode(vmcb);
#endif
}

void style_run(void)
{
	write_msr(EFER, read_msr(EFER) | EFER_SVM);
	write_msr(HOST_SAVE, (uintptr_t)host_save);
	for (unsigned i = 0; i < SPACES; i++)
		make_guest(i);
	while (guests[0].live || guests[1].live || guests[2].live) {
		for (unsigned i = 0; i < SPACES; i++) {
			if (guests[i].live)
				run_guest(i);
		}
	}
	interrupts_off();
	if (!ticks || !calls || !asked || !undefined || !events || !hurried)
		fail("guests did not leave in all ways", "");
}

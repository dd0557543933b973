// SPDX-License-Identifier: GPL-2.0-or-later
/* x86-64: descriptors, the local APIC, address spaces, QEMU's devices. */
#include "kernel.h"

#define SERIAL 0x3f8
#define LINE 0x2f8   /* the second serial port */
#define FW_CFG 0x510 /* QEMU reports the number of cpus here */
#define FW_CFG_CPUS 5
#define POWER 0x604
#define APIC ((volatile uint32_t *)0xfffffffffee00000)
#define HPET ((volatile uint32_t *)0xfffffffffed00000)
#define PRESENT_WRITE_USER 7
#define LARGE_PAGE 0x80

enum apic {
	APIC_END = 0xb0,
	APIC_SPURIOUS = 0xf0,
	APIC_COMMAND = 0x300,
	APIC_COMMAND_CPU = 0x310,
	APIC_TIMER = 0x320,
	APIC_TIMER_COUNT = 0x380,
	APIC_TIMER_DIVIDE = 0x3e0
};

/* Timers of the HPET have more; its counter has 64 bits. */
enum hpet { HPET_ENABLE = 0x10, HPET_LOW = 0xf0, HPET_HIGH = 0xf4 };

/* Registers of a serial port, and bits in them */
enum serial {
	SERIAL_DATA = 0,
	SERIAL_INTERRUPTS = 1,
	SERIAL_FIFO = 2,
	SERIAL_FORMAT = 3,
	SERIAL_MODEM = 4,
	SERIAL_STATUS = 5,
	SERIAL_SCRATCH = 7
};
#define SERIAL_RECEIVED 0x01
#define SERIAL_SENT 0x20
#define SERIAL_FIFO_SIZE 16
#define SERIAL_LOOPBACK 0x10
#define SERIAL_READY 0x03

struct frame { /* what trap_entry leaves on the stack */
	uint64_t r15, r14, r13, r12, r11, r10, r9, r8, rbp, rdi, rsi, rdx, rcx, rbx, rax;
	uint64_t vector, error, rip, cs, rflags, rsp, ss;
};

struct __attribute__((packed)) tss {
	uint32_t unused;
	uint64_t rsp0;
	uint64_t other[11];
	uint32_t io_map;
};

struct __attribute__((packed)) pointer {
	uint16_t limit;
	void *base;
};

struct gate {
	uint16_t low, selector, flags, middle;
	uint32_t high, unused;
};

extern uint64_t boot_pml4[512];
extern void *boot_stack;
extern const uint8_t trampoline[], trampoline_end[], trap_stubs[], trap_return[], task_start[];
void trap(struct frame *frame);

static struct tss tss[MAX_CPUS];
static struct gate idt[VECTORS];
static uint64_t gdt[5 + 2 * MAX_CPUS] = {
	0,
	0x00af9b000000ffff, /* KERNEL_CODE */
	0x00cf93000000ffff, /* KERNEL_DATA */
	0x00affb000000ffff, /* USER_CODE */
	0x00cff3000000ffff, /* USER_DATA */
};
static uint64_t tables[3 * 4][512] __attribute__((aligned(4096)));
static volatile unsigned started;
static int early = -1; /* a byte of the line */

static void out8(uint16_t port, uint8_t value)
{
	__asm__ volatile("outb %0, %1" : : "a"(value), "Nd"(port));
}

static void out16(uint16_t port, uint16_t value)
{
	__asm__ volatile("outw %0, %1" : : "a"(value), "Nd"(port));
}

static uint8_t in8(uint16_t port)
{
	uint8_t value;

	__asm__ volatile("inb %1, %0" : "=a"(value) : "Nd"(port));
	return value;
}

static uint64_t physical(const void *address)
{
	return (uintptr_t)address - KERNEL_OFFSET;
}

void put_char(char c)
{
	while (!(in8(SERIAL + SERIAL_STATUS) & SERIAL_SENT))
		;
	out8(SERIAL, (uint8_t)c);
}

/*
 * Enabling the FIFOs clears them, so a byte that the host has already sent is kept here. The
 * loopback disconnects the input in between. QEMU only delays it, so a host that wants to be sure
 * waits until the target has sent something.
 */
bool line_init(void)
{
	out8(LINE + SERIAL_SCRATCH, 0x5a);
	if (in8(LINE + SERIAL_SCRATCH) != 0x5a)
		return false;
	out8(LINE + SERIAL_INTERRUPTS, 0);
	out8(LINE + SERIAL_FORMAT, 3); /* 8 bits */
	out8(LINE + SERIAL_MODEM, SERIAL_LOOPBACK);
	if (in8(LINE + SERIAL_STATUS) & SERIAL_RECEIVED)
		early = in8(LINE + SERIAL_DATA);
	out8(LINE + SERIAL_FIFO, 0xc1); /* QEMU fills it up to the interrupt's level: 14 bytes */
	out8(LINE + SERIAL_MODEM, SERIAL_READY);
	return true;
}

size_t line_put(const void *bytes, size_t size)
{
	size_t done = 0;

	if (in8(LINE + SERIAL_STATUS) & SERIAL_SENT)
		while (done < size && done < SERIAL_FIFO_SIZE)
			out8(LINE + SERIAL_DATA, ((const uint8_t *)bytes)[done++]);
	return done;
}

int line_get(void)
{
	int byte = early;

	if (byte >= 0)
		early = -1;
	else if (in8(LINE + SERIAL_STATUS) & SERIAL_RECEIVED)
		byte = in8(LINE + SERIAL_DATA);
	return byte;
}

/* PVH's start info: the address of the command line is its fourth 64 bits. */
const char *command_line(uintptr_t boot_info)
{
	const uint64_t *info = (const uint64_t *)(boot_info + KERNEL_OFFSET);

	return info[3] ? (const char *)(info[3] + KERNEL_OFFSET) : "";
}

unsigned count_cpus(void)
{
	unsigned cpus;

	out16(FW_CFG, FW_CFG_CPUS);
	cpus = in8(FW_CFG + 1);
	return cpus > MAX_CPUS ? MAX_CPUS : cpus;
}

static void apic_write(enum apic what, uint32_t value)
{
	APIC[what / 4] = value;
}

/*
 * The HPET needs no calibration and is the same on all cpus. QEMU's counts the same time as the
 * timer of the APIC, in steps of 10 ns, with -icount and without; the TSC would be the host's
 * without -icount. QEMU may read the counter as two halves.
 */
uint64_t time_ns(void)
{
	uint32_t high, low;

	do {
		high = HPET[HPET_HIGH / 4];
		low = HPET[HPET_LOW / 4];
	} while (high != HPET[HPET_HIGH / 4]);
	return ((uint64_t)high << 32 | low) * 10;
}

void timer_set(uint64_t ns)
{
	apic_write(APIC_TIMER_COUNT, (uint32_t)ns);
}

static void idt_init(void)
{
	for (unsigned i = 0; i < VECTORS; i++) {
		uintptr_t stub = (uintptr_t)trap_stubs + 16 * i;

		idt[i] = (struct gate){ .low = (uint16_t)stub,
					.selector = KERNEL_CODE,
					.flags = i == VECTOR_EXIT ? 0xee00 : 0x8e00,
					.middle = (uint16_t)(stub >> 16),
					.high = (uint32_t)(stub >> 32) };
	}
}

void cpu_init(unsigned cpu)
{
	uint64_t base = (uintptr_t)&tss[cpu];
	struct pointer gdt_pointer = { sizeof(gdt) - 1, gdt };
	struct pointer idt_pointer = { sizeof(idt) - 1, idt };

	gdt[5 + 2 * cpu] = (sizeof(tss[0]) - 1) | (base & 0xffffff) << 16 | 0x89ull << 40 |
			   (base >> 24 & 0xff) << 56;
	gdt[6 + 2 * cpu] = base >> 32;
	tss[cpu].io_map = sizeof(tss[0]) << 16;
	if (cpu == 0) {
		idt_init();
		out8(0x21, 0xff); /* mask the legacy PICs */
		out8(0xa1, 0xff);
		HPET[HPET_ENABLE / 4] = 1;
	}
	__asm__ volatile("lgdt %0" : : "m"(gdt_pointer));
	__asm__ volatile("lidt %0" : : "m"(idt_pointer));
	__asm__ volatile("ltr %w0" : : "r"(FIRST_TSS + 16 * cpu));
	apic_write(APIC_SPURIOUS, 0x100 | VECTOR_SPURIOUS);
	apic_write(APIC_TIMER_DIVIDE, 0xb);   /* by 1: QEMU counts ns */
	apic_write(APIC_TIMER, VECTOR_TIMER); /* once */
	tick_start(cpu);
	started = cpu;
}

void cpu_start(unsigned cpu, void *stack)
{
	uint8_t *low = (uint8_t *)(TRAMPOLINE + KERNEL_OFFSET);

	for (size_t i = 0; trampoline + i < trampoline_end; i++)
		low[i] = trampoline[i];
	boot_stack = stack;
	apic_write(APIC_COMMAND_CPU, cpu << 24);
	apic_write(APIC_COMMAND, 0x4500); /* INIT */
	apic_write(APIC_COMMAND_CPU, cpu << 24);
	apic_write(APIC_COMMAND, 0x4600 | TRAMPOLINE >> 12);
	while (started != cpu)
		__asm__ volatile("pause");
}

void cpu_idle(void)
{
	__asm__ volatile("sti; hlt; cli" ::: "memory");
}

_Noreturn void power_off(void)
{
	out16(POWER, 0x2000);
	for (;;)
		__asm__ volatile("cli; hlt");
}

void use_space(uint64_t space, void *kernel_stack)
{
	tss[current()->cpu].rsp0 = (uintptr_t)kernel_stack;
	__asm__ volatile("mov %0, %%cr3" : : "r"(space) : "memory");
}

uint64_t kernel_space(void)
{
	return physical(boot_pml4);
}

/* One large page at USER_TEXT; the kernel is mapped above, as in every space. */
uint64_t user_space(unsigned number, uint8_t *memory)
{
	uint64_t *pml4 = tables[3 * number], *pdpt = tables[3 * number + 1],
		 *pd = tables[3 * number + 2];

	pd[USER_TEXT / USER_SIZE] = physical(memory) | LARGE_PAGE | PRESENT_WRITE_USER;
	pdpt[0] = physical(pd) | PRESENT_WRITE_USER;
	pml4[0] = physical(pdpt) | PRESENT_WRITE_USER;
	pml4[511] = boot_pml4[511];
	return physical(pml4);
}

/* The stack that switch_to expects: six registers and where to continue. */
static void *switch_context(void *stack, const void *where)
{
	uint64_t *sp = stack;

	*--sp = (uintptr_t)where;
	for (unsigned i = 0; i < 6; i++)
		*--sp = 0;
	return sp;
}

void *kernel_context(void *stack)
{
	return switch_context(stack, task_start);
}

void *user_context(void *stack, uint64_t argument)
{
	struct frame *frame = (struct frame *)stack - 1;

	*frame = (struct frame){ .rip = USER_TEXT,
				 .rdi = argument,
				 .cs = USER_CODE,
				 .ss = USER_DATA,
				 .rflags = 0x202,
				 .rsp = USER_TEXT + USER_SIZE };
	return switch_context(frame, trap_return);
}

static void interrupted_at(const struct frame *frame, struct interrupted *at)
{
	at->user = frame->cs & 3;
	at->pc = frame->rip;
	at->fp = frame->rbp;
	at->sp = frame->rsp;
	at->link = 0;
	read_checked(&at->link, at->sp, sizeof(at->link), at->user);
}

/* The link lies below the frame. */
bool trap_interrupted(uintptr_t back, uintptr_t fp, struct interrupted *at)
{
	size_t size = 16 + sizeof(struct frame);

	if (back != (uintptr_t)trap_back || !in_stack(fp + size, size))
		return false;
	interrupted_at((const struct frame *)(fp + 16), at);
	return true;
}

bool user_interrupted(const struct task *task, struct interrupted *at)
{
	const struct frame *frame = (const struct frame *)stack_top(task) - 1;

	if (!task->work || !task->work->program)
		return false;
	interrupted_at(frame, at);
	if (task != current()) /* its stack is in another address space */
		at->link = 0;
	return at->user;
}

static void timer_interrupt(const struct frame *frame)
{
	struct interrupted at;

	apic_write(APIC_END, 0);
	interrupted_at(frame, &at);
	timer_fired(&at);
}

void trap(struct frame *frame)
{
	switch (frame->vector) {
	case VECTOR_TIMER: timer_interrupt(frame); break;
	case VECTOR_EXIT: task_exit();
	case VECTOR_SPURIOUS: break;
	default: panic("exception", frame->rip);
	}
}

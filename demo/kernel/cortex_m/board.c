// SPDX-License-Identifier: GPL-2.0-or-later
/* QEMU's mps2-an385: its memory, serial ports and timers, and QEMU's semihosting. */
#include "board.h"

#define CONSOLE DEVICE(0x40004000)
#define LINE DEVICE(0x40005000)
#define SAMPLE_TIMER DEVICE(0x40000000)
#define CLOCK DEVICE(0x40001000) /* a timer that always runs */

/* The registers, in words */
enum { UART_DATA, UART_STATE, UART_CONTROL, UART_DIVIDER = 4 };
#define UART_FULL_OUT 1
#define UART_FULL_IN 2
#define UART_ON 3 /* both directions */

enum { TIMER_CONTROL, TIMER_VALUE, TIMER_RELOAD, TIMER_CLEAR };
#define TIMER_ON 1
#define TIMER_INTERRUPTS 8
#define LONGEST 4000000000 /* ns, for which the timer is set at once: 32 bits */

#define SYS_GET_CMDLINE 0x15
#define SYS_EXIT 0x18
#define APPLICATION_EXIT 0x20026

static const struct {
	uintptr_t start, size;
} memory_map[] = {
	{ CODE_START, CODE_SIZE },
	{ RAM_START, RAM_SIZE },
	{ PSRAM_START, PSRAM_SIZE },
};

static uint64_t sample_rest; /* ns, after those for which the timer is set */

static void uart_init(volatile uint32_t *uart)
{
	uart[UART_DIVIDER] = 16; /* the fastest */
	uart[UART_CONTROL] = UART_ON;
}

void board_init(void)
{
	uart_init(CONSOLE);
	CLOCK[TIMER_RELOAD] = UINT32_MAX;
	CLOCK[TIMER_CONTROL] = TIMER_ON;
}

void put_char(char c)
{
	while (CONSOLE[UART_STATE] & UART_FULL_OUT)
		;
	CONSOLE[UART_DATA] = (uint8_t)c;
}

bool line_init(void)
{
	uart_init(LINE);
	return true;
}

size_t line_put(const void *bytes, size_t size)
{
	const uint8_t *byte = bytes;
	size_t done = 0;

	while (done < size && !(LINE[UART_STATE] & UART_FULL_OUT))
		LINE[UART_DATA] = byte[done++];
	return done;
}

int line_get(void)
{
	return LINE[UART_STATE] & UART_FULL_IN ? (int)(LINE[UART_DATA] & 0xff) : -1;
}

/* Extends the clock to 64 bits: the tick calls it more often than the clock's 32 bits wrap. */
uint64_t time_ns(void)
{
	static uint64_t cycles;
	static uint32_t before;
	uint32_t off = READ_SPECIAL(primask), now;
	uint64_t time;

	interrupts_off();
	now = ~CLOCK[TIMER_VALUE]; /* it counts down */
	cycles += now - before;
	before = now;
	time = cycles * CYCLE_NS;
	WRITE_SPECIAL(primask, off);
	return time;
}

void sample_timer(uint64_t ns)
{
	uint32_t first = ns < LONGEST ? (uint32_t)ns : LONGEST;
	uint32_t cycles = (first + CYCLE_NS - 1) / CYCLE_NS;

	sample_rest = ns - first;
	SAMPLE_TIMER[TIMER_CONTROL] = 0;
	SAMPLE_TIMER[TIMER_CLEAR] = 1;
	SAMPLE_TIMER[TIMER_RELOAD] = 0; /* it stops at 0 */
	SAMPLE_TIMER[TIMER_VALUE] = cycles;
	if (cycles)
		SAMPLE_TIMER[TIMER_CONTROL] = TIMER_ON | TIMER_INTERRUPTS;
}

void sample_interrupt(const struct interrupted *at)
{
	SAMPLE_TIMER[TIMER_CLEAR] = 1;
	if (sample_rest)
		sample_timer(sample_rest);
	else
		sample_timer_fired(at);
}

static bool is_within(uintptr_t from, size_t size, uintptr_t start, uintptr_t length)
{
	return from >= start && size <= length && from - start <= length - size;
}

/* A user program may read its own memory, which is its `space`. */
static bool is_readable(uintptr_t from, size_t size, bool user)
{
	uintptr_t space = (uintptr_t)current()->space;

	if (user)
		return space && is_within(from, size, space, USER_SIZE);
	if (is_within(from, size, RAM_START, RAM_SIZE)) /* the stacks are there */
		return true;
	for (size_t i = 0; i < sizeof(memory_map) / sizeof(memory_map[0]); i++) {
		if (is_within(from, size, memory_map[i].start, memory_map[i].size))
			return true;
	}
	return false;
}

bool read_checked(void *to, uintptr_t from, size_t size, bool user)
{
	const volatile uint8_t *byte = (const volatile uint8_t *)from;

	if (!is_readable(from, size, user))
		return false;
	if (size == 8 &&
	    ((uintptr_t)to | from) % 4 == 0) { /* what a profiler reads for each frame */
		((uint32_t *)to)[0] = ((const volatile uint32_t *)from)[0];
		((uint32_t *)to)[1] = ((const volatile uint32_t *)from)[1];
		return true;
	}
	for (size_t i = 0; i < size; i++)
		((uint8_t *)to)[i] = byte[i];
	return true;
}

static uint32_t semihosting(uint32_t operation, uintptr_t argument)
{
	register uint32_t r0 __asm__("r0") = operation;
	register uintptr_t r1 __asm__("r1") = argument;

	__asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
	return r0;
}

/* Without arg= of its option, semihosting has the words of -append. */
const char *command_line(uintptr_t boot_info)
{
	static char line[512];
	const uintptr_t block[] = { (uintptr_t)line, sizeof(line) };

	(void)boot_info;
	return semihosting(SYS_GET_CMDLINE, (uintptr_t)block) ? "" : line;
}

_Noreturn void power_off(void)
{
	semihosting(SYS_EXIT, APPLICATION_EXIT);
	for (;;)
		__asm__ volatile("wfi");
}

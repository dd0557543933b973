// SPDX-License-Identifier: GPL-2.0-or-later
#include "common.h"

#define MARK 0x5afe

struct stacks stacks __attribute__((aligned(4096)));

/* The compiler may call these. */
void *memset(void *to, int value, size_t len);
void *memcpy(void *restrict to, const void *restrict from, size_t len);

__attribute__((no_builtin)) void *memset(void *to, int value, size_t len)
{
	for (size_t i = 0; i < len; i++)
		((volatile uint8_t *)to)[i] = (uint8_t)value;
	return to;
}

__attribute__((no_builtin)) void *memcpy(void *restrict to, const void *restrict from, size_t len)
{
	for (size_t i = 0; i < len; i++)
		((volatile uint8_t *)to)[i] = ((const uint8_t *)from)[i];
	return to;
}

void print(const char *text)
{
	while (*text)
		put_char(*text++);
}

_Noreturn void fail(const char *what, const char *who)
{
	interrupts_off();
	print("kscope: fault: ");
	print(what);
	print(" ");
	print(who);
	print("\n");
	power_off(false);
}

/* The lowest word of a stack is never used, unless it overflows. */
static uint32_t *mark_of(unsigned thread)
{
	return (uint32_t *)stacks.thread[thread];
}

void mark_stacks(void)
{
	*(uint32_t *)stacks.interrupt = MARK;
	*(uint32_t *)stacks.boot = MARK;
	for (unsigned i = 0; i < THREADS; i++)
		*mark_of(i) = MARK;
}

void check_stacks(void)
{
	if (*(uint32_t *)stacks.interrupt != MARK || *(uint32_t *)stacks.boot != MARK)
		fail("stack overflow", "boot");
	for (unsigned i = 0; i < THREADS; i++) {
		if (*mark_of(i) != MARK)
			fail("stack overflow", workers[i].name);
	}
}

_Noreturn void guest_end(void)
{
	check_stacks();
	print("kscope: end\n");
	power_off(true);
}

void guest_main(void)
{
	cpu_init();
	print("kscope: begin\n");
	mark_stacks();
	style_run();
	guest_end();
}

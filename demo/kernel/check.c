// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Counts the interrupts that a profiler would take samples in, and checks what it needs of the
 * machine. Options: sample=NS sets the timer to NS again and again; line=N sends the first N bytes
 * that come from the line back.
 */
#include "kernel.h"

static struct {
	unsigned samples, user, wrong;
	uint64_t since;
} cpus[MAX_CPUS];
static unsigned period, echoes;

#ifdef USER_TEXT
/* Memory begins and ends where it should. */
static bool reads_are_checked(uintptr_t start, uintptr_t end, bool user)
{
	uint8_t bytes[16];

	return read_checked(bytes, start, 16, user) && read_checked(bytes, end - 16, 16, user) &&
	       read_checked(bytes, start + 3, 5, user) && bytes[4] == *(uint8_t *)(start + 7) &&
	       !read_checked(bytes, start, 16, !user) && !read_checked(bytes, 0, 1, user) &&
	       !read_checked(bytes, start - 1, 16, user) &&
	       !read_checked(bytes, end - 15, 16, user) &&
	       !read_checked(bytes, start, (size_t)-8, user) &&
	       !read_checked(bytes, (uintptr_t)-8, 16, user);
}

/* The stack pointer is in the task's stack, and user code is also found by its task. */
static bool place_is_known(const struct interrupted *at)
{
	const struct task *task = current();
	struct interrupted user = { 0 };

	if (user_interrupted(task, &user) != at->user)
		return false;
	if (!at->user)
		return at->sp > (uintptr_t)task && at->sp <= (uintptr_t)stack_top(task);
	return user.user && user.pc == at->pc && user.sp == at->sp && user.fp == at->fp &&
	       user.link == at->link && at->sp - USER_TEXT <= USER_SIZE;
}

static bool is_right(const struct interrupted *at)
{
	uint16_t code;

	if (!read_checked(&code, at->pc, sizeof(code), at->user) || !place_is_known(at))
		return false;
	return at->user ? reads_are_checked(USER_TEXT, USER_TEXT + USER_SIZE, true)
			: reads_are_checked((uintptr_t)kernel_start, (uintptr_t)kernel_end, false);
}
#else
/* Without an MMU, each program has its own address, and handlers have a stack of their own. */
static bool is_right(const struct interrupted *at)
{
	struct interrupted user = { 0 };
	uint8_t bytes[2];

	if (at->user &&
	    !(user_interrupted(current(), &user) && user.pc == at->pc && user.sp == at->sp))
		return false;
	return read_checked(bytes, at->pc, 2, at->user) &&
	       !read_checked(bytes, (uintptr_t)-1, 2, at->user);
}
#endif

void check_fired(const struct interrupted *at)
{
	unsigned cpu = current()->cpu;

	cpus[cpu].samples++;
	cpus[cpu].user += at->user;
	cpus[cpu].wrong += !is_right(at);
	sample_timer(period);
}

void check_init(const char *options)
{
	period = option(options, "sample", 0);
	echoes = option(options, "line", 0);
	if (!echoes)
		return;
	if (!line_init())
		panic("no line", 0);
	print("line: ready\n");
}

void check_cpu(void)
{
	cpus[current()->cpu].since = time_ns();
	sample_timer(period);
}

static void echo(void)
{
	uint8_t bytes[256];
	unsigned sent = 0;

	while (sent < echoes) {
		size_t size = 0, put = 0;

		for (int byte; size < sizeof(bytes) && (byte = line_get()) >= 0;)
			bytes[size++] = (uint8_t)byte;
		while (put < size)
			put += line_put(bytes + put, size - put);
		sent += (unsigned)size;
	}
	print("line: %u\n", sent);
}

void check_end(void)
{
	uint64_t now = time_ns();

	for (unsigned cpu = 0; period && cpu < MAX_CPUS && cpus[cpu].since; cpu++)
		print("samples: %u %u, %u in user code, %u wrong, in %u us\n", cpu,
		      cpus[cpu].samples, cpus[cpu].user, cpus[cpu].wrong,
		      (unsigned)((now - cpus[cpu].since) / 1000));
	if (echoes)
		echo();
}

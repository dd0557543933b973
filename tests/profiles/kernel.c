// SPDX-License-Identifier: GPL-2.0-or-later
/* kernel: the functions of a kernel, for tests/kit/profiles.py. It never runs, and has no data. */
#define NOINLINE __attribute__((noinline))

static inline __attribute__((always_inline)) int account(int ticks)
{
	volatile int spent = ticks;

	spent = spent * 3 + 1;
	return spent;
}

NOINLINE int update_process_times(int ticks)
{
	return account(ticks) + account(ticks + 1);
}

static inline __attribute__((always_inline)) int handle_timer_interrupt(int ticks)
{
	volatile int now = ticks;

	return update_process_times(now) + now;
}

NOINLINE int trap(int number)
{
	volatile int known = number;

	known = known * 5 + 2;
	return handle_timer_interrupt(known) + known;
}

NOINLINE int copy_to_user(int n)
{
	volatile int left = n;

	while (left > 0)
		left = left - 8;
	return left;
}

NOINLINE int sys_read(int n)
{
	return copy_to_user(n) + 1;
}

NOINLINE int syscall_entry(int number)
{
	return sys_read(number) + 1;
}

NOINLINE int cpu_idle(int cpu)
{
	volatile int n = cpu;

	return n;
}

NOINLINE int start_kernel(int cpu)
{
	return cpu_idle(cpu) + 1;
}

int _start(int n)
{
	return start_kernel(n) + syscall_entry(n) + trap(n);
}

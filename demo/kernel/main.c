// SPDX-License-Identifier: GPL-2.0-or-later
/* The plan: what runs on which cpu, and the expected result. */
#include "kernel.h"

static const struct {
	const struct work *work;
	unsigned cpu;
	unsigned units; /* times `scale` of the command line */
} plan[] = {
	{ &compress, 0, 40 }, { &checksum, 0, 30 }, { &route, 0, 20 },
	{ &cache, 0, 10 },    { &compress, 1, 40 }, { &dice, 1, 60 },
	{ &route, 2, 50 },    { &knit, 2, 50 },	    { &checksum, 3, 50 },
};
#define PLANNED (sizeof(plan) / sizeof(plan[0]))

static unsigned cpus, scale;
static bool spin; /* idle cpus do not wait */

/* A number on the command line: name=123 */
unsigned option(const char *line, const char *name, unsigned otherwise)
{
	for (; *line; line++) {
		const char *at = line, *c = name;
		unsigned value = 0;

		while (*c && *at == *c)
			at++, c++;
		if (*c || *at++ != '=')
			continue;
		while (*at >= '0' && *at <= '9')
			value = value * 10 + (unsigned)(*at++ - '0');
		return value;
	}
	return otherwise;
}

static void print_truth(const struct work *work)
{
	unsigned units = 0;

	for (size_t i = 0; i < PLANNED; i++)
		units += plan[i].work == work ? plan[i].units * scale : 0;
	for (const struct truth *t = work->inlined; t->function; t++)
		print("inlined: %s %s %u\n", work->name, t->function, t->calls * units);
	for (const struct truth *t = work->truth; t->function; t++)
		print("truth: %s %s %u %u\n", work->name, t->function, t->calls * units,
		      t->rounds * units);
}

static _Noreturn void finish(void)
{
	static const struct work *const all[] = {
		&compress, &checksum, &route, &cache, &dice, &knit
	};

	print("demo: end\n");
	for (size_t i = 0; i < PLANNED; i++)
		print("plan: %u %s %u\n", plan[i].cpu % cpus, plan[i].work->name,
		      plan[i].units * scale);
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		print_truth(all[i]);
	for (unsigned cpu = 0; cpu < cpus; cpu++)
		print("ticks: %u %u\n", cpu, ticks[cpu]);
	profile_end();
	power_off();
}

/* For an interrupt, with interrupts off before and after. */
void idle_wait(void)
{
	if (!spin) {
		cpu_idle();
		return;
	}
	interrupts_on();
	for (unsigned i = 0; i < 100; i++)
		__asm__ volatile("");
	interrupts_off();
}

static _Noreturn void idle(void)
{
	for (;;) {
		if (current()->cpu == 0 && !tasks_unfinished())
			finish();
		idle_wait();
	}
}

static void first_cpu(uintptr_t boot_info)
{
	const char *options = command_line(boot_info);

	scale = option(options, "scale", 100);
	spin = option(options, "spin", 0);
	cpus = count_cpus();
	print("demo: begin, %u cpus, scale %u\n", cpus, scale);
	for (unsigned cpu = 0; cpu < cpus; cpu++)
		idle_create(cpu);
	for (size_t i = 0; i < PLANNED; i++)
		task_create(plan[i].work, plan[i].cpu % cpus, plan[i].units * scale);
	cpu_init(0);
	profile_init(options, cpus);
	for (unsigned cpu = 1; cpu < cpus; cpu++)
		cpu_start(cpu, stack_top(&stacks[cpu].task));
}

/* Every cpu starts here on the stack of its idle task. Only the first gets boot_info. */
void kernel_main(uintptr_t boot_info)
{
	if (boot_info)
		first_cpu(boot_info);
	else
		cpu_init(current()->cpu);
	profile_cpu();
	idle();
}

_Noreturn void panic(const char *why, uintptr_t where)
{
	print("panic: %s at %x\n", why, (uint64_t)where);
	power_off();
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The sampler of target/ in this kernel, as doc/porting.md describes it. With profile=1, the kernel waits for the
 * command `start` on the line before it begins its work; with profile=2, it does not wait. It sends everything before
 * it powers off. alloc=1 also records allocations. Settings for profile=2: see start().
 */
#include "kernel.h"
#include "target/kscope.h"

#if defined(__aarch64__)
#define ARCH "aarch64"
#define PMU (&kscope_pmu_armv8)
#elif defined(__riscv)
#define ARCH "riscv64"
#define PMU (&kscope_pmu_riscv)
#elif defined(__x86_64__)
#define ARCH "x86_64"
#define PMU (&kscope_pmu_x86)
#else
#define ARCH "arm"
#define PMU NULL
#endif

static struct kscope sampler;
static uint8_t rings[RINGS_SIZE];
static bool active, allocations;
static unsigned slow, deep;	 /* rounds of work in each tick, and below how many calls */
static unsigned fired[MAX_CPUS]; /* counted apart from the sampler, to compare */

/* ---- the port ---- */

/* Numbers of tasks: idle tasks first, from 1. */
static uint32_t task_id(const struct task *task)
{
	return (uint32_t)((const union stack *)task - stacks) + 1;
}

static struct kscope_at place(const struct interrupted *at)
{
	return (struct kscope_at){ .task = task_id(current()),
				   .user = at->user,
				   .pc = at->pc,
				   .fp = at->fp,
				   .sp = at->sp,
				   .link = at->link };
}

static uint64_t port_time(void *data)
{
	(void)data;
	return time_ns();
}

/* Most frames are in the stack of the current task, which is there. */
static bool port_read(void *data, const struct kscope_at *at, void *to, uintptr_t from, size_t size)
{
	const volatile uintptr_t *frame = (const volatile uintptr_t *)from;

	(void)data;
	if (at->user || from - (uintptr_t)current() > STACK_SIZE - size ||
	    size != 2 * sizeof(*frame) || from % sizeof(*frame))
		return read_checked(to, from, size, at->user);
	((uintptr_t *)to)[0] = frame[0];
	((uintptr_t *)to)[1] = frame[1];
	return true;
}

static void port_timer(void *data, uint64_t ns)
{
	(void)data;
	sample_timer(ns);
}

static bool port_user(void *data, const struct kscope_at *at, struct kscope_at *user)
{
	struct interrupted where;

	(void)data;
	(void)at;
	if (!user_interrupted(current(), &where))
		return false;
	*user = place(&where);
	return true;
}

static bool port_trap(void *data, const struct kscope_at *at, uintptr_t back, uintptr_t fp,
		      struct kscope_at *before)
{
	struct interrupted where;

	(void)data;
	(void)at;
	if (!trap_interrupted(back, fp, &where))
		return false;
	*before = place(&where);
	return true;
}

static bool port_task(void *data, size_t i, struct kscope_task *task)
{
	const struct task *t;

	(void)data;
	if (i >= MAX_CPUS + MAX_TASKS)
		return false;
	t = &stacks[i].task;
	*task = (struct kscope_task){ .id = task_id(t), .name = t->work ? t->work->name : "idle" };
	return true;
}

/* The kernel, and the programs of its tasks. */
static bool port_map(void *data, size_t i, struct kscope_map *map)
{
	(void)data;
	*map = (struct kscope_map){ .path = "kernel-fp.elf" };
	if (!i)
		return true;
	for (size_t j = 0; j < MAX_CPUS + MAX_TASKS; j++) {
		const struct task *t = &stacks[j].task;

		if (!t->work || !t->work->program || --i)
			continue;
		map->process = task_id(t);
		map->path = t->work->binary;
		return true;
	}
	return false;
}

static size_t port_send(void *data, const void *bytes, size_t size)
{
	(void)data;
	return line_put(bytes, size);
}

static int port_receive(void *data)
{
	(void)data;
	return line_get();
}

static struct kscope_port port = {
	.arch = ARCH,
	.name = "kscope's demo kernel",
	.time = port_time,
	.read = port_read,
	.timer = port_timer,
	.user = port_user,
	.trap = port_trap,
	.task = port_task,
	.map = port_map,
	.send = port_send,
	.receive = port_receive,
	.pmu = PMU,
};

/* ---- interrupts ---- */

void sample_timer_fired(const struct interrupted *at)
{
	unsigned cpu = current()->cpu;
	struct kscope_at where = place(at);

	if (!active) {
		check_fired(at);
		return;
	}
	fired[cpu] += kscope_is_running(&sampler);
	kscope_timer(&sampler, cpu, &where);
}

void pmu_fired(const struct interrupted *at)
{
	struct kscope_at where = place(at);

	kscope_counter(&sampler, current()->cpu, &where);
}

static volatile uint64_t sink;

/* Long enough to be sampled, with interrupts on: samples show what the tick interrupted. */
static NOINLINE void slow_tick(void)
{
	interrupts_on();
	sink = mix(1, slow);
#ifndef HANDLERS_NEST
	interrupts_off();
#endif
}

static NOINLINE void deep_tick(unsigned frames)
{
	if (frames)
		deep_tick(frames - 1);
	else
		slow_tick();
	sink++; /* no tail call */
}

void profile_tick(void)
{
	if (active)
		kscope_apply(&sampler, current()->cpu);
	if (slow && deep)
		deep_tick(deep);
	else if (slow)
		slow_tick();
}

/* ---- allocations ---- */

void profile_alloc(bool free, void *memory, size_t size, uintptr_t caller, const void *frame)
{
	struct kscope_at at = { .task = task_id(current()),
				.pc = caller,
				.fp = kscope_callers_fp(frame) };

	if (!allocations)
		return;
	interrupts_off();
	kscope_alloc(&sampler, current()->cpu, free ? KSCOPE_FREE : KSCOPE_NEW, "kmalloc",
		     (uintptr_t)memory, size, &at);
	interrupts_on();
}

/* ---- the task that sends ---- */

static void rest(void)
{
	interrupts_off();
	if (!schedule())
		idle_wait();
	interrupts_on();
}

/* Until it is the only one. */
static void serve(void)
{
	while (tasks_unfinished() > 1) {
		if (!kscope_serve(&sampler))
			rest();
	}
	kscope_command(&sampler, "stop", NULL, 0);
	while (!kscope_is_done(&sampler))
		kscope_serve(&sampler);
}

static const struct work profiler = { .name = "kscope", .unit = serve };

/* ---- begin and end ---- */

static void format_command(char *to, const char *text, unsigned value)
{
	char digits[10];
	unsigned nr = 0;

	while (*text)
		*to++ = *text++;
	do {
		digits[nr++] = (char)('0' + value % 10);
		value /= 10;
	} while (value);
	while (nr)
		*to++ = digits[--nr];
	*to = '\0';
}

/* Without a host. */
static void start(const char *options)
{
	static const char *const settings[][2] = {
		{ "period", "timer period " },
		{ "jitter", "jitter " },
		{ "depth", "prof_btdepth " },
		{ "cycles", "event cycles period " },
		{ "cycles_hz", "event cycles freq " },
		{ "instructions", "event instructions period " },
		{ "instructions_hz", "event instructions freq " },
	};
	char command[40], answer[200];

	for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
		unsigned value = option(options, settings[i][0], 0);

		if (!value)
			continue;
		format_command(command, settings[i][1], value);
		if (!kscope_command(&sampler, command, answer, sizeof(answer)))
			panic(answer, 0);
	}
	kscope_command(&sampler, "start", answer, sizeof(answer));
}

void profile_init(const char *options, unsigned cpus)
{
	unsigned how = option(options, "profile", 0);

	active = how;
	if (!active) {
		check_init(options);
		return;
	}
	port.cpus = cpus;
	port.entry = (uintptr_t)trap_back & ~(uintptr_t)1;
	port.entry_size = 2;
#ifdef __aarch64__
	kscope_pmu_armv8_qemu = true; /* nowhere else does this kernel run */
#endif
	if (!line_init())
		panic("no line for the profiler", 0);
	if (!kscope_init(&sampler, &port, rings, sizeof(rings)))
		panic("no memory for the profiler", 0);
	slow = option(options, "slow", 0);
	deep = option(options, "deep", 0);
	if (how == 2)
		start(options);
	while (!kscope_is_running(&sampler))
		kscope_serve(&sampler);
	allocations = option(options, "alloc", 0);
	task_create(&profiler, cpus - 1, 1);
}

void profile_cpu(void)
{
	if (active)
		kscope_apply(&sampler, current()->cpu);
	else
		check_cpu();
}

void profile_end(void)
{
	if (!active)
		check_end();
	for (unsigned cpu = 0; active && cpu < port.cpus; cpu++) {
		struct kscope_counts counts;

		kscope_count(&sampler, cpu, &counts);
		print("samples: %u %u taken, %u sent, %u dropped, %u by the timer\n", cpu,
		      (unsigned)counts.taken, (unsigned)counts.sent, (unsigned)counts.dropped,
		      fired[cpu]);
	}
}

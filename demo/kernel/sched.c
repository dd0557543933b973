// SPDX-License-Identifier: GPL-2.0-or-later
/* Tasks, in a ring per cpu; the timer interrupt switches to the next. */
#include "kernel.h"

union stack stacks[MAX_CPUS + MAX_TASKS] __attribute__((aligned(STACK_SIZE)));
unsigned ticks[MAX_CPUS];

/* Memory of the user programs, one large page each for code, data and stack together. */
static uint8_t user_memory[2][USER_SIZE] __attribute__((aligned(USER_SIZE)));
static unsigned tasks, users, unfinished;

void *stack_top(const struct task *task)
{
	return (uint8_t *)task + STACK_SIZE;
}

/* Whether an address is in the stack of the current task, with at least `below` bytes below it. */
bool in_stack(uintptr_t address, size_t below)
{
	uintptr_t start = (uintptr_t)current() + sizeof(struct task);

	return address >= start + below && address <= (uintptr_t)stack_top(current());
}

void idle_create(unsigned cpu)
{
	stacks[cpu].task =
		(struct task){ .next = &stacks[cpu].task, .cpu = cpu, .space = kernel_space() };
}

static uint64_t load_program(const struct work *work)
{
	uint8_t *memory = user_memory[users++];

	for (size_t i = 0; work->program + i < work->program_end; i++)
		memory[i] = work->program[i];
	return user_space(users, memory);
}

void task_create(const struct work *work, unsigned cpu, unsigned units)
{
	struct task *task = &stacks[MAX_CPUS + tasks++].task, *idle = &stacks[cpu].task;

	*task = (struct task){ .next = idle->next, .work = work, .units = units, .cpu = cpu };
	if (work->program) {
		task->space = load_program(work);
		task->sp = user_context(stack_top(task), units);
	} else {
		task->space = kernel_space();
		task->sp = kernel_context(stack_top(task));
	}
	idle->next = task;
	unfinished++;
}

unsigned tasks_unfinished(void)
{
	return __atomic_load_n(&unfinished, __ATOMIC_ACQUIRE);
}

/* The entry of a kernel task. */
void task_run(void)
{
	struct task *task = current();

	for (unsigned i = 0; i < task->units; i++)
		task->work->unit();
	task_exit();
}

/* With interrupts off: preempted between setting done and the count, it would never be counted. */
_Noreturn void task_exit(void)
{
	interrupts_off();
	current()->done = true;
	__atomic_sub_fetch(&unfinished, 1, __ATOMIC_RELEASE);
	schedule();
	__builtin_unreachable();
}

static struct task *next_task(struct task *from)
{
	struct task *to = from->next;

	while (to != from && (to->done || !to->work))
		to = to->next;
	return to->done || !to->work ? &stacks[from->cpu].task : to;
}

/* Call it with interrupts off. False: no other task can run. */
bool schedule(void)
{
	struct task *from = current(), *to = next_task(from);

	if (to == from)
		return false;
	use_space(to->space, stack_top(to));
	switch_to(&from->sp, to->sp);
	return true;
}

void tick(void)
{
	ticks[current()->cpu]++;
	profile_tick();
	schedule();
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * onestack: threads are user programs in several address spaces. The kernel has one stack. A trap
 * saves the registers of the user in its thread's control block and never returns in C: the kernel
 * ends each visit with restore_user(), and the next one begins at the top of the stack again.
 */
#include "common.h"
#include "user.h"

#define USER_THREADS 4

struct thread {
	struct frame frame; /* first: trap_entry writes here */
	uint64_t space;
	bool live;
};

/* onestack.S */
_Noreturn void restore_user(struct frame *frame);
extern const uint8_t user_red[], user_red_end[], user_green[], user_green_end[], user_blue[],
	user_blue_end[];

static struct thread threads[USER_THREADS];
static struct thread *current = &threads[0];
static unsigned syscalls, ticks;
const struct worker workers[WORKERS]; /* none */

NOINLINE static struct thread *choose_thread(void)
{
	unsigned at = (unsigned)(current - threads);

	for (unsigned i = 1; i <= USER_THREADS; i++) {
		if (threads[(at + i) % USER_THREADS].live)
			return &threads[(at + i) % USER_THREADS];
	}
	if (!syscalls || !ticks)
		fail("no system calls or no interrupts", "");
	guest_end();
}

NOINLINE static void handle_syscall(struct frame *frame)
{
	syscalls++;
	switch (user_argument(frame, 0)) {
	case USER_YIELD: break;
	case USER_END: current->live = false; break;
	default: fail("a user program", "");
	}
}

NOINLINE static void handle_timer(void)
{
	ticks++;
}

struct frame *style_trap(struct frame *frame, enum trap why)
{
	if (why == TRAP_CALL)
		handle_syscall(frame);
	else
		handle_timer();
	current = choose_thread();
	space_use(current->space);
	return &current->frame;
}

_Noreturn void kernel_trap(struct frame *frame, unsigned kind);
_Noreturn void kernel_trap(struct frame *frame, unsigned kind)
{
	restore_user(trap(frame, kind));
}

static void load(unsigned number, const uint8_t *from, const uint8_t *end, unsigned nr_threads)
{
	static unsigned next;
	uint8_t *memory;
	uint64_t space = space_make(number, &memory);

	memcpy(memory, from, (size_t)(end - from));
	for (unsigned i = 0; i < nr_threads; i++, next++) {
		threads[next] = (struct thread){ .space = space, .live = true };
		user_frame(&threads[next].frame, USER_BASE + USER_SIZE - i * 65536, i);
	}
}

void style_run(void)
{
	load(0, user_red, user_red_end, 2);
	load(1, user_green, user_green_end, 1);
	load(2, user_blue, user_blue_end, 1);
	space_use(current->space);
	restore_user(&current->frame);
}

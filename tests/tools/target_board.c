// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * target_board SAMPLES WINDOW [KB]: the sampler in a kernel that is made up, with 4 cpus and 3 tasks, the same in every
 * run. It speaks on stdin and stdout. After `start`, it takes SAMPLES samples on each cpu, sends at most WINDOW bytes
 * between two of them, and stops. KB is the size of its rings. At the end, it says on stderr what it has counted.
 */
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "target/kscope.h"

#define CPUS 4
#define PERIOD 1000000 /* ns */
#define KERNEL 0xffffffff81000000
#define USER 0x400000
#define STACK 0xffff888000000000

static struct {
	uint64_t now, timer[CPUS];
	unsigned cpu;
	size_t window; /* bytes that the link still takes */
	uint64_t nr;   /* samples of each cpu */
} board = { .now = 1000 };

static struct kscope kscope;

static uint64_t board_time(void *data)
{
	(void)data;
	return board.now;
}

static void board_timer(void *data, uint64_t ns)
{
	(void)data;
	board.timer[board.cpu] = ns;
}

static void board_kick(void *data, unsigned cpu)
{
	(void)data;
	board.cpu = cpu;
	kscope_apply(&kscope, cpu);
}

/* Three frames a stack. */
static bool board_read(void *data, const struct kscope_at *at, void *to, uintptr_t from,
		       size_t size)
{
	uintptr_t frame[2] = { from + 32 < STACK + 96 ? from + 32 : 0, at->pc + 64 + (from & 96) };

	(void)data;
	if (from < STACK || from >= STACK + 96 || size != sizeof(frame))
		return false;
	memcpy(to, frame, size);
	return true;
}

static bool board_task(void *data, size_t i, struct kscope_task *task)
{
	static const char *const names[] = { "half", "third", "rest" };

	(void)data;
	if (i >= 3)
		return false;
	*task = (struct kscope_task){ .id = (uint32_t)i + 1, .name = names[i] };
	return true;
}

static size_t board_send(void *data, const void *bytes, size_t size)
{
	ssize_t sent;

	(void)data;
	if (size > board.window)
		size = board.window;
	if (!size)
		return 0;
	sent = write(STDOUT_FILENO, bytes, size);
	if (sent <= 0)
		exit(1);
	board.window -= (size_t)sent;
	return (size_t)sent;
}

/* Waits for the host until it has started a recording. */
static int board_receive(void *data)
{
	struct pollfd in = { .fd = STDIN_FILENO, .events = POLLIN };
	bool started = board.nr || kscope_is_running(&kscope);
	unsigned char c;

	(void)data;
	if (poll(&in, 1, started ? 0 : -1) <= 0)
		return -1;
	if (read(STDIN_FILENO, &c, 1) == 1)
		return c;
	if (!started)
		exit(1);
	return -1;
}

/* Of ten samples, task 1 has five, task 2 three, and task 3 two. */
static void interrupt(unsigned cpu, uint64_t nr)
{
	unsigned turn = (nr + cpu) % 10;
	uint32_t task = turn < 5 ? 1 : turn < 8 ? 2 : 3;
	struct kscope_at at = { .task = task, .user = task == 2, .fp = STACK };

	at.pc = (at.user ? USER : KERNEL) + task * 4096 + nr % 64;
	board.cpu = cpu;
	kscope_timer(&kscope, cpu, &at);
}

static void run(uint64_t samples, size_t window)
{
	do {
		bool runs = kscope_is_running(&kscope);

		if (runs && board.nr == samples) {
			kscope_command(&kscope, "stop", NULL, 0);
		} else if (runs) {
			board.now += PERIOD;
			for (unsigned cpu = 0; cpu < CPUS; cpu++)
				interrupt(cpu, board.nr);
			board.nr++;
		}
		board.window = window;
		while (kscope_serve(&kscope) && board.window)
			;
	} while (!board.nr || !kscope_is_done(&kscope));
}

static void report(void)
{
	struct kscope_counts sum = { 0 };

	for (unsigned cpu = 0; cpu < CPUS; cpu++) {
		struct kscope_counts counts;

		kscope_count(&kscope, cpu, &counts);
		sum.taken += counts.taken;
		sum.sent += counts.sent;
		sum.dropped += counts.dropped;
	}
	fprintf(stderr, "taken %" PRIu64 " sent %" PRIu64 " dropped %" PRIu64 "\n", sum.taken,
		sum.sent, sum.dropped);
}

int main(int argc, char **argv)
{
	static const struct kscope_port port = {
		.arch = "x86_64",
		.name = "board",
		.cpus = CPUS,
		.boot = 3,
		.time = board_time,
		.timer = board_timer,
		.kick = board_kick,
		.read = board_read,
		.task = board_task,
		.send = board_send,
		.receive = board_receive,
	};
	static uint64_t memory[1 << 16];
	size_t size = argc > 3 ? strtoul(argv[3], NULL, 10) << 10 : sizeof(memory);

	if (argc < 3 || size > sizeof(memory) || !kscope_init(&kscope, &port, memory, size))
		return 2;
	run(strtoull(argv[1], NULL, 10), strtoul(argv[2], NULL, 10));
	report();
	return 0;
}

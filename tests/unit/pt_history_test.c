// SPDX-License-Identifier: GPL-2.0-or-later
/* pt/history: what was mapped where, and which thread ran. */
#include "base/mem.h"
#include "model/event.h"
#include "pt/history.h"
#include "test.h"

#define MANY 100000

static struct ipt_code a, b, c;

static size_t read_nothing(const void *data, uint64_t offset, uint8_t *bytes, size_t size)
{
	(void)data, (void)offset, (void)bytes, (void)size;
	return 0;
}

static void init_code(struct ipt_code *code, uint64_t len)
{
	ipt_code_init(code, (struct ipt_bytes){ .read = read_nothing }, len, 0);
}

static const struct ipt_code *code_at(const struct ipt_history *h, uint32_t pid, uint64_t time,
				      uint64_t address)
{
	struct ipt_world world = ipt_history_world(h);
	struct ipt_place place = { 0 };

	return world.find(world.data, pid, time, address, &place) ? place.code : NULL;
}

static void test_maps(void)
{
	struct ipt_history h = { 0 };

	ipt_history_map(&h, 1, 100, 0x1000, 0x1000, &a);
	ipt_history_map(&h, 1, 200, 0x1800, 0x1000, &b);
	ipt_history_map(&h, 1, 300, 0x1000, 0x3000, &c);
	ipt_history_map(&h, 1, 0, UINT64_MAX - 0xfff, 0x1000, &a);
	ipt_history_map(&h, 1, 0, UINT64_MAX - 0xfff, 0x1001, &b);
	ipt_history_map(&h, 1, 0, 0x9000, 0, &b);
	ipt_history_complete(&h);
	check("a map", code_at(&h, 1, 150, 0x1000) == &a && code_at(&h, 1, 150, 0x1fff) == &a);
	check("the end of a map", !code_at(&h, 1, 150, 0x4000) && !code_at(&h, 1, 150, 0xfff));
	check("a part is replaced",
	      code_at(&h, 1, 200, 0x17ff) == &a && code_at(&h, 1, 200, 0x1800) == &b);
	check("all is replaced",
	      code_at(&h, 1, 300, 0x1000) == &c && code_at(&h, 1, 300, 0x1800) == &c);
	check("before the first map, it is the first one",
	      code_at(&h, 1, 50, 0x1000) == &a && code_at(&h, 1, 50, 0x2700) == &b);
	check("the last page of all", code_at(&h, 1, 50, UINT64_MAX) == &a);
	check("no more than that", !code_at(&h, 1, 50, 0x9000));
	check("another process", !code_at(&h, 2, 150, 0x1000));
	ipt_history_release(&h);
}

static void test_processes(void)
{
	struct ipt_history h = { 0 };

	ipt_history_map(&h, 1, 100, 0x1000, 0x1000, &a);
	ipt_history_map(&h, 1, 300, 0x1000, 0x1000, &b);
	ipt_history_fork(&h, 2, 1, 200);
	ipt_history_map(&h, 2, 400, 0x1000, 0x1000, &c);
	ipt_history_fork(&h, 3, 2, 250);
	ipt_history_fork(&h, 5, 6, 1);
	ipt_history_fork(&h, 6, 5, 1);
	ipt_history_map(&h, IPT_KERNEL_PID, 0, 0xffffffff81000000, 0x1000, &b);
	ipt_history_complete(&h);
	check("a new process has the maps of its parent", code_at(&h, 2, 350, 0x1000) == &a);
	check("as they were then", code_at(&h, 1, 350, 0x1000) == &b);
	check("until it maps something else", code_at(&h, 2, 400, 0x1000) == &c);
	check("and so does its child", code_at(&h, 3, 500, 0x1000) == &a);
	check("processes that are each other's parent", !code_at(&h, 5, 500, 0x1000));
	check("the kernel is the same for all",
	      code_at(&h, 3, 1, 0xffffffff81000fff) == &b &&
		      code_at(&h, 77, 1, 0xffffffff81000000) == &b);
	ipt_history_release(&h);
}

static bool runs(const struct ipt_history *h, uint32_t queue, uint64_t time, uint32_t pid,
		 uint32_t tid, uint64_t until)
{
	struct ipt_world world = ipt_history_world(h);
	struct ipt_thread thread = world.thread(world.data, queue, time);

	return thread.pid == pid && thread.tid == tid && thread.until == until;
}

static void test_switches(void)
{
	struct ipt_history h = { 0 };
	uint32_t cpu = ipt_history_queue(&h, NO_TASK), thread = ipt_history_queue(&h, 11);
	uint32_t lone = ipt_history_queue(&h, 12), idle = ipt_history_queue(&h, NO_TASK);

	ipt_history_thread(&h, 10, 11);
	ipt_history_switch(&h, cpu, 100, 10, 10);
	ipt_history_switch(&h, cpu, 200, 10, 11);
	ipt_history_switch(&h, cpu, 200, 20, 20);
	ipt_history_map(&h, 10, 150, 0x1000, 0x1000, &a);
	ipt_history_map(&h, IPT_KERNEL_PID, 500, 0xffffffffc0000000, 0x1000, &b);
	ipt_history_complete(&h);
	check("before the first switch", runs(&h, cpu, 50, 10, 10, 100));
	check("until a map changes", runs(&h, cpu, 100, 10, 10, 150));
	check("until the next switch", runs(&h, cpu, 150, 10, 10, 200));
	check("of two at the same time, the last one", runs(&h, cpu, 200, 20, 20, 500));
	check("until the kernel loads a module", runs(&h, cpu, 499, 20, 20, 500));
	check("for ever", runs(&h, cpu, 500, 20, 20, UINT64_MAX));
	check("the trace of a thread", runs(&h, thread, 50, 10, 11, 150));
	check("of a thread without a known process", runs(&h, lone, 500, 12, 12, UINT64_MAX));
	check("of a cpu without switches", runs(&h, idle, 500, NO_TASK, NO_TASK, UINT64_MAX));
	ipt_history_release(&h);
}

/* Lookups stay fast: this is a minute of work if each looks at all maps. */
static void test_many(void)
{
	struct ipt_history h = { 0 };
	bool good = true;

	for (uint64_t i = 0; i < MANY; i++) {
		ipt_history_map(&h, 1, i, 0x10000 + 16 * (i % 100), 16, &a);
		ipt_history_fork(&h, (uint32_t)i + 2, (uint32_t)i + 1, i);
	}
	ipt_history_complete(&h);
	for (uint64_t i = 0; i < MANY; i++)
		good &= !code_at(&h, MANY + 1, i, 0x20000 + i);
	check("many maps and processes", good);
	ipt_history_release(&h);
}

int main(void)
{
	init_code(&a, 0x1000);
	init_code(&b, 0x1000);
	init_code(&c, 0x3000);
	test_maps();
	test_processes();
	test_switches();
	test_many();
	ipt_code_release(&a);
	ipt_code_release(&b);
	ipt_code_release(&c);
	return test_result();
}

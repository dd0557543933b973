// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * fuzz_pt: any bytes as the traces of a cpu and of a thread, over code with every kind of branch. The
 * branches must be the same whether other threads decode them or not, and of a piece there are never many
 * more than asked for. The kernel changes its code now and then. The last byte selects the size of pieces, whether
 * jumps inside a function count, whether part of the trace is missing, and whether the changes come from
 * the trace, too.
 */
#include <stdlib.h>
#include <string.h>

#include "fuzz/pt_code.h"
#include "model/event.h"
#include "pt/ahead.h"
#include "pt/history.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define KERNEL 0xffffffff81000000
#define USER 0x401000
#define LOW 0x8048000 /* for 32-bit code */
#define PID 100
#define QUEUES 2
/* Of one packet: 47 conditions, each after a chain of jumps that is not called endless. */
#define MAX_MORE (48 * 4100)

struct bytes {
	const uint8_t *data;
	size_t size;
};

static const struct bytes first = { pt_code, sizeof(pt_code) };
static const struct bytes next = { pt_code_next, sizeof(pt_code_next) };

static size_t read_code(const void *data, uint64_t offset, uint8_t *bytes, size_t size)
{
	const struct bytes *code = data;
	size_t left = offset < code->size ? code->size - (size_t)offset : 0;

	if (size > left)
		size = left;
	memcpy(bytes, code->data + (left ? offset : 0), size);
	return size;
}

static bool same_function(const void *data, uint64_t a, uint64_t b)
{
	(void)data;
	return a / 32 == b / 32;
}

struct machine {
	struct ipt_code first, next;
	struct ipt_history history;
	struct ipt_world world;
	struct ipt_clock_info clock;
	struct ipt_ahead ahead;
	struct bytes trace;
};

static void map(struct machine *m, uint32_t pid, uint64_t time, uint64_t start)
{
	ipt_history_map(&m->history, pid, time, start, sizeof(pt_code), &m->first);
	ipt_history_map(&m->history, pid, time, start + sizeof(pt_code), sizeof(pt_code_next),
			&m->next);
}

static void poke(struct machine *m, uint64_t time, uint64_t address, const char *old,
		 const char *new)
{
	struct ipt_poke poke = { .address = address,
				 .time = time,
				 .old_len = (uint32_t)strlen(old),
				 .new_len = (uint32_t)strlen(new) };
	uint8_t bytes[16];

	memcpy(bytes, old, poke.old_len);
	memcpy(bytes + poke.old_len, new, poke.new_len);
	if (!ipt_pokes_add(&m->history.pokes, &poke, bytes))
		abort();
}

/* In both maps of the kernel, inside of instructions, over the border of maps, and where nothing is mapped. */
static void change_kernel(struct machine *m)
{
	for (uint64_t time = 0; time < 4000; time += 500) {
		poke(m, time, KERNEL + 0x1e, "\x90\x90", "\xeb\xe0");
		poke(m, time + 250, KERNEL + 0x1e, "\xeb\xe0", "\x90\x90");
	}
	poke(m, 700, KERNEL + 0x25, "\x5d", "\xcc");
	poke(m, 900, KERNEL + 0x6e, "\xe8\xad\xff\xff\xff", "\xe8\xb2\xff\xff\xff");
	poke(m, 1100, KERNEL + 0x41, "\1\xc9\xeb", "\5\x90\x90");
	poke(m, 3500, KERNEL + 4096 + 5, "\xe8\x16", "\xeb\xfe");
	poke(m, 800, KERNEL + 8192, "", "\x90\x90\xe3\xfd\xc3");
	poke(m, 1800, KERNEL + 8192, "\x90\x90\xe3\xfd\xc3", "");
	poke(m, 2800, KERNEL + 8190, "", "\xe9\0\0\0");
}

/* Any bytes, as changes of the code that is mapped first. */
static void change_more(struct machine *m)
{
	const uint8_t *at = m->trace.data, *end = at + m->trace.size;

	for (; end - at >= 16; at += 16) {
		struct ipt_poke poke = { .address = KERNEL + at[0] % 128,
					 .time = (uint64_t)at[1] << 4,
					 .old_len = at[2] % 7,
					 .new_len = at[3] % 7 };

		if (!ipt_pokes_add(&m->history.pokes, &poke, at + 4))
			abort();
	}
}

static void open_machine(struct machine *m, bool more)
{
	ipt_code_init(&m->first, (struct ipt_bytes){ read_code, same_function, &first }, first.size,
		      0);
	ipt_code_init(&m->next, (struct ipt_bytes){ read_code, NULL, &next }, next.size, 0);
	map(m, IPT_KERNEL_PID, 0, KERNEL);
	map(m, PID, 0, USER);
	map(m, PID, 1000, LOW);
	map(m, PID, 2000, USER + 16); /* in place of a part of the other */
	map(m, IPT_KERNEL_PID, 3000, KERNEL + 4096);
	ipt_history_fork(&m->history, PID + 1, PID, 1500);
	ipt_history_thread(&m->history, PID, PID + 2);
	ipt_history_queue(&m->history, NO_TASK);
	ipt_history_queue(&m->history, PID + 2);
	for (uint32_t i = 0; i < 20; i++)
		ipt_history_switch(&m->history, 0, i * 250, PID + i % 3 / 2, PID + i % 3);
	change_kernel(m);
	if (more)
		change_more(m);
	ipt_history_complete(&m->history);
	m->world = ipt_history_world(&m->history);
	m->clock = (struct ipt_clock_info){ { 84, 2 }, 9, 21 };
}

static void close_machine(struct machine *m)
{
	ipt_history_release(&m->history);
	ipt_code_release(&m->first);
	ipt_code_release(&m->next);
}

/* A digest of branches. */
struct sum {
	uint64_t digest, nr;
};

static void add_number(struct sum *sum, uint64_t number)
{
	sum->digest = (sum->digest ^ number) * 0x9e3779b97f4a7c15;
	sum->digest ^= sum->digest >> 29;
}

static void add_branches(struct sum *sum, const struct ipt_flow *flow)
{
	if (flow->nr > IPT_ENOUGH + MAX_MORE)
		abort();
	for (size_t i = 0; i < flow->nr; i++) {
		const struct ipt_branch *b = &flow->branches[i];

		if (i && b->time < b[-1].time)
			abort();
		add_number(sum, b->from);
		add_number(sum, b->to);
		add_number(sum, b->time);
		add_number(sum, (uint64_t)b->insns << 32 | b->cycles);
		add_number(sum, (uint64_t)b->kind << 8 | b->size);
	}
	sum->nr += flow->nr;
}

/* The whole trace as one piece. */
static void run_flow(const struct bytes *trace, uint8_t choice)
{
	struct machine m = { .trace = *trace };
	struct ipt_flow flow = { .world = &m.world,
				 .all = choice & 16,
				 .clock = { .info = &m.clock } };
	struct sum sum = { 0 };
	size_t at = 0;

	open_machine(&m, choice & 64);
	ipt_flow_begin(&flow);
	while (at < trace->size) {
		size_t took = ipt_flow_run(&flow, trace->data + at, trace->size - at, at, true);

		if (!took)
			abort();
		at += took;
		add_branches(&sum, &flow);
		flow.nr = 0;
	}
	ipt_flow_end(&flow, ipt_flow_psb_ip(trace->data, trace->size), at);
	ipt_flow_release(&flow);
	close_machine(&m);
}

static bool read_trace(const void *data, uint32_t queue, uint64_t position, uint8_t *to, size_t len)
{
	const struct machine *m = data;

	(void)queue;
	if (position > m->trace.size || len > m->trace.size - position)
		return false;
	memcpy(to, m->trace.data + position, len);
	return true;
}

/* Adds the trace to both queues; maybe the second one has a hole, and one byte that cannot be read. */
static void add_trace(struct machine *m, bool hole)
{
	size_t size = m->trace.size;

	ipt_ahead_add(&m->ahead, 0, 0, size);
	ipt_ahead_add(&m->ahead, 1, 0, hole ? size / 3 : size);
	if (hole)
		ipt_ahead_add(&m->ahead, 1, size / 2, size + 1);
}

static void run_ahead(const struct bytes *trace, uint8_t choice, size_t threads,
		      struct sum sums[QUEUES])
{
	struct machine m = { .trace = *trace };
	bool more = true;

	open_machine(&m, choice & 64);
	m.ahead.world = &m.world;
	m.ahead.clock = &m.clock;
	m.ahead.read = read_trace;
	m.ahead.data = &m;
	m.ahead.piece = (uint64_t)16 << (choice & 15);
	m.ahead.all = choice & 16;
	m.ahead.active = QUEUES;
	ipt_ahead_init(&m.ahead);
	add_trace(&m, choice & 32);
	ipt_ahead_start(&m.ahead, threads);
	while (more) {
		more = false;
		for (uint32_t i = 0; i < QUEUES; i++) {
			struct ipt_piece *piece = ipt_ahead_next(&m.ahead, i);

			if (!piece)
				continue;
			more = true;
			add_branches(&sums[i], &piece->flow);
			add_number(&sums[i], piece->first_of_span);
			ipt_ahead_took(&m.ahead, i);
		}
	}
	ipt_ahead_release(&m.ahead);
	close_machine(&m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes trace = { data, size ? size - 1 : 0 };
	struct sum alone[QUEUES] = { 0 }, helped[QUEUES] = { 0 };
	uint8_t choice = size ? data[size - 1] : 0;

	run_flow(&trace, choice);
	run_ahead(&trace, choice, 0, alone);
	run_ahead(&trace, choice, 2, helped);
	if (memcmp(alone, helped, sizeof(alone)))
		abort();
	return 0;
}

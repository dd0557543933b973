// SPDX-License-Identifier: GPL-2.0-or-later
#include "pt/history.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "model/event.h"

#define MAX_PARENTS 64
#define MAX_CANDIDATES 1024 /* mappings at one address */

static struct ipt_process *process_of(struct ipt_history *h, uint32_t pid)
{
	uint32_t *place = hash_at(&h->by_pid, (struct hash_key){ pid, 0 });

	if (!*place) {
		GROW(h->processes, h->nr_processes + 1, h->cap_processes);
		h->processes[h->nr_processes++] = (struct ipt_process){ .pid = pid };
		*place = (uint32_t)h->nr_processes;
	}
	return &h->processes[*place - 1];
}

void ipt_history_map(struct ipt_history *h, uint32_t pid, uint64_t time, uint64_t start,
		     uint64_t len, struct ipt_code *code)
{
	struct ipt_process *process = process_of(h, pid);

	if (!len || start + (len - 1) < start)
		return;
	GROW(process->maps, process->nr + 1, process->cap);
	process->maps[process->nr++] = (struct ipt_mapping){
		.start = start, .last = start + (len - 1), .time = time, .code = code
	};
}

void ipt_history_fork(struct ipt_history *h, uint32_t pid, uint32_t parent, uint64_t time)
{
	struct ipt_process *process = process_of(h, pid);

	if (pid == parent)
		return;
	process->parent = parent;
	process->forked = time;
}

void ipt_history_thread(struct ipt_history *h, uint32_t pid, uint32_t tid)
{
	if (tid != NO_TASK && pid != NO_TASK)
		*hash_at(&h->pid_of, (struct hash_key){ tid, 0 }) = pid;
}

uint32_t ipt_history_queue(struct ipt_history *h, uint32_t tid)
{
	GROW(h->queues, h->nr_queues + 1, h->cap_queues);
	h->queues[h->nr_queues] = (struct ipt_queue_history){ .tid = tid };
	return (uint32_t)h->nr_queues++;
}

void ipt_history_switch(struct ipt_history *h, uint32_t queue, uint64_t time, uint32_t pid,
			uint32_t tid)
{
	struct ipt_queue_history *q = &h->queues[queue];

	GROW(q->switches, q->nr + 1, q->cap);
	q->switches[q->nr++] = (struct ipt_switch){ time, pid, tid };
}

static int by_start(const void *a, const void *b)
{
	const struct ipt_mapping *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return (x->time > y->time) - (x->time < y->time);
}

static int by_time(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* How many mappings start at an address or below. */
static size_t starts_up_to(const struct ipt_process *process, uint64_t address)
{
	size_t low = 0, high = process->nr;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (process->maps[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Whether `a` is rather what was mapped at a time: the last one before, or else the first one after. */
static bool is_nearer(const struct ipt_mapping *a, const struct ipt_mapping *b, uint64_t time)
{
	if (a->time <= time)
		return b->time > time || a->time > b->time;
	return b->time > time && a->time < b->time;
}

const struct ipt_mapping *ipt_process_find(const struct ipt_process *process, uint64_t time,
					   uint64_t address)
{
	const struct ipt_mapping *best = NULL;
	size_t at = starts_up_to(process, address);

	for (unsigned seen = 0; at-- > 0 && seen < MAX_CANDIDATES; seen++) {
		const struct ipt_mapping *map = &process->maps[at];

		if (map->reach < address)
			break;
		if (map->last >= address && (!best || is_nearer(map, best, time)))
			best = map;
	}
	return best;
}

/* Instructions on the border of two mappings: the last bytes of one, and the first ones of the other. */
struct ipt_bridge {
	struct ipt_code code;
	const struct ipt_code *from, *to;
	uint64_t start; /* its first byte in `from` */
};

static size_t read_bridge(const void *data, uint64_t offset, uint8_t *bytes, size_t size)
{
	const struct ipt_bridge *b = data;
	uint64_t tail = b->code.len;
	size_t done = 0, part;

	if (offset < tail) {
		part = tail - offset < size ? (size_t)(tail - offset) : size;
		done = b->from->bytes.read(b->from->bytes.data, b->start + offset, bytes, part);
		if (done < part || done == size)
			return done;
		offset = tail;
	}
	return done +
	       b->to->bytes.read(b->to->bytes.data, offset - tail, bytes + done, size - done);
}

static struct ipt_bridge *new_bridge(const struct ipt_mapping *from, const struct ipt_mapping *to)
{
	struct ipt_bridge *b = xcalloc(1, sizeof(*b));
	uint64_t tail = from->code->len < IPT_LONGEST_INSN ? from->code->len : IPT_LONGEST_INSN;
	uint64_t head = to->code->len < IPT_LONGEST_INSN ? to->code->len : IPT_LONGEST_INSN;

	b->from = from->code;
	b->to = to->code;
	b->start = from->code->len - tail;
	ipt_code_init(&b->code, (struct ipt_bytes){ .read = read_bridge, .data = b }, tail, head);
	return b;
}

static void build_bridges(struct ipt_process *process)
{
	for (size_t i = 0; i < process->nr; i++) {
		struct ipt_mapping *map = &process->maps[i];
		const struct ipt_mapping *next =
			map->last == UINT64_MAX
				? NULL
				: ipt_process_find(process, map->time, map->last + 1);

		if (next && next->start == map->last + 1 && map->code && next->code)
			map->bridge = new_bridge(map, next);
	}
}

static void complete_process(struct ipt_process *process)
{
	uint64_t reach = 0;

	if (!process->nr)
		return;
	qsort(process->maps, process->nr, sizeof(*process->maps), by_start);
	process->changes = xcalloc(process->nr, sizeof(*process->changes));
	for (size_t i = 0; i < process->nr; i++) {
		if (process->maps[i].last > reach)
			reach = process->maps[i].last;
		process->maps[i].reach = reach;
		process->changes[i] = process->maps[i].time;
	}
	qsort(process->changes, process->nr, sizeof(*process->changes), by_time);
	build_bridges(process);
}

/* Holes have addresses, so maps of changing kernel code cannot share it. */
static void add_holes(struct ipt_process *kernel, const struct ipt_holes *holes)
{
	for (size_t i = 0; i < kernel->nr; i++) {
		struct ipt_mapping *map = &kernel->maps[i];
		const struct ipt_hole *hole = ipt_hole_from(holes, map->start);

		if (!hole || hole->start > map->last || !map->code)
			continue;
		map->own = xcalloc(1, sizeof(*map->own));
		ipt_code_init(map->own, map->code->bytes, map->code->len, map->code->beyond);
		map->own->holes = holes;
		map->own->address = map->start;
		map->code = map->own;
	}
}

static struct ipt_process *find_process(const struct ipt_history *h, uint32_t pid)
{
	uint32_t at = hash_get(&h->by_pid, (struct hash_key){ pid, 0 });

	return at ? &h->processes[at - 1] : NULL;
}

void ipt_history_complete(struct ipt_history *h)
{
	struct ipt_process *kernel = find_process(h, IPT_KERNEL_PID);

	for (size_t i = 0; i < h->nr_processes; i++)
		complete_process(&h->processes[i]);
	ipt_pokes_complete(&h->pokes, kernel);
	if (kernel)
		add_holes(kernel, &h->pokes.holes);
}

static void release_process(struct ipt_process *process)
{
	for (size_t i = 0; i < process->nr; i++) {
		if (process->maps[i].bridge)
			ipt_code_release(&process->maps[i].bridge->code);
		free(process->maps[i].bridge);
		if (process->maps[i].own)
			ipt_code_release(process->maps[i].own);
		free(process->maps[i].own);
	}
	free(process->maps);
	free(process->changes);
}

void ipt_history_release(struct ipt_history *h)
{
	for (size_t i = 0; i < h->nr_processes; i++)
		release_process(&h->processes[i]);
	for (size_t i = 0; i < h->nr_queues; i++)
		free(h->queues[i].switches);
	free(h->processes);
	free(h->queues);
	hash_release(&h->by_pid);
	hash_release(&h->pid_of);
	ipt_pokes_release(&h->pokes);
	memset(h, 0, sizeof(*h));
}

/* Lookups */

/* A process has the mappings that its parent had when it began, until it maps something else there. */
static const struct ipt_mapping *find_inherited(const struct ipt_history *h, uint32_t pid,
						uint64_t time, uint64_t address)
{
	const struct ipt_mapping *later = NULL;

	for (unsigned i = 0; i < MAX_PARENTS; i++) {
		const struct ipt_process *process = find_process(h, pid);
		const struct ipt_mapping *map =
			process ? ipt_process_find(process, time, address) : NULL;

		if (map && map->time <= time)
			return map;
		if (!later)
			later = map;
		if (!process || !process->parent)
			break;
		pid = process->parent;
		time = process->forked;
	}
	return later;
}

static bool history_find(const void *data, uint32_t pid, uint64_t time, uint64_t address,
			 struct ipt_place *place)
{
	const struct ipt_history *h = data;
	const struct ipt_mapping *map = NULL;

	if (ipt_pokes_find(&h->pokes, time, address, place))
		return true;
	if (address >> 63)
		map = find_inherited(h, IPT_KERNEL_PID, time, address);
	if (!map)
		map = find_inherited(h, pid, time, address);
	if (!map)
		return false;
	*place = (struct ipt_place){ .code = map->code, .base = map->start };
	if (map->bridge) {
		place->bridge = &map->bridge->code;
		place->bridge_base = map->last + 1 - map->bridge->code.len;
	}
	return true;
}

/* The first of the times after `time`. */
static uint64_t next_change(const struct ipt_process *process, uint64_t time)
{
	size_t low = 0, high = process ? process->nr : 0;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (process->changes[middle] <= time)
			low = middle + 1;
		else
			high = middle;
	}
	return process && low < process->nr ? process->changes[low] : UINT64_MAX;
}

/* How many switches of a queue are not after a time. */
static size_t switches_up_to(const struct ipt_queue_history *q, uint64_t time)
{
	size_t low = 0, high = q->nr;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (q->switches[middle].time <= time)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static struct ipt_thread history_thread(const void *data, uint32_t queue, uint64_t time)
{
	const struct ipt_history *h = data;
	const struct ipt_queue_history *q = &h->queues[queue];
	struct ipt_thread thread = { NO_TASK, q->tid, UINT64_MAX };
	uint64_t change;

	if (q->tid != NO_TASK) {
		uint32_t pid = hash_get(&h->pid_of, (struct hash_key){ q->tid, 0 });

		thread.pid = pid ? pid : q->tid;
	} else {
		size_t at = switches_up_to(q, time);

		if (at < q->nr)
			thread.until = q->switches[at].time;
		if (at || q->nr) {
			thread.pid = q->switches[at ? at - 1 : 0].pid;
			thread.tid = q->switches[at ? at - 1 : 0].tid;
		}
	}
	change = next_change(find_process(h, thread.pid), time);
	if (change < thread.until)
		thread.until = change;
	change = next_change(find_process(h, IPT_KERNEL_PID), time);
	if (change < thread.until)
		thread.until = change;
	change = ipt_pokes_next(&h->pokes, time);
	if (change < thread.until)
		thread.until = change;
	return thread;
}

struct ipt_world ipt_history_world(const struct ipt_history *h)
{
	return (struct ipt_world){ history_thread, history_find, h };
}

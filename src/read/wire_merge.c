// SPDX-License-Identifier: GPL-2.0-or-later
#include "read/wire_merge.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* ns: in older recordings, a trace may be this much older than a round. */
#define LATE 100000000

void wire_merge_release(struct wire_merge *merge)
{
	wire_ahead_release(&merge->ahead);
	free(merge->cpus);
	memset(merge, 0, sizeof(*merge));
}

void wire_merge_add(struct wire_merge *merge, uint32_t cpu, const uint8_t *data, size_t len,
		    uint64_t time, bool hole, uint64_t offset)
{
	wire_ahead_add(&merge->ahead, cpu, data, len, time, hole, offset);
	if (cpu >= merge->nr) {
		merge->cpus = xrealloc(merge->cpus, cpu + 1, sizeof(*merge->cpus));
		memset(merge->cpus + merge->nr, 0, (cpu + 1 - merge->nr) * sizeof(*merge->cpus));
		merge->nr = cpu + 1;
	}
	merge->current = NULL; /* the new trace may be the oldest */
}

void wire_merge_until(struct wire_merge *merge, uint64_t time)
{
	uint64_t until = time == UINT64_MAX || time < LATE ? time : time - LATE;

	if (until > merge->until)
		merge->until = until;
	merge->current = NULL;
}

static struct event *event_of(const struct wire_merge_cpu *cpu)
{
	return &cpu->batch->events[cpu->next];
}

static void drop_batch(struct wire_merge *merge, struct wire_merge_cpu *cpu)
{
	wire_ahead_drop(&merge->ahead, merge->ahead.cpus[cpu - merge->cpus]);
	cpu->batch = NULL;
}

/* 1: the cpu has an event; 0: it has no more trace; -1: damage. */
static int find_event(struct wire_merge *merge, struct wire_merge_cpu *cpu)
{
	struct wire_ahead_cpu *ahead = merge->ahead.cpus[cpu - merge->cpus];

	while (ahead) {
		if (!cpu->batch) {
			cpu->batch = wire_ahead_first(&merge->ahead, ahead);
			cpu->next = 0;
		}
		if (!cpu->batch)
			return 0;
		if (cpu->next < cpu->batch->nr)
			return 1;
		if (cpu->batch->wrong)
			return -1;
		drop_batch(merge, cpu);
	}
	return 0;
}

static int take_damage(struct wire_merge *merge, struct wire_merge_cpu *cpu)
{
	merge->wrong = cpu->batch->wrong;
	merge->wrong_offset = cpu->batch->wrong_offset;
	merge->wrong_bytes = cpu->batch->wrong_bytes;
	drop_batch(merge, cpu);
	return -1;
}

/* Finds the cpu with the oldest event, and the time of the next oldest. Returns a damaged cpu, or NULL. */
static struct wire_merge_cpu *choose(struct wire_merge *merge)
{
	merge->current = NULL;
	merge->limit = merge->until;
	for (size_t i = 0; i < merge->nr; i++) {
		struct wire_merge_cpu *cpu = &merge->cpus[i];
		int ret = find_event(merge, cpu);
		uint64_t time;

		if (ret < 0) {
			merge->current = NULL;
			return cpu;
		}
		if (!ret)
			continue;
		time = event_of(cpu)->time;
		if (!merge->current || time < event_of(merge->current)->time) {
			if (merge->current && event_of(merge->current)->time < merge->limit)
				merge->limit = event_of(merge->current)->time;
			merge->current = cpu;
		} else if (time < merge->limit) {
			merge->limit = time;
		}
	}
	return NULL;
}

static void note_late(struct wire_merge *merge, uint64_t time)
{
	if (time >= merge->last || merge->late)
		return;
	merge->late = merge->last - time;
	merge->late_offset = merge->current->batch->offset;
}

/* Makes the cpu with the oldest event the current one. 1: it has one; 0: needs input; -1: damage. */
static int find_oldest(struct wire_merge *merge)
{
	struct wire_merge_cpu *damaged = choose(merge);

	if (damaged)
		return take_damage(merge, damaged);
	if (!merge->current || event_of(merge->current)->time > merge->until)
		return 0;
	note_late(merge, event_of(merge->current)->time);
	return 1;
}

int wire_merge_next(struct wire_merge *merge, struct event *ev)
{
	struct wire_merge_cpu *cpu = merge->current;
	int ret = cpu ? find_event(merge, cpu) : 0;

	if (ret < 0)
		return take_damage(merge, cpu);
	if (!ret || event_of(cpu)->time > merge->limit) {
		ret = find_oldest(merge);
		if (ret <= 0)
			return ret;
		cpu = merge->current;
	}
	*ev = *event_of(cpu);
	if (ev->kind == EVENT_CHECK) {
		merge->place = cpu->batch->place;
		merge->place_offset = cpu->batch->place_offset;
	}
	wire_merge_take(merge, 1);
	return 1;
}

size_t wire_merge_peek(struct wire_merge *merge, size_t max, struct event **events)
{
	struct wire_merge_cpu *cpu = merge->current;
	const struct event *ev;
	size_t nr = 0, left;

	if (!cpu || find_event(merge, cpu) <= 0)
		return 0;
	*events = event_of(cpu);
	ev = *events;
	left = cpu->batch->nr - cpu->next;
	while (nr < max && nr < left && ev[nr].kind == EVENT_BRANCH && ev[nr].time <= merge->limit)
		nr++;
	return nr;
}

void wire_merge_take(struct wire_merge *merge, size_t nr)
{
	if (!nr)
		return;
	merge->last = event_of(merge->current)[nr - 1].time;
	merge->current->next += nr;
}

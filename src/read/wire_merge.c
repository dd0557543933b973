// SPDX-License-Identifier: GPL-2.0-or-later
#include "read/wire_merge.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* ns: in earlier recordings, a trace may be older than a round by the time its cpu had to wait. */
#define LATE 100000000

static void release_cpu(struct wire_merge_cpu *cpu)
{
	if (!cpu)
		return;
	for (size_t i = cpu->next; i < cpu->nr; i++)
		free(cpu->pieces[i].data);
	free(cpu->piece.data);
	free(cpu->pieces);
	wire_trace_release(&cpu->trace);
	free(cpu);
}

void wire_merge_release(struct wire_merge *merge)
{
	for (size_t i = 0; i < merge->nr; i++)
		release_cpu(merge->cpus[i]);
	free(merge->cpus);
	memset(merge, 0, sizeof(*merge));
}

static struct wire_merge_cpu *cpu_of(struct wire_merge *merge, uint32_t number)
{
	if (number >= merge->nr) {
		merge->cpus = xrealloc(merge->cpus, number + 1, sizeof(*merge->cpus));
		memset(merge->cpus + merge->nr, 0, (number + 1 - merge->nr) * sizeof(*merge->cpus));
		merge->nr = number + 1;
	}
	if (!merge->cpus[number]) {
		merge->cpus[number] = xcalloc(1, sizeof(**merge->cpus));
		wire_trace_init(&merge->cpus[number]->trace, number, merge->info);
	}
	return merge->cpus[number];
}

void wire_merge_add(struct wire_merge *merge, uint32_t cpu, const uint8_t *data, size_t len,
		    uint64_t time, bool hole, uint64_t offset)
{
	struct wire_merge_cpu *at = cpu_of(merge, cpu);
	struct wire_piece piece = { xmalloc(len), len, time, offset, hole };

	memcpy(piece.data, data, len);
	GROW(at->pieces, at->nr + 1, at->cap);
	at->pieces[at->nr++] = piece;
	merge->current = NULL; /* the new trace may be the oldest */
}

void wire_merge_until(struct wire_merge *merge, uint64_t time)
{
	uint64_t until = time == UINT64_MAX || time < LATE ? time : time - LATE;

	if (until > merge->until)
		merge->until = until;
	merge->current = NULL;
}

static bool next_piece(struct wire_merge_cpu *cpu)
{
	free(cpu->piece.data);
	cpu->piece.data = NULL;
	if (cpu->next == cpu->nr) {
		cpu->nr = cpu->next = 0;
		return false;
	}
	cpu->piece = cpu->pieces[cpu->next++];
	if (cpu->piece.hole)
		wire_trace_hole(&cpu->trace);
	wire_trace_feed(&cpu->trace, cpu->piece.data, cpu->piece.len, cpu->piece.time);
	return true;
}

/* 1: *ev is filled; 0: the cpu has no more trace; -1: damage. */
static int decode(struct wire_merge *merge, struct wire_merge_cpu *cpu, struct event *ev)
{
	int ret;

	do
		ret = wire_trace_next(&cpu->trace, ev);
	while (!ret && next_piece(cpu));
	if (ret < 0) {
		merge->wrong = cpu->trace.wrong;
		merge->wrong_bytes = wire_trace_left(&cpu->trace);
		merge->wrong_offset = cpu->piece.offset + cpu->piece.len - merge->wrong_bytes;
		wire_trace_feed(&cpu->trace, cpu->piece.data, 0, NO_TIME);
	}
	return ret;
}

/* Finds the cpu with the oldest event, and the time of the next oldest. False: damage. */
static bool choose(struct wire_merge *merge)
{
	int ret;

	merge->current = NULL;
	merge->limit = merge->until;
	for (size_t i = 0; i < merge->nr; i++) {
		struct wire_merge_cpu *cpu = merge->cpus[i];

		if (!cpu)
			continue;
		ret = cpu->has_event ? 1 : decode(merge, cpu, &cpu->event);
		cpu->has_event = ret > 0;
		if (ret < 0) {
			merge->current = NULL;
			return false;
		}
		if (!ret)
			continue;
		if (!merge->current || cpu->event.time < merge->current->event.time) {
			if (merge->current && merge->current->event.time < merge->limit)
				merge->limit = merge->current->event.time;
			merge->current = cpu;
		} else if (cpu->event.time < merge->limit) {
			merge->limit = cpu->event.time;
		}
	}
	return true;
}

static int take_oldest(struct wire_merge *merge, struct event *ev)
{
	if (!choose(merge))
		return -1;
	if (!merge->current || merge->current->event.time > merge->until)
		return 0;
	*ev = merge->current->event;
	merge->current->has_event = false;
	if (ev->time < merge->last && !merge->late) {
		merge->late = merge->last - ev->time;
		merge->late_offset = merge->current->piece.offset;
	}
	return 1;
}

int wire_merge_next(struct wire_merge *merge, struct event *ev)
{
	struct wire_merge_cpu *cpu = merge->current;
	int ret = cpu && !cpu->has_event ? decode(merge, cpu, ev) : 0;

	if (ret < 0)
		return -1;
	if (!ret || ev->time > merge->limit) {
		if (ret) {
			cpu->event = *ev;
			cpu->has_event = true;
		}
		ret = take_oldest(merge, ev);
		cpu = merge->current;
	}
	if (ret > 0)
		merge->last = ev->time;
	if (ret > 0 && ev->kind == EVENT_CHECK) {
		merge->place = cpu->trace.place;
		merge->place_offset =
			cpu->piece.offset + cpu->piece.len - wire_trace_left(&cpu->trace);
	}
	return ret;
}

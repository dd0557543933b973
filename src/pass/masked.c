// SPDX-License-Identifier: GPL-2.0-or-later
#include "pass/masked.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "pass/track.h"

void masked_release(struct masked *masked)
{
	free(masked->all);
	free(masked->cut);
	histogram_release(&masked->times);
	memset(masked, 0, sizeof(*masked));
}

static bool *cut_of(struct masked *masked, uint32_t number)
{
	uint32_t cpu = track_cpu_number(number);

	if (cpu >= masked->nr_cpus) {
		masked->cut = xrealloc(masked->cut, cpu + 1, sizeof(*masked->cut));
		memset(masked->cut + masked->nr_cpus, 0, cpu + 1 - masked->nr_cpus);
		masked->nr_cpus = cpu + 1;
	}
	return &masked->cut[cpu];
}

static uint64_t key_of(const struct masked *masked, const struct masked_stretch *stretch)
{
	return masked->instructions ? stretch->instructions : stretch->time;
}

/* The longest first; equal ones in the order of their begins. */
static int compare(const void *va, const void *vb, void *arg)
{
	const struct masked_stretch *a = va, *b = vb;
	uint64_t x = key_of(arg, a), y = key_of(arg, b);

	if (x != y)
		return x > y ? -1 : 1;
	if (a->begin != b->begin)
		return a->begin < b->begin ? -1 : 1;
	return a->cpu < b->cpu ? -1 : a->cpu > b->cpu;
}

void masked_sort(struct masked *masked)
{
	if (masked->nr)
		qsort_r(masked->all, masked->nr, sizeof(*masked->all), compare, masked);
	if (masked->limit && masked->nr > masked->limit)
		masked->nr = masked->limit;
}

void masked_add(struct masked *masked, const struct event *ev)
{
	const struct event_slice *slice = &ev->slice;
	struct masked_stretch stretch = { .begin = slice->since,
					  .time = ev->time - slice->since,
					  .instructions = slice->instructions,
					  .cpu = ev->cpu,
					  .pid = ev->pid,
					  .tid = ev->tid,
					  .from = slice->frame,
					  .to = slice->end_frame,
					  .stack = slice->stack,
					  .goes_on = slice->cut };

	if (slice->kind != SLICE_MASKED || ev->outside)
		return;
	if (!slice->leave) {
		*cut_of(masked, ev->cpu) = slice->cut;
		return;
	}
	stretch.began_before = *cut_of(masked, ev->cpu);
	masked->count++;
	masked->time += stretch.time;
	histogram_add(&masked->times, stretch.time);
	GROW(masked->all, masked->nr + 1, masked->cap);
	masked->all[masked->nr++] = stretch;
	if (masked->limit && masked->nr >= 2 * masked->limit)
		masked_sort(masked);
}

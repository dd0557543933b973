// SPDX-License-Identifier: GPL-2.0-or-later
#include "pt/dark.h"

#include <stdlib.h>

#include "base/mem.h"
#include "model/event.h"

static struct hash_key key_of(uint32_t pid, uint32_t tid)
{
	return (struct hash_key){ tid, tid ? 0 : pid };
}

static int by_thread(const void *a, const void *b)
{
	const struct ipt_dark_run *x = a, *y = b;

	if (x->thread != y->thread)
		return x->thread < y->thread ? -1 : 1;
	return (x->time > y->time) - (x->time < y->time);
}

static void add_runs(struct ipt_dark *dark, const struct ipt_queue_history *q, uint32_t queue)
{
	for (size_t i = 0; i < q->nr; i++) {
		const struct ipt_switch *s = &q->switches[i];
		uint32_t *place = hash_at(&dark->by_thread, key_of(s->pid, s->tid));

		if (!*place)
			*place = (uint32_t)++dark->nr_threads;
		dark->runs[dark->nr_runs++] = (struct ipt_dark_run){ *place - 1, queue, s->time };
	}
}

void ipt_dark_start(struct ipt_dark *dark, const struct ipt_history *h, bool at_first)
{
	size_t nr = 0;

	dark->nr_queues = h->nr_queues;
	dark->queues = xcalloc(h->nr_queues + 1, sizeof(*dark->queues));
	for (size_t i = 0; i < h->nr_queues; i++)
		nr += h->queues[i].nr;
	dark->runs = xcalloc(nr + 1, sizeof(*dark->runs));
	for (uint32_t i = 0; i < h->nr_queues; i++) {
		add_runs(dark, &h->queues[i], i);
		if (at_first)
			ipt_dark_begin(dark, i, 0);
	}
	qsort(dark->runs, nr, sizeof(*dark->runs), by_thread);
	dark->at = xcalloc(dark->nr_threads + 1, sizeof(*dark->at));
	for (size_t i = nr; i-- > 0;)
		dark->at[dark->runs[i].thread] = i;
}

void ipt_dark_release(struct ipt_dark *dark)
{
	for (size_t i = 0; i < dark->nr_queues; i++)
		free(dark->queues[i].times);
	free(dark->queues);
	free(dark->runs);
	free(dark->at);
	hash_release(&dark->by_thread);
}

void ipt_dark_begin(struct ipt_dark *dark, uint32_t queue, uint64_t time)
{
	struct ipt_dark_queue *q = &dark->queues[queue];

	if (q->is_dark)
		return;
	GROW(q->times, q->nr + 1, q->cap);
	q->times[q->nr++] = (struct ipt_dark_time){ time, UINT64_MAX };
	q->is_dark = dark->any = true;
}

void ipt_dark_end(struct ipt_dark *dark, uint32_t queue, uint64_t time)
{
	struct ipt_dark_queue *q = &dark->queues[queue];

	if (q->is_dark)
		q->times[q->nr - 1].until = time;
	q->is_dark = false;
}

static bool is_dark(const struct ipt_dark_queue *q, uint64_t time)
{
	size_t low = 0, high = q->nr;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (q->times[middle].after < time)
			low = middle + 1;
		else
			high = middle;
	}
	return low && time <= q->times[low - 1].until;
}

bool ipt_dark_ran(struct ipt_dark *dark, uint32_t pid, uint32_t tid, uint64_t until)
{
	uint32_t thread = dark->any ? hash_get(&dark->by_thread, key_of(pid, tid)) : 0;
	bool ran = false;
	size_t at;

	/* Idle threads stay on their cpus, and all have the same tid. */
	if (!tid || tid == NO_TASK || !thread--)
		return false;
	for (at = dark->at[thread];
	     at < dark->nr_runs && dark->runs[at].thread == thread && dark->runs[at].time <= until;
	     at++)
		ran |= is_dark(&dark->queues[dark->runs[at].queue], dark->runs[at].time);
	dark->at[thread] = at;
	return ran;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * calltime: turns function entries and exits into samples: the time between two of them was spent
 * in the stack between them. For writers of samples; a writer that takes calls gets those instead.
 *
 * Entries and exits need not match: recordings begin and end in the middle, and omit calls that are
 * too deep. An exit also ends all functions that its function called; an exit from a function that
 * was never entered is ignored.
 */

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "pass/merge.h"
#include "pass/select.h"
#include "stage.h"

#define MAX_DEPTH 4096 /* limits stacks of entries without exits */

struct calltime_task {
	uint64_t *ips; /* from the root */
	size_t nr, cap;
	uint64_t context, since;
};

struct calltime {
	struct calltime_task *tasks; /* one for each cpu and thread */
	size_t nr, cap;
	struct hash task_by_id;
	uint64_t *chain; /* of the current sample, leaf first */
	size_t cap_chain;
	uint32_t source;
};

static int calltime_open(struct stage *s)
{
	static const struct event_source source = {
		.id = 1,
		.name = "call-time",
		.type = SOURCE_SOFTWARE,
		.unit = "ns",
	};
	struct calltime *ct = s->priv;

	return stage_source(s, &source, &ct->source);
}

static void calltime_close(struct stage *s)
{
	struct calltime *ct = s->priv;

	for (size_t i = 0; i < ct->nr; i++)
		free(ct->tasks[i].ips);
	free(ct->tasks);
	free(ct->chain);
	hash_release(&ct->task_by_id);
}

static struct calltime_task *task_of(struct calltime *ct, const struct event *call)
{
	struct hash_key key = { (uint64_t)call->pid << 32 | call->tid,
				(uint64_t)call->input << 32 | call->cpu };
	uint32_t *handle = hash_at(&ct->task_by_id, key);

	if (!*handle) {
		GROW(ct->tasks, ct->nr + 1, ct->cap);
		ct->tasks[ct->nr++] = (struct calltime_task){ 0 };
		*handle = (uint32_t)ct->nr;
	}
	return &ct->tasks[*handle - 1];
}

static void apply(struct calltime_task *task, const struct event_call *call)
{
	if (!call->leave) {
		if (task->nr == MAX_DEPTH)
			return;
		GROW(task->ips, task->nr + 1, task->cap);
		task->ips[task->nr++] = call->function;
		return;
	}
	for (size_t i = task->nr; i-- > 0;) {
		if (task->ips[i] == call->function) {
			task->nr = i;
			return;
		}
	}
}

/* Emits the time since a task's last entry or exit as a sample of its stack. */
static int emit_span(struct stage *s, const struct calltime_task *task, const struct event *call)
{
	struct calltime *ct = s->priv;
	uint64_t from = task->since, until = call->time;
	struct event ev = *call;

	if (!select_clip(s->chain->selection, &from, &until))
		return 0;
	GROW(ct->chain, task->nr, ct->cap_chain);
	/* Callers are looked up at address - 1, as return addresses. These are not: add 1. */
	for (size_t i = 0; i < task->nr; i++)
		ct->chain[i] = task->ips[task->nr - 1 - i] + (i > 0);
	ev.kind = EVENT_SAMPLE;
	ev.input = (uint32_t)s->chain->merge->nr;
	ev.time = from;
	ev.outside = 0;
	ev.sample = (struct event_sample){
		.ips = ct->chain,
		.nr = (uint32_t)task->nr,
		.source = ct->source,
		.weight = until - from,
		.context = task->context,
	};
	return stage_emit(s, &ev);
}

static int calltime_push(struct stage *s, struct event *ev)
{
	struct calltime_task *task = task_of(s->priv, ev);
	/* Time may go back where the recording changes to another clock. */
	bool spent = task->nr && ev->time != NO_TIME && ev->time >= task->since;

	if (spent && emit_span(s, task, ev) < 0)
		return -1;
	apply(task, &ev->call);
	task->context = ev->call.context;
	if (ev->time != NO_TIME)
		task->since = ev->time;
	return 0;
}

const struct stage_ops stage_calltime = {
	.name = "calltime",
	.takes = EVENT_BIT(EVENT_CALL),
	.makes = EVENT_BIT(EVENT_SOURCE) | EVENT_BIT(EVENT_SAMPLE),
	.priv_size = sizeof(struct calltime),
	.open = calltime_open,
	.push = calltime_push,
	.close = calltime_close,
};

// SPDX-License-Identifier: GPL-2.0-or-later
#include "pass/calltime.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define MAX_DEPTH 4096 /* entries without exits must not grow for ever */

void calltime_release(struct calltime *ct)
{
	for (size_t i = 0; i < ct->nr; i++)
		free(ct->tasks[i].ips);
	free(ct->tasks);
	free(ct->chain);
	hash_release(&ct->task_by_id);
	memset(ct, 0, sizeof(*ct));
}

void calltime_source(struct calltime *ct, struct event *ev)
{
	ct->told = true;
	*ev = (struct event){
		.kind = EVENT_SOURCE, .time = NO_TIME, .cpu = NO_CPU, .pid = NO_TASK, .tid = NO_TASK
	};
	ev->source = (struct event_source){
		.id = CALLTIME_SOURCE,
		.name = "call-time",
		.type = SOURCE_SOFTWARE,
		.unit = "ns",
	};
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

static void fill(struct calltime *ct, const struct calltime_task *task, const struct event *call,
		 struct event *sample)
{
	GROW(ct->chain, task->nr, ct->cap_chain);
	/* Callers are looked up one byte before, as return addresses; these are none. */
	for (size_t i = 0; i < task->nr; i++)
		ct->chain[i] = task->ips[task->nr - 1 - i] + (i > 0);
	*sample = *call;
	sample->kind = EVENT_SAMPLE;
	sample->time = task->since;
	sample->sample = (struct event_sample){
		.ips = ct->chain,
		.nr = (uint32_t)task->nr,
		.source = CALLTIME_SOURCE,
		.weight = call->time - task->since,
		.context = task->context,
	};
}

bool calltime_next(struct calltime *ct, const struct event *call, struct event *sample)
{
	struct calltime_task *task = task_of(ct, call);
	/* Where a clock was replaced by another, time may step back. */
	bool spent = task->nr && call->time != NO_TIME && call->time >= task->since;

	if (spent)
		fill(ct, task, call, sample);
	apply(task, &call->call);
	task->context = call->call.context;
	if (call->time != NO_TIME)
		task->since = call->time;
	return spent;
}

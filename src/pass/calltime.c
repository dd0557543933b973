// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * calltime: turns function entries and exits into samples, where the time between two of them was spent
 * in the stack between them, and into slices. A writer that takes calls gets those instead.
 *
 * Entries and exits need not match: recordings begin and end in the middle, and omit calls that are
 * too deep. An exit also ends all functions that its function called. An exit from a function that
 * was never entered is ignored, except that it is a slice if nothing else is known to run: it was entered
 * before the recording.
 */

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "model/world.h"
#include "pass/merge.h"
#include "pass/select.h"
#include "pass/slices_stage.h"

#define MAX_KEPT 65536 /* limits stacks of entries without exits */
#define MAX_DEPTH 4096 /* of the stacks that are shown */

struct calltime_task {
	uint64_t *ips; /* from the root */
	size_t nr, cap;
	uint64_t context, since;
	struct slices_task *slices; /* NULL: none yet */
};

struct calltime {
	struct calltime_task *tasks; /* one for each thread; if it is not known: for each cpu */
	size_t nr, cap;
	struct hash task_by_id;
	uint64_t *chain; /* of the current sample, leaf first */
	size_t cap_chain;
	uint32_t source;
	struct slices slices;
	bool sums, times; /* what the writers take: samples, slices */
};

/* Names a task after its first function, if the data has no name. */
static int announce_task(void *data, const struct event *ev, uint32_t frame)
{
	struct stage *s = data;

	if (world_comm(s->chain->world, ev->pid, ev->tid))
		return 0;
	return slices_name_task(s, ev, slices_function(s->chain->world, frame));
}

static int calltime_open(struct stage *s)
{
	static const struct event_source source = {
		.id = 1,
		.name = "call-time",
		.type = SOURCE_SOFTWARE,
		.unit = "ns",
	};
	struct calltime *ct = s->priv;

	ct->sums = s->wanted & EVENT_BIT(EVENT_SAMPLE);
	ct->times = slices_wanted(s);
	if (ct->times && slices_init(&ct->slices, s, announce_task, false) < 0)
		return -1;
	return ct->sums ? stage_source(s, &source, &ct->source) : 0;
}

static void calltime_close(struct stage *s)
{
	struct calltime *ct = s->priv;

	for (size_t i = 0; i < ct->nr; i++)
		free(ct->tasks[i].ips);
	free(ct->tasks);
	free(ct->chain);
	hash_release(&ct->task_by_id);
	slices_release(&ct->slices);
}

static struct calltime_task *task_of(struct calltime *ct, const struct event *call)
{
	/* A known thread may continue on another cpu. */
	uint32_t cpu = call->pid == NO_TASK ? call->cpu : NO_CPU;
	struct hash_key key = { (uint64_t)call->pid << 32 | call->tid,
				(uint64_t)call->input << 32 | cpu };
	uint32_t *handle = hash_at(&ct->task_by_id, key);

	if (!*handle) {
		GROW(ct->tasks, ct->nr + 1, ct->cap);
		ct->tasks[ct->nr++] = (struct calltime_task){ 0 };
		*handle = (uint32_t)ct->nr;
	}
	return &ct->tasks[*handle - 1];
}

/* Where a function that is left is on the stack; SIZE_MAX: nowhere. */
static size_t find_entry(const struct calltime_task *task, uint64_t function)
{
	size_t i = task->nr;

	while (i > 0 && task->ips[i - 1] != function)
		i--;
	return i - 1;
}

static void apply(struct calltime_task *task, const struct event_call *call)
{
	size_t at;

	if (!call->leave) {
		if (task->nr == MAX_KEPT)
			return;
		GROW(task->ips, task->nr + 1, task->cap);
		task->ips[task->nr++] = call->function;
		return;
	}
	at = find_entry(task, call->function);
	if (at != SIZE_MAX)
		task->nr = at;
}

static size_t depth_of(const struct calltime_task *task)
{
	return task->nr < MAX_DEPTH ? task->nr : MAX_DEPTH;
}

/* Emits the time since a task's last entry or exit as a sample of its stack. */
static int emit_span(struct stage *s, const struct calltime_task *task, const struct event *call)
{
	struct calltime *ct = s->priv;
	uint64_t from = task->since, until = call->time;
	size_t nr = depth_of(task);
	struct event ev = *call;

	if (!select_clip(s->chain->selection, &from, &until))
		return 0;
	GROW(ct->chain, nr, ct->cap_chain);
	/* Callers are looked up at address - 1, as return addresses. These are not: add 1. */
	for (size_t i = 0; i < nr; i++)
		ct->chain[i] = task->ips[nr - 1 - i] + (i > 0);
	ev.kind = EVENT_SAMPLE;
	ev.input = (uint32_t)s->chain->merge->nr;
	ev.time = from;
	ev.outside = 0;
	ev.sample = (struct event_sample){
		.ips = ct->chain,
		.nr = (uint32_t)nr,
		.source = ct->source,
		.weight = until - from,
		.context = task->context,
	};
	return stage_emit(s, &ev);
}

static struct slices_task *slices_of(struct calltime *ct, struct calltime_task *task,
				     const struct event *call)
{
	bool known = call->pid != NO_TASK;

	if (!task->slices)
		task->slices = slices_task(&ct->slices, known ? call->pid : 1,
					   known ? call->tid
						 : SLICES_FIRST_TID + (uint32_t)(task - ct->tasks),
					   call->cpu);
	return task->slices;
}

/* The slice of the function that a call enters or leaves. */
static struct slice slice_of(struct stage *s, const struct event *call, enum slice_kind kind)
{
	struct calltime *ct = s->priv;
	struct world *world = s->chain->world;
	uint64_t context = call->call.context, at = call->call.function;
	uint64_t start = world_function(world, call->pid, context, at);

	return (struct slice){ .time = ct->slices.now,
			       .kind = kind,
			       .start = start,
			       .frame = world_frame(world, call, context, start ? start : at,
						    start ? FRAME_FUNCTION : 0) };
}

/* Apart from its time. */
static bool is_selected(const struct event *call)
{
	return !(call->outside & (OUTSIDE_WHERE | OUTSIDE_WHO));
}

/* Before apply(). */
static void change_slices(struct stage *s, struct calltime_task *task, const struct event *call)
{
	struct calltime *ct = s->priv;
	struct slices_task *to = slices_of(ct, task, call);
	size_t at = call->call.leave ? find_entry(task, call->call.function) : SIZE_MAX;

	if (!call->call.leave) {
		if (task->nr < MAX_DEPTH)
			slices_open(&ct->slices, to,
				    slice_of(s, call, task->nr ? SLICE_CALL : SLICE_BEGIN));
	} else if (at != SIZE_MAX) {
		slices_close(&ct->slices, to, at);
	} else if (!task->nr) {
		slices_open_early(&ct->slices, to, slice_of(s, call, SLICE_BEGIN), ++to->beyond,
				  is_selected(call));
		slices_close(&ct->slices, to, 0);
	}
}

static int emit_slices(struct stage *s, struct calltime_task *task, const struct event *call)
{
	struct calltime *ct = s->priv;
	/* Where the clock changes, time stands still. */
	if (call->time != NO_TIME && call->time > ct->slices.now)
		slices_advance(&ct->slices, call->time);
	change_slices(s, task, call);
	if (call->cpu == NO_CPU)
		slices_show(&ct->slices, task->slices, is_selected(call));
	else
		slices_run(&ct->slices, call->cpu, task->slices, is_selected(call));
	return ct->slices.failed ? -1 : 0;
}

static int calltime_push(struct stage *s, struct event *ev)
{
	struct calltime *ct = s->priv;
	struct calltime_task *task = task_of(ct, ev);
	/* Time may go back where the recording changes to another clock. */
	bool spent = task->nr && ev->time != NO_TIME && ev->time >= task->since;

	if (ct->sums && spent && emit_span(s, task, ev) < 0)
		return -1;
	if (ct->times && emit_slices(s, task, ev) < 0)
		return -1;
	apply(task, &ev->call);
	task->context = ev->call.context;
	if (ev->time != NO_TIME)
		task->since = ev->time;
	return 0;
}

static int calltime_flush(struct stage *s, uint64_t until)
{
	struct calltime *ct = s->priv;

	return ct->times && until == UINT64_MAX ? slices_end(&ct->slices, s) : 0;
}

const struct stage_ops stage_calltime = {
	.name = "calltime",
	.takes = EVENT_BIT(EVENT_CALL),
	.makes = EVENT_BIT(EVENT_SOURCE) | EVENT_BIT(EVENT_SAMPLE) | EVENT_BIT(EVENT_SLICE),
	.priv_size = sizeof(struct calltime),
	.open = calltime_open,
	.push = calltime_push,
	.flush = calltime_flush,
	.close = calltime_close,
};

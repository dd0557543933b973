// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The stage `stretches`: makes a timeline of samples, if their input has no calls. It shows the samples of one
 * event: see is_better().
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "model/source.h"
#include "model/world.h"
#include "pass/merge.h"
#include "pass/select.h"
#include "pass/slices_stage.h"
#include "pass/stretches.h"

#define MAX_DEPTH 4096	      /* of the stacks that are shown */
#define UNKNOWN_PID 999999999 /* of samples that do not tell: larger than those of any kernel */
#define SECOND 1000000000

struct stretch_input {
	uint32_t source; /* whose samples are shown; 0: none yet */
	uint64_t shown;	 /* their number */
	struct stretch_pace pace;
};

struct stretches_stage {
	struct slices slices;
	struct stretches stretches;
	struct stretch_input *inputs;
	struct hash function_of; /* a frame: the frame of its function */
	struct hash functions;	 /* by name, binary and start: their frames */
	uint32_t *stack;	 /* the functions of the current one, from the root on */
	size_t cap_stack;
	uint64_t timeless, others; /* samples that are left out */
};

/* Functions */

/* All places in a function have the same one. */
static uint32_t function_of(struct stretches_stage *ss, struct world *world, uint32_t frame)
{
	uint32_t *known = hash_at(&ss->function_of, (struct hash_key){ frame, 0 }), *function;
	const struct symbol *symbol;
	size_t nr;

	if (*known)
		return *known;
	symbol = frame_symbols(world, frame, &nr) + nr - 1; /* the others are inlined in it */
	function = hash_at(
		&ss->functions,
		(struct hash_key){ (uint64_t)symbol->name << 32 | frame_binary(world, frame),
				   symbol->start ^
					   (uint64_t)(world->frames.all[frame].flags & FRAME_KERNEL)
						   << 62 });
	if (!*function)
		*function = frame_function(world, frame);
	return *known = *function;
}

static size_t functions_of(void *data, uint32_t stack, const uint32_t **functions)
{
	struct stage *s = data;
	struct stretches_stage *ss = s->priv;
	struct world *world = s->chain->world;
	size_t nr = 0, i;

	for (uint32_t at = stack; at; at = world->stacks.all[at].parent)
		nr++;
	GROW(ss->stack, nr, ss->cap_stack);
	i = nr;
	for (uint32_t at = stack; at; at = world->stacks.all[at].parent)
		ss->stack[--i] = function_of(ss, world, world->stacks.all[at].frame);
	*functions = ss->stack;
	return nr < MAX_DEPTH ? nr : MAX_DEPTH;
}

/* Tasks */

/* A process that the samples do not tell: in a kernel without processes, all are of the kernel. */
static int announce_unknown(struct stage *s, const struct event *ev, uint32_t frame)
{
	struct world *world = s->chain->world;
	struct event process = *ev;

	process.tid = ev->pid;
	if (world_comm(world, ev->pid, ev->pid) || !(world->frames.all[frame].flags & FRAME_KERNEL))
		return 0;
	return slices_name_task(s, &process, str_intern_z(world->strings, "kernel"));
}

static int announce_task(void *data, const struct event *ev, uint32_t frame)
{
	struct stage *s = data;
	struct stretches_stage *ss = s->priv;
	const struct stretch_shared *of = stretches_shared(&ss->stretches, ev->tid);

	if (!of)
		return 0;
	if (of->tid == NO_TASK && announce_unknown(s, ev, frame) < 0)
		return -1;
	return slices_name_task(s, ev,
				slices_shared_name(s->chain->world, of->pid, of->tid, of->cpu));
}

static int emit_stretch(void *data, struct event *ev)
{
	struct stage *s = data;

	ev->kind = EVENT_STRETCH;
	ev->input = (uint32_t)s->chain->merge->nr;
	return stage_emit(s, ev);
}

static int stretches_open(struct stage *s)
{
	struct stretches_stage *ss = s->priv;

	ss->stretches.functions = functions_of;
	ss->stretches.data = s;
	ss->inputs = xcalloc(s->chain->merge->nr + 1, sizeof(*ss->inputs));
	return 0;
}

/* Before the first sample: only then, the selected time is known. */
static int begin_slices(struct stage *s)
{
	struct stretches_stage *ss = s->priv;

	if (ss->stretches.slices)
		return 0;
	ss->stretches.slices = &ss->slices;
	if (slices_init(&ss->slices, s, announce_task, false) < 0)
		return -1;
	ss->slices.emit = emit_stretch;
	return 0;
}

static void stretches_close(struct stage *s)
{
	struct stretches_stage *ss = s->priv;

	stretches_release(&ss->stretches);
	slices_release(&ss->slices);
	hash_release(&ss->function_of);
	hash_release(&ss->functions);
	free(ss->inputs);
	free(ss->stack);
}

/* Samples */

static bool has_unit(const struct world *world, const struct source *source, const char *unit)
{
	return source->unit && !strcmp(str_text(world->strings, source->unit), unit);
}

static bool counts_instructions(const struct world *world, const struct source *source)
{
	return source->unit ? has_unit(world, source, "instructions")
			    : source->type == SOURCE_HARDWARE && (uint32_t)source->config == 1;
}

/* The time that a sample stands for; 0: unknown. A weight of 1 says that it is not known. */
static uint64_t width_of(const struct world *world, const struct event_sample *sample)
{
	const struct source *source = &world->sources[sample->source];

	if (source_counts_time(world, source) && sample->weight > 1)
		return sample->weight;
	return source->freq && source->period ? SECOND / source->period : 0;
}

/* Which events are better than others: those that tell most about the axis. */
static unsigned rank_of(const struct stage *s, uint32_t handle)
{
	const struct stretches_stage *ss = s->priv;
	const struct world *world = s->chain->world;
	const struct source *source = &world->sources[handle];
	uint32_t config = (uint32_t)source->config;
	bool cycles = source->type == SOURCE_HARDWARE && (config == 0 || config == 9);

	if (ss->slices.axis == AXIS_TIME && (source_counts_time(world, source) || cycles))
		return 2;
	return counts_instructions(world, source);
}

/* Of equal events, the one that the data describes first. */
static bool is_better(const struct stage *s, uint32_t a, uint32_t b)
{
	unsigned rank_a = rank_of(s, a), rank_b = rank_of(s, b);

	return rank_a != rank_b ? rank_a > rank_b : a < b;
}

/* Whether the slices of all inputs know their instructions. */
static uint8_t known_numbers(const struct stage *s)
{
	const struct stretches_stage *ss = s->priv;
	const struct world *world = s->chain->world;

	for (size_t i = 0; i < s->chain->merge->nr; i++) {
		uint32_t source = ss->inputs[i].source;

		if (source && !counts_instructions(world, &world->sources[source]))
			return 0;
	}
	return KNOWS_INSTRUCTIONS;
}

/*
 * Whether the sample is of the event that is shown of its input. If a better one has samples, too, that turns up
 * before the first slice, except in strange data.
 */
static bool is_shown(struct stage *s, const struct event *ev)
{
	struct stretches_stage *ss = s->priv;
	struct stretch_input *input = &ss->inputs[ev->input];
	uint32_t source = ev->sample.source;

	if (input->source && source != input->source && !ss->stretches.started &&
	    is_better(s, source, input->source)) {
		stretches_forget(&ss->stretches, &input->pace);
		ss->others += input->shown;
		input->source = 0;
		input->shown = 0;
	}
	if (!input->source) {
		input->source = source;
		ss->slices.knows = known_numbers(s);
	}
	input->shown += source == input->source;
	ss->others += source != input->source;
	return source == input->source;
}

static bool has_calls(const struct stage *s, size_t input)
{
	return s->chain->merge->inputs[input].seen &
	       (EVENT_BIT(EVENT_BRANCH) | EVENT_BIT(EVENT_CALL));
}

/* Calls may come after the first samples. */
static void forget_inputs_with_calls(struct stage *s)
{
	struct stretches_stage *ss = s->priv;

	for (size_t i = 0; i < s->chain->merge->nr && !ss->stretches.started; i++) {
		if (has_calls(s, i))
			stretches_forget(&ss->stretches, &ss->inputs[i].pace);
	}
}

/* Each cpu has an idle task, and all have the id 0. */
static bool is_shared(const struct world *world, const struct event *ev)
{
	return ev->pid == NO_TASK || ev->tid == NO_TASK || (!ev->pid && !ev->tid) ||
	       (ev->pid == ev->tid && world->sources[ev->sample.source].lacks & LACKS_THREADS);
}

static int take_sample(struct stage *s, struct event *ev)
{
	struct stretches_stage *ss = s->priv;
	struct world *world = s->chain->world;
	const struct source *source = &world->sources[ev->sample.source];
	bool here = !(ev->outside & OUTSIDE_WHERE);
	struct stretch_sample sample = {
		.time = ev->time,
		.width = width_of(world, &ev->sample),
		.count = ev->sample.count ? ev->sample.count : 1,
		.pid = ev->pid == NO_TASK ? UNKNOWN_PID : ev->pid,
		.tid = ev->tid,
		.cpu = ev->cpu,
		.shared = is_shared(world, ev),
		.here = here,
		.selected = here && select_task(s->chain->selection, world, ev->pid, ev->tid),
	};

	if (sample.selected)
		sample.stack = world_stack(world, ev);
	if (counts_instructions(world, source))
		sample.instructions = ev->sample.weight;
	sample.pace = &ss->inputs[ev->input].pace;
	stretches_add(&ss->stretches, &sample);
	return ss->slices.failed ? -1 : 0;
}

static int stretches_push(struct stage *s, struct event *ev)
{
	struct stretches_stage *ss = s->priv;

	if (ev->input >= s->chain->merge->nr || has_calls(s, ev->input))
		return 0;
	if (ev->kind == EVENT_LOST) {
		stretches_lost(&ss->stretches, ev->cpu, ev->time);
		return 0;
	}
	if (!select_source(s->chain->selection, s->chain->world, ev->sample.source))
		return 0;
	if (ev->time > INT64_MAX) {
		ss->timeless++;
		return 0;
	}
	if (begin_slices(s) < 0)
		return -1;
	return is_shown(s, ev) ? take_sample(s, ev) : 0;
}

static bool shows_some(const struct stage *s)
{
	const struct stretches_stage *ss = s->priv;

	for (size_t i = 0; i < s->chain->merge->nr; i++) {
		if (ss->inputs[i].shown)
			return true;
	}
	return false;
}

static int stretches_flush(struct stage *s, uint64_t until)
{
	struct stretches_stage *ss = s->priv;

	if (until != UINT64_MAX)
		return 0;
	if (ss->timeless && !shows_some(s))
		return err_set(&s->chain->err, ERR_INPUT,
			       "a timeline needs samples with times, and these have none: use "
			       "kscope flame "
			       "or kscope report");
	if (ss->timeless)
		log_warn("left out %" PRIu64 " samples without a time", ss->timeless);
	if (ss->others)
		log_warn("the timeline shows one event: left out %" PRIu64
			 " samples of others; use --event to select another one",
			 ss->others);
	if (ss->slices.axis != AXIS_TIME && !ss->slices.knows)
		return err_set(&s->chain->err, ERR_USAGE,
			       "the samples do not count instructions: use --axis time");
	forget_inputs_with_calls(s);
	stretches_finish(&ss->stretches);
	if (ss->stretches.slices && slices_end(&ss->slices, s) < 0)
		return -1;
	if (ss->stretches.late)
		log_warn("left out %" PRIu64
			 " samples that are not later than the previous one of their thread",
			 ss->stretches.late);
	return 0;
}

const struct stage_ops stage_stretches = {
	.name = "stretches",
	.takes = EVENT_BIT(EVENT_SAMPLE) | EVENT_BIT(EVENT_LOST),
	.makes = EVENT_BIT(EVENT_STRETCH),
	.priv_size = sizeof(struct stretches_stage),
	.open = stretches_open,
	.push = stretches_push,
	.flush = stretches_flush,
	.close = stretches_close,
};

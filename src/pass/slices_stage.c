// SPDX-License-Identifier: GPL-2.0-or-later
#include "pass/slices_stage.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/log.h"
#include "model/world.h"
#include "pass/merge.h"
#include "pass/select.h"

bool slices_wanted(const struct stage *s)
{
	return s->wanted & EVENT_BIT(EVENT_SLICE);
}

static int emit_slice(void *data, struct event *ev)
{
	struct stage *s = data;

	ev->input = (uint32_t)s->chain->merge->nr;
	return stage_emit(s, ev);
}

uint32_t slices_function(struct world *world, uint32_t frame)
{
	size_t nr;
	const struct symbol *symbols = frame_symbols(world, frame, &nr);

	return symbols[nr - 1].name; /* the others are inlined in it */
}

static unsigned gate_of(const struct slices *slices, uint32_t frame)
{
	const struct stage *s = slices->data;
	uint32_t name = slices_function(s->chain->world, frame);

	return (name == slices->start) * GATE_START | (name == slices->end) * GATE_END;
}

static void init_gate(struct slices *slices, struct stage *s,
		      const struct timeline_options *options)
{
	struct strtab *strings = s->chain->world->strings;

	if (options->start)
		slices->start = str_intern_z(strings, options->start);
	if (options->end)
		slices->end = str_intern_z(strings, options->end);
	slices->closed = options->start;
	slices->gate = options->start || options->end ? gate_of : NULL;
}

/* A selection relative to the first time is known when that is. */
static bool get_window(void *data, uint64_t *from, uint64_t *until)
{
	const struct selection *sel = ((struct stage *)data)->chain->selection;

	if (sel->relative)
		return false;
	*from = sel->timed ? sel->from : 0;
	*until = sel->timed ? sel->until : UINT64_MAX;
	return true;
}

static int no_cycles(struct stage *s)
{
	return err_set(&s->chain->err, ERR_USAGE,
		       "the input has no cycle counts: use --axis insns or --axis time");
}

int slices_init(struct slices *slices, struct stage *s,
		int (*announce)(void *data, const struct event *ev, uint32_t frame),
		bool has_cycles)
{
	const struct timeline_options *options = &s->chain->options->timeline;

	if (options->axis == AXIS_CYCLES && !has_cycles)
		return no_cycles(s);
	*slices = (struct slices){ .announce = announce,
				   .emit = emit_slice,
				   .data = s,
				   .window = get_window,
				   .from = UINT64_MAX,
				   .until = UINT64_MAX,
				   .length = options->split,
				   .axis = options->axis,
				   .inlines = options->inlines };
	init_gate(slices, s, options);
	return 0;
}

int slices_end(struct slices *slices, struct stage *s)
{
	const char *start = s->chain->options->timeline.start;

	if (slices->axis == AXIS_CYCLES && !(slices->knows & KNOWS_CYCLES))
		return no_cycles(s);
	if (start && !slices->started)
		log_warn("no call of %s begins in the selection", start);
	return slices_finish(slices);
}

int slices_name_task(struct stage *s, const struct event *ev, uint32_t name)
{
	struct world *world = s->chain->world;
	struct event comm;

	stage_event(s, &comm, EVENT_COMM);
	comm.pid = ev->pid;
	comm.tid = ev->tid;
	comm.time = ev->time;
	comm.comm.comm = str_text(world->strings, name);
	world_apply(world, &comm);
	return stage_emit(s, &comm);
}

uint32_t slices_shared_name(struct world *world, uint32_t pid, uint32_t tid, uint32_t cpu)
{
	uint32_t name = world_comm(world, pid, tid);
	char text[300];

	if (cpu == NO_CPU)
		return name ? name : str_intern_z(world->strings, "?");
	if (name)
		snprintf(text, sizeof(text), "%.200s/%" PRIu32, str_text(world->strings, name),
			 cpu);
	else
		snprintf(text, sizeof(text), "cpu %" PRIu32, cpu);
	return str_intern_z(world->strings, text);
}

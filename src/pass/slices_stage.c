// SPDX-License-Identifier: GPL-2.0-or-later
#include "pass/slices_stage.h"

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

void slices_init(struct slices *slices, struct stage *s,
		 int (*announce)(void *data, const struct event *ev, uint32_t frame))
{
	const struct selection *sel = s->chain->selection;

	*slices = (struct slices){ .announce = announce,
				   .emit = emit_slice,
				   .data = s,
				   .from = sel->timed ? sel->from : 0,
				   .until = sel->timed ? sel->until : UINT64_MAX,
				   .inlines = slices->inlines };
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

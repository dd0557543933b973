// SPDX-License-Identifier: GPL-2.0-or-later
/* world: updates the model of the recorded machine, before later stages look up names in it. */
#include "model/world.h"

#include "stage.h"

static int world_push(struct stage *s, struct event *ev)
{
	world_apply(s->chain->world, ev);
	return stage_emit(s, ev);
}

const struct stage_ops stage_world = {
	.name = "world",
	.takes = EVENT_STATE | EVENT_BIT(EVENT_SAMPLE) | EVENT_BIT(EVENT_CHAIN) |
		 EVENT_BIT(EVENT_COUNTER),
	.push = world_push,
};

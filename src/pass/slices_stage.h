/* SPDX-License-Identifier: GPL-2.0-or-later */
/* slices_stage: what the stages that make slices share. */
#ifndef KSCOPE_PASS_SLICES_STAGE_H
#define KSCOPE_PASS_SLICES_STAGE_H

#include "pass/slices.h"
#include "stage.h"

struct world;

/* Whether a writer takes slices. */
bool slices_wanted(const struct stage *s);
/*
 * Slices of the selection go to the next stage. announce() gets the stage. has_cycles: the input may have cycle
 * counts. Returns 0, or -1.
 */
int slices_init(struct slices *slices, struct stage *s,
		int (*announce)(void *data, const struct event *ev, uint32_t frame),
		bool has_cycles);
/* The event's task gets a name, whose handle this is. Returns 0, or -1 to stop. */
int slices_name_task(struct stage *s, const struct event *ev, uint32_t name);
/* All slices end, because the input does. Returns 0, or -1 to stop. */
int slices_end(struct slices *slices, struct stage *s);
/* The name of a frame's function, as opposed to one that is inlined there. */
uint32_t slices_function(struct world *world, uint32_t frame);

/* Threads that share a tid are named after it and their cpu, as Linux names its idle tasks. */
uint32_t slices_shared_name(struct world *world, uint32_t pid, uint32_t tid, uint32_t cpu);

#endif

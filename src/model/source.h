/* SPDX-License-Identifier: GPL-2.0-or-later */
/* source: the name of what triggered a sample, from perf's numbers or the PMU's own. */
#ifndef KSCOPE_MODEL_SOURCE_H
#define KSCOPE_MODEL_SOURCE_H

#include "model/world.h"

/* The name's handle. */
uint32_t source_name(struct world *world, uint32_t source);
/* For formats that carry only a name: fills type and config, as perf would parse it. */
void source_from_name(struct event_source *source, const char *name);

#endif

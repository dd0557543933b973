/* SPDX-License-Identifier: GPL-2.0-or-later */
/* source: the name of the event that triggered a sample, from perf's or the PMU's numbers. */
#ifndef KSCOPE_MODEL_SOURCE_H
#define KSCOPE_MODEL_SOURCE_H

#include "model/world.h"

/* Returns the handle of the name. */
uint32_t source_name(struct world *world, uint32_t source);
/* Whether weights are in ns: the unit says so, or it is perf's cpu-clock or task-clock. */
bool source_counts_time(const struct world *world, const struct source *source);
/*
 * Whether this sum of its weights is a time in ns. Some kernels take samples by time, but do not record how long a sample
 * is: then all weights are 1.
 */
bool source_sum_is_time(const struct world *world, uint32_t source, uint64_t samples,
			uint64_t weight);
/* Whether its samples, whose weights have this sum, count by weight: the data of an event may have no weights. */
bool source_has_weights(const struct world *world, uint32_t source, uint64_t weight);
/* For formats that have only a name: sets type and config, parsing the name as perf does. */
void source_from_name(struct event_source *source, const char *name);

#endif

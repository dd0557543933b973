/* SPDX-License-Identifier: GPL-2.0-or-later */
/* sums: for writers that sum up samples: the events of a tally, the names of tasks, and facts about the recording. */
#ifndef KSCOPE_WRITE_SUMS_H
#define KSCOPE_WRITE_SUMS_H

#include "base/buf.h"
#include "model/event.h"
#include "pass/tally.h"

#define SUMS_MAX_EVENTS 32 /* columns of a table; further events share the last one */

struct sums_event {
	uint32_t source;	    /* the first one of them */
	uint32_t name, weight_name; /* handles */
	const char *unit;	    /* of the weight; NULL: events */
	uint64_t samples, weight;
	bool weighs; /* the weight says more than the number of samples does */
};

struct sums_events { /* those that have samples, in the order of the first ones */
	struct sums_event all[SUMS_MAX_EVENTS];
	size_t nr;
	uint8_t *of; /* by source: the index in `all`, plus 1 */
};

void sums_events(struct sums_events *events, const struct tally *tally);
void sums_events_release(struct sums_events *events);
static inline size_t sums_event_of(const struct sums_events *events, uint32_t source)
{
	return events->of[source] - 1U;
}

/* The weight of an entry, as far as the output has it: in its own number, or as the same number of samples. */
static inline uint64_t sums_written_weight(const struct sums_event *event, uint64_t samples,
					   uint64_t weight)
{
	return event->weighs ? weight : event->weight ? samples : 0;
}

/* The handle of a task's name, even if the name came after the samples; 0: unknown. */
uint32_t sums_task(const struct world *world, const struct tally_entry *entry);

struct sums_lost {
	uint64_t samples;	   /* while recording */
	uint64_t damages, damaged; /* places where the input is damaged, and samples there */
	uint64_t bytes;
};

/* Adds an EVENT_LOST. */
void sums_lose(struct sums_lost *lost, const struct event *ev);
/* Calls say() for each fact about the recording and for each kind of loss, as "key: value" in a line of UTF-8. */
void sums_describe(const struct world *world, const struct sums_lost *lost,
		   void (*say)(void *arg, const char *line), void *arg);

#endif

// SPDX-License-Identifier: GPL-2.0-or-later
#include "write/sums.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "model/source.h"

static size_t add_event(struct sums_events *events, struct world *world, uint32_t source)
{
	const struct source *s = &world->sources[source];
	struct sums_event *event;

	if (events->nr == SUMS_MAX_EVENTS) {
		event = &events->all[SUMS_MAX_EVENTS - 1];
		event->name = str_intern_z(world->strings, "other events");
		event->unit = NULL;
		return events->nr;
	}
	event = &events->all[events->nr];
	event->source = source;
	event->name = source ? source_name(world, source) : str_intern_z(world->strings, "events");
	event->unit = source && s->unit ? str_text(world->strings, s->unit) : NULL;
	return ++events->nr;
}

/* Of data that has only numbers, the event is "samples". */
static void finish_event(struct sums_event *event, struct strtab *strings)
{
	bool samples = strcmp(str_text(strings, event->name), "samples") == 0;

	event->weighs = event->weight && !(samples && event->weight == event->samples);
	event->weight_name = samples ? str_intern_z(strings, "weight") : event->name;
}

void sums_events(struct sums_events *events, const struct tally *tally)
{
	*events = (struct sums_events){ .of = xcalloc(tally->world->nr_sources + 1, 1) };
	for (size_t i = 0; i < tally->nr; i++) {
		const struct tally_entry *entry = &tally->entries[i];
		uint8_t *of = &events->of[entry->source];

		if (!*of)
			*of = (uint8_t)add_event(events, tally->world, entry->source);
		events->all[*of - 1].samples += entry->samples;
		events->all[*of - 1].weight += entry->weight;
	}
	for (size_t i = 0; i < events->nr; i++)
		finish_event(&events->all[i], tally->world->strings);
}

void sums_events_release(struct sums_events *events)
{
	free(events->of);
	memset(events, 0, sizeof(*events));
}

uint32_t sums_task(const struct world *world, const struct tally_entry *entry)
{
	return entry->comm ? entry->comm : world_comm(world, entry->pid, entry->pid);
}

void sums_lose(struct sums_lost *lost, const struct event *ev)
{
	if (ev->lost.damage) {
		lost->damages++;
		lost->damaged += ev->lost.count;
	} else {
		lost->samples += ev->lost.count;
	}
	lost->bytes += ev->lost.bytes;
}

void sums_describe(const struct world *world, const struct sums_lost *lost,
		   void (*say)(void *arg, const char *line), void *arg)
{
	struct buf line = { 0 };

	for (size_t i = 0; i < world->nr_facts; i++) {
		buf_clear(&line);
		text_add_plain(&line, str_text(world->strings, world->facts[i].key));
		buf_adds(&line, ": ");
		text_add_plain(&line, str_text(world->strings, world->facts[i].value));
		say(arg, line.data);
	}
	buf_clear(&line);
	if (lost->samples) {
		buf_addf(&line, "lost: %" PRIu64 " sample%s while recording", lost->samples,
			 lost->samples == 1 ? "" : "s");
		say(arg, line.data);
	}
	buf_clear(&line);
	if (lost->damages) {
		buf_addf(&line,
			 "damaged: the input, in %" PRIu64 " place%s, samples lost there: %" PRIu64,
			 lost->damages, lost->damages == 1 ? "" : "s", lost->damaged);
		say(arg, line.data);
	}
	buf_clear(&line);
	if (lost->bytes) {
		buf_addf(&line, "lost: %" PRIu64 " bytes", lost->bytes);
		say(arg, line.data);
	}
	buf_release(&line);
}

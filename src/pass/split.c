// SPDX-License-Identifier: GPL-2.0-or-later
#include "pass/split.h"

enum place { PLACE_FUNCTION, PLACE_LABEL, PLACE_NOWHERE };

static enum place place_of(struct world *world, const struct event *ev, uint32_t i)
{
	const struct event_sample *sample = &ev->sample;
	uint32_t frame = world_frame(world, ev, sample->context, sample->ips[i], i > 0);
	const struct symbol *symbols;
	size_t nr;

	symbols = frame_symbols(world, frame, &nr);
	if (symbols[nr - 1].unknown)
		return PLACE_NOWHERE;
	return symbols[nr - 1].label ? PLACE_LABEL : PLACE_FUNCTION;
}

static bool has_symbols(struct world *world, const struct event *ev)
{
	uint32_t handle = world_frame(world, ev, ev->sample.context, ev->sample.ips[0], false);
	const struct frame *frame = &world->frames.all[handle];

	return !(frame->flags & (FRAME_NAMED | FRAME_UNMAPPED)) &&
	       image_symfile(&world->images, frame->image);
}

/* The first frame that can start a stack: a function's, or wherever the pc is known to be. */
static uint32_t find_start(struct world *world, const struct event *ev, uint32_t i)
{
	for (; i < ev->sample.nr; i++) {
		enum place place = place_of(world, ev, i);

		if (place == PLACE_FUNCTION || (place == PLACE_LABEL && i == 0))
			break;
	}
	return i;
}

/* Functions, and then the labels in assembly that they were called from. */
static uint32_t find_end(struct world *world, const struct event *ev, uint32_t start)
{
	uint32_t i = start + 1;

	while (i < ev->sample.nr && place_of(world, ev, i) == PLACE_FUNCTION)
		i++;
	while (i < ev->sample.nr && place_of(world, ev, i) == PLACE_LABEL)
		i++;
	return i;
}

bool split_next(struct world *world, const struct event *whole, uint32_t *at, struct event *part)
{
	const struct event_sample *sample = &whole->sample;
	uint32_t start, end;

	if (*at >= sample->nr)
		return false;
	*part = *whole;
	part->sample.split_unknown = false;
	if (*at == 0 && !has_symbols(world, whole)) {
		*at = sample->nr;
		return true;
	}
	start = find_start(world, whole, *at);
	if (start == sample->nr) {
		bool nothing = *at == 0;

		*at = sample->nr;
		part->sample.nr = 1;
		part->sample.context = IP_USER;
		return nothing;
	}
	end = find_end(world, whole, start);
	part->sample.ips = sample->ips + start;
	part->sample.nr = end - start;
	*at = end;
	return true;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * split: splits a chain that was walked by frame pointers through an interrupt into the handler's
 * stack and the interrupted stack. It needs the binary's symbols; without them, the chain stays
 * unchanged.
 *
 * This follows Maestro's aggregator: frames in no function separate stacks and are dropped, and
 * each stack counts as one sample, so the total may exceed the number of records. It differs on
 * purpose:
 *  - A record without any function, mostly one in user mode, counts as one sample outside the
 *    kernel. The aggregator drops it.
 *  - A return address in an assembler label (a symbol without a size) ends a stack, too, but is
 *    kept as the root: isr_14 is better than nothing. A pc in a label (memcpy in assembly) is an
 *    ordinary leaf; the aggregator drops it.
 *  - Return addresses are looked up at address - 1, where the call is.
 */
#include "model/world.h"
#include "stage.h"

struct split {
	bool off;
};

static const struct option_table split_table = {
	"Stacks and counts",
	(const struct option_row[]){
		{ "no-split", 0, NULL, "do not split stacks at interrupts",
		  OPTION_FLAG(struct split, off) },
		{ 0 },
	},
};

enum place { PLACE_FUNCTION, PLACE_LABEL, PLACE_NOWHERE };

static enum place place_of(struct world *world, const struct event *ev, uint32_t i)
{
	const struct event_sample *sample = &ev->sample;
	uint32_t frame =
		world_frame(world, ev, sample->context, sample->ips[i], i > 0 ? FRAME_RETURN : 0);
	const struct symbol *symbols;
	size_t nr;

	symbols = frame_symbols(world, frame, &nr);
	if (symbols[nr - 1].unknown)
		return PLACE_NOWHERE;
	return symbols[nr - 1].label ? PLACE_LABEL : PLACE_FUNCTION;
}

static bool has_symbols(struct world *world, const struct event *ev)
{
	uint32_t handle = world_frame(world, ev, ev->sample.context, ev->sample.ips[0], 0);
	const struct frame *frame = &world->frames.all[handle];

	return !(frame->flags & (FRAME_NAMED | FRAME_UNMAPPED)) &&
	       image_symfile(&world->images, frame->image);
}

/* Finds the first frame that can start a stack: one in a function, or the pc in a label. */
static uint32_t find_start(struct world *world, const struct event *ev, uint32_t i)
{
	for (; i < ev->sample.nr; i++) {
		enum place place = place_of(world, ev, i);

		if (place == PLACE_FUNCTION || (place == PLACE_LABEL && i == 0))
			break;
	}
	return i;
}

/* Finds the end of a stack: functions, then the assembler labels that called them. */
static uint32_t find_end(struct world *world, const struct event *ev, uint32_t start)
{
	uint32_t i = start + 1;

	while (i < ev->sample.nr && place_of(world, ev, i) == PLACE_FUNCTION)
		i++;
	while (i < ev->sample.nr && place_of(world, ev, i) == PLACE_LABEL)
		i++;
	return i;
}

/* Emits one stack of the chain: from `start` up to `end`. */
static int emit_part(struct stage *s, const struct event *whole, uint32_t start, uint32_t end)
{
	struct event part = *whole;

	part.kind = EVENT_SAMPLE;
	part.sample.ips += start;
	part.sample.nr = end - start;
	return stage_emit(s, &part);
}

/* Emits a record without any function. */
static int emit_elsewhere(struct stage *s, const struct event *whole)
{
	struct event ev = *whole;

	ev.kind = EVENT_SAMPLE;
	ev.sample.nr = 1;
	ev.sample.context = IP_USER;
	return stage_emit(s, &ev);
}

static int split_push(struct stage *s, struct event *ev)
{
	const struct split *split = s->priv;
	struct world *world = s->chain->world;
	uint32_t nr = ev->sample.nr, start, end;

	if (!nr || split->off || !has_symbols(world, ev))
		return emit_part(s, ev, 0, nr);
	start = find_start(world, ev, 0);
	if (start == nr)
		return emit_elsewhere(s, ev);
	for (; start < nr; start = find_start(world, ev, end)) {
		end = find_end(world, ev, start);
		if (emit_part(s, ev, start, end) < 0)
			return -1;
	}
	return 0;
}

const struct stage_ops stage_split = {
	.name = "split",
	.takes = EVENT_BIT(EVENT_CHAIN),
	.makes = EVENT_BIT(EVENT_SAMPLE),
	.options = OPTION_USES({ &split_table, 0 }),
	.priv_size = sizeof(struct split),
	.push = split_push,
};

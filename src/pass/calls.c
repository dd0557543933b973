// SPDX-License-Identifier: GPL-2.0-or-later
#include "pass/calls.h"

#include <string.h>

#include "base/log.h"
#include "model/world.h"
#include "pass/slices_stage.h"
#include "stage.h"

struct calls_stage {
	struct calls calls; /* must be first: chain_find() returns it */
	struct slices slices;
	struct inlines inlines;
	uint32_t source;  /* 0: not announced yet */
	bool sums, times; /* what the writers take: samples, slices */
};

static uint64_t function_at(void *data, uint64_t address, uint64_t context, uint32_t pid)
{
	return world_function(data, pid, context, address);
}

/* Early code of a kernel may run at another address, which src/place maps as an alias. */
static bool kernel_at(void *data, uint64_t address)
{
	struct world *world = data;
	const struct map *map = space_find(&world->spaces[SPACE_KERNEL], address);

	return map && world_function(world, 0, IP_KERNEL, address) &&
	       strcmp(str_text(world->strings, world->images.all[map->image].path),
		      "[kernel.alias]");
}

/* Code that is not traced: it has no address. */
static uint32_t untraced_frame(struct world *world, uint64_t context)
{
	bool kernel = context == IP_KERNEL;

	return frame_named(&world->frames,
			   str_intern_z(world->strings, kernel ? "[kernel]" : "[untraced]"), 0,
			   kernel ? FRAME_KERNEL : 0);
}

static uint32_t frame_at(void *data, uint64_t address, uint64_t context, uint32_t pid,
			 bool is_return)
{
	struct event at = { .pid = pid };
	bool whole = !is_return && world_function(data, pid, context, address) == address;

	if (!address)
		return untraced_frame(data, context);
	return world_frame(data, &at, context, address,
			   is_return ? FRAME_RETURN
			   : whole   ? FRAME_FUNCTION
				     : 0);
}

static uint32_t stack_below(void *data, uint32_t callers, uint32_t frame)
{
	struct world *world = data;

	return stack_push(&world->stacks, callers, frame);
}

static bool has_symbol(struct world *world, uint32_t frame)
{
	size_t nr;
	const struct symbol *symbols = frame_symbols(world, frame, &nr);

	return !symbols[nr - 1].unknown;
}

/* In code without symbols, where functions begin is unknown: all that was not called is one. */
static bool same_function(void *data, uint32_t frame, uint32_t other)
{
	if (!has_symbol(data, frame) && !has_symbol(data, other))
		return true;
	return slices_function(data, frame) == slices_function(data, other);
}

static uint32_t function_name(void *data, uint32_t frame)
{
	return slices_function(data, frame);
}

/*
 * GCC and Clang call a part of a function that is moved away, because it hardly ever runs, NAME.cold. In DWARF, it
 * has the name of the function.
 */
static uint32_t whole_function(void *data, uint32_t frame)
{
	struct world *world = data;
	uint32_t handle = slices_function(world, frame);
	const char *name = str_text(world->strings, handle);
	const char *cold = strstr(name, ".cold");
	const char *clone = cold ? memrchr(name, '[', (size_t)(cold - name)) : NULL;

	if (!cold)
		return handle;
	/* Demangled: NAME [clone .cold]. */
	if (clone && !strncmp(clone, "[clone .cold", 12) && clone > name)
		cold = clone - 1;
	return str_intern(world->strings, name, (size_t)(cold - name));
}

/*
 * The name of a task: that of its process, or of its first function, if that is in the kernel. Firmware has no
 * symbols.
 */
static uint32_t task_name(void *data, uint32_t pid, uint32_t frame)
{
	struct world *world = ((struct stage *)data)->chain->world;
	uint32_t name = world_comm(world, pid, pid);

	if (!name || (world->frames.all[frame].flags & FRAME_KERNEL && has_symbol(world, frame)))
		name = slices_function(world, frame);
	return name;
}

static int announce_task(void *data, const struct event *ev, uint32_t frame)
{
	struct world *world = ((struct stage *)data)->chain->world;

	if (ev->tid >= SLICES_SHARED_TID)
		return slices_name_task(data, ev,
					slices_shared_name(world, ev->pid, ev->pid, ev->cpu));
	return slices_name_task(data, ev, task_name(data, ev->pid, frame));
}

static void inlines_of(void *data, const struct track_place *place, struct inlines_at *out)
{
	world_inlines(data, place->pid, place->context, place->address, out);
}

static uint64_t instructions_of(void *data, const struct track_place *place, uint64_t end)
{
	return world_instructions(data, place->pid, place->context, place->address, end);
}

static void open_inlines(struct calls_stage *cs, struct world *world)
{
	inlines_init(&cs->inlines);
	cs->inlines.at = inlines_of;
	cs->inlines.instructions = instructions_of;
	cs->inlines.data = world;
	cs->calls.inlines = &cs->inlines;
}

static int calls_open(struct stage *s)
{
	struct calls_stage *cs = s->priv;

	cs->sums = s->wanted & EVENT_BIT(EVENT_SAMPLE);
	cs->times = slices_wanted(s);

	calls_init(&cs->calls);
	cs->calls.function = function_at;
	cs->calls.kernel = kernel_at;
	cs->calls.frame = frame_at;
	cs->calls.stack = stack_below;
	cs->calls.same = same_function;
	cs->calls.name = function_name;
	cs->calls.whole = whole_function;
	cs->calls.data = s->chain->world;
	if (!cs->times)
		return 0;
	cs->calls.slices = &cs->slices;
	if (slices_init(&cs->slices, s, announce_task, true) < 0)
		return -1;
	cs->slices.knows = KNOWS_LINES; /* and what the branches count */
	cs->slices.kind = task_name;
	if (cs->slices.inlines)
		open_inlines(cs, s->chain->world);
	return 0;
}

/* Emits the instructions so far as samples, one for each stack. */
static int emit_sums(struct stage *s)
{
	static const struct event_source source = {
		.id = 2,
		.name = "instructions",
		.type = SOURCE_HARDWARE,
		.config = 1,
		.unit = "instructions",
		.lacks = LACKS_TIME | LACKS_CPU,
	};
	struct calls_stage *cs = s->priv;
	struct event ev;

	if (cs->sums && cs->calls.track.stats.branches && !cs->source &&
	    stage_source(s, &source, &cs->source) < 0)
		return -1;
	/* Also if nothing is selected so far: the last calls_sample() empties the tables. */
	stage_event(s, &ev, EVENT_SAMPLE);
	while (calls_sample(&cs->calls, &ev)) {
		if (!cs->sums)
			continue;
		ev.sample.source = cs->source;
		if (stage_emit(s, &ev) < 0)
			return -1;
	}
	return 0;
}

static int calls_push_all(struct stage *s, struct event *events, size_t nr)
{
	struct calls *calls = &((struct calls_stage *)s->priv)->calls;
	enum event_kind kind = events->kind; /* of all */

	calls->version = s->chain->world->version;
	if (calls->inlines)
		calls->inlines->version = calls->version;
	for (size_t i = 0; i < nr && kind == EVENT_CHECK; i++)
		calls_check(calls, &events[i]);
	for (size_t i = 0; i < nr && kind == EVENT_MASK; i++)
		calls_mask(calls, &events[i]);
	for (size_t i = 0; i < nr && kind == EVENT_NOTE; i++)
		calls_note(calls, &events[i]);
	for (size_t i = 0; i < nr && kind == EVENT_BRANCH; i++) {
		calls_add(calls, &events[i]);
		if (calls_full(calls) && emit_sums(s) < 0)
			return -1;
	}
	return calls->slices && calls->slices->failed ? -1 : 0;
}

static int calls_push(struct stage *s, struct event *ev)
{
	return calls_push_all(s, ev, 1);
}

/* Warns if more stacks than usual are doubtful or incomplete. */
static void warn_of_doubt(const struct track_stats *stats)
{
	double all = (double)stats->instructions;
	double doubtful = (double)stats->doubtful;
	double unrooted = all - (double)stats->rooted - doubtful;

	if (doubtful > all / 1000)
		log_warn("%.1f %% of the traced instructions are in call stacks that may be wrong: "
			 "see kscope info",
			 doubtful / all * 100);
	if (unrooted > all / 10)
		log_warn(
			"%.1f %% of the traced instructions are in call stacks whose first callers "
			"are unknown",
			unrooted / all * 100);
}

static int calls_flush(struct stage *s, uint64_t until)
{
	struct calls_stage *cs = s->priv;

	if (until != UINT64_MAX)
		return 0;
	warn_of_doubt(&cs->calls.track.stats);
	if (cs->times && slices_end(&cs->slices, s) < 0)
		return -1;
	if (emit_sums(s) < 0)
		return -1;
	if (cs->source)
		stage_sum(s, cs->source, cs->calls.track.stats.instructions);
	return 0;
}

static void calls_close(struct stage *s)
{
	struct calls_stage *cs = s->priv;

	calls_release(&cs->calls);
	slices_release(&cs->slices);
	inlines_release(&cs->inlines);
}

const struct stage_ops stage_calls = {
	.name = "calls",
	.takes = EVENT_BIT(EVENT_BRANCH) | EVENT_BIT(EVENT_CHECK) | EVENT_BIT(EVENT_MASK) |
		 EVENT_BIT(EVENT_NOTE),
	.makes = EVENT_BIT(EVENT_SOURCE) | EVENT_BIT(EVENT_SAMPLE) | EVENT_BIT(EVENT_SLICE),
	.priv_size = sizeof(struct calls_stage),
	.open = calls_open,
	.push = calls_push,
	.push_all = calls_push_all,
	.flush = calls_flush,
	.close = calls_close,
};

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The table of stacks. Samples refer to the stack of the innermost function. The functions around an inlined one have
 * stacks with ids after all those, so that rows are in the order of their ids.
 */
#include <stdlib.h>

#include "base/mem.h"
#include "write/sqlite.h"

struct place {		/* of a stack of the world */
	uint32_t frame; /* its first one */
	size_t nr;
};

struct walk {
	struct writer *w;
	uint32_t *path; /* the current stack, from the root: ids, which increase */
	size_t nr_path, cap_path;
	uint32_t *open; /* by function: how often it is on the path */
	size_t nr_open, cap_open;
	uint32_t *skipped; /* see go_to() */
	size_t cap_skipped;
	uint8_t *
		outermost; /* of the stacks of functions that others are inlined in, in the order of their ids */
	size_t nr_outermost, cap_outermost;
};

static uint32_t parent_of(struct walk *walk, uint32_t id)
{
	struct sqlite *s = walk->w->priv;
	uint32_t parent = walk->w->world->stacks.all[s->stacks[id - 1]].parent;

	return parent ? *timeline_number(&s->stack_of, parent) : 0;
}

static struct place place_of(struct walk *walk, uint32_t id)
{
	struct sqlite *s = walk->w->priv;
	struct place place;

	place.frame = sqlite_frame(walk->w, walk->w->world->stacks.all[s->stacks[id - 1]].frame,
				   &place.nr);
	return place;
}

static uint32_t *open_of(struct walk *walk, uint32_t frame)
{
	const struct sqlite *s = walk->w->priv;
	uint32_t function = s->frames[frame];

	while (walk->nr_open <= function) {
		GROW(walk->open, walk->nr_open + 1, walk->cap_open);
		walk->open[walk->nr_open++] = 0;
	}
	return &walk->open[function];
}

/* Returns whether no caller is the same function as the innermost. is_new: also notes this for the others. */
static bool enter(struct walk *walk, uint32_t id, bool is_new)
{
	struct place place = place_of(walk, id);
	bool first = false;

	if (is_new)
		GROW(walk->outermost, walk->nr_outermost + place.nr, walk->cap_outermost);
	for (size_t i = place.nr; i-- > 0;) {
		first = !(*open_of(walk, place.frame + (uint32_t)i))++;
		if (is_new && i)
			walk->outermost[walk->nr_outermost + i - 1] = first;
	}
	if (is_new)
		walk->nr_outermost += place.nr - 1;
	GROW(walk->path, walk->nr_path + 1, walk->cap_path);
	walk->path[walk->nr_path++] = id;
	return first;
}

static void leave(struct walk *walk)
{
	struct place place = place_of(walk, walk->path[--walk->nr_path]);

	for (size_t i = 0; i < place.nr; i++)
		(*open_of(walk, place.frame + (uint32_t)i))--;
}

/* Moves the path to a stack that was entered before; 0: to the empty one. */
static void go_to(struct walk *walk, uint32_t id)
{
	size_t nr = 0;

	while (walk->nr_path && walk->path[walk->nr_path - 1] != id) {
		if (walk->path[walk->nr_path - 1] > id) {
			leave(walk);
			continue;
		}
		GROW(walk->skipped, nr + 1, walk->cap_skipped);
		walk->skipped[nr++] = id;
		id = parent_of(walk, id);
	}
	for (; id && !walk->nr_path; id = parent_of(walk, id)) {
		GROW(walk->skipped, nr + 1, walk->cap_skipped);
		walk->skipped[nr++] = id;
	}
	while (nr--)
		enter(walk, walk->skipped[nr], false);
}

static void put_stack(struct sqlite *s, uint32_t id, uint32_t parent, uint32_t frame,
		      uint32_t depth, bool outermost)
{
	struct database_value row[] = { NUMBER(id), sqlite_id(parent), NUMBER(frame), NUMBER(depth),
					NUMBER(outermost) };

	database_add(s->db, s->tables[TABLE_STACKS], row);
}

void sqlite_put_stacks(struct writer *w)
{
	struct sqlite *s = w->priv;
	struct walk walk = { .w = w };
	uint32_t *depths = xcalloc(s->nr_stacks + 1, sizeof(*depths)); /* by id, plus 1 */
	uint32_t after = (uint32_t)s->nr_stacks + 1, next = after;

	for (uint32_t id = 1; id <= s->nr_stacks; id++) {
		uint32_t parent = parent_of(&walk, id);
		struct place place = place_of(&walk, id);

		go_to(&walk, parent);
		depths[id] = depths[parent] + (uint32_t)place.nr;
		put_stack(s, id, place.nr > 1 ? next : parent, place.frame, depths[id] - 1,
			  enter(&walk, id, true));
		next += (uint32_t)place.nr - 1;
	}
	next = after;
	for (uint32_t id = 1; id <= s->nr_stacks; id++) {
		uint32_t parent = parent_of(&walk, id);
		struct place place = place_of(&walk, id);

		for (uint32_t i = 1; i < place.nr; i++, next++)
			put_stack(s, next, i + 1 < place.nr ? next + 1 : parent, place.frame + i,
				  depths[id] - 1 - i, walk.outermost[next - after]);
	}
	free(depths);
	free(walk.path);
	free(walk.open);
	free(walk.skipped);
	free(walk.outermost);
}

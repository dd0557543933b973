// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/space.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

void space_release(struct space *space)
{
	free(space->maps);
	memset(space, 0, sizeof(*space));
}

void space_clear(struct space *space)
{
	free(space->maps);
	space->maps = NULL;
	space->nr = space->cap = 0;
	space->version++;
}

/* The first map that ends at or after addr. */
static size_t first_from(const struct space *space, uint64_t addr)
{
	size_t low = 0, high = space->nr;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (space->maps[mid].last < addr)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

const struct map *space_find(const struct space *space, uint64_t addr)
{
	size_t i = first_from(space, addr);

	return i < space->nr && space->maps[i].start <= addr ? &space->maps[i] : NULL;
}

static struct map tail_of(struct map map, uint64_t start)
{
	map.offset += start - map.start;
	map.start = start;
	return map;
}

void space_map(struct space *space, struct map map)
{
	size_t first = first_from(space, map.start), end = first;
	struct map keep[3]; /* the new map, and the remains of old ones on either side */
	size_t nr_keep = 0;

	while (end < space->nr && space->maps[end].start <= map.last)
		end++;
	if (end > first && space->maps[first].start < map.start) {
		keep[nr_keep] = space->maps[first];
		keep[nr_keep++].last = map.start - 1;
	}
	keep[nr_keep++] = map;
	if (end > first && space->maps[end - 1].last > map.last)
		keep[nr_keep++] = tail_of(space->maps[end - 1], map.last + 1);

	GROW(space->maps, space->nr + 2, space->cap);
	memmove(space->maps + first + nr_keep, space->maps + end,
		(space->nr - end) * sizeof(*space->maps));
	memcpy(space->maps + first, keep, nr_keep * sizeof(*keep));
	space->nr = space->nr - (end - first) + nr_keep;
	space->version++;
}

void space_unmap(struct space *space, uint64_t start)
{
	size_t i = first_from(space, start);

	if (i == space->nr || space->maps[i].start != start)
		return;
	memmove(space->maps + i, space->maps + i + 1, (--space->nr - i) * sizeof(*space->maps));
	space->version++;
}

void space_copy(struct space *to, const struct space *from)
{
	GROW(to->maps, from->nr, to->cap);
	if (from->nr)
		memcpy(to->maps, from->maps, from->nr * sizeof(*from->maps));
	to->nr = from->nr;
	to->version++;
}

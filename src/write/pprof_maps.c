// SPDX-License-Identifier: GPL-2.0-or-later
#include "write/pprof_maps.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define PAGE ((uint64_t)4096)
#define ELSEWHERE ((uint64_t)0x600000000000) /* for binaries whose link address is not free */

void pprof_maps_init(struct pprof_maps *maps, struct world *world)
{
	*maps = (struct pprof_maps){ .world = world };
	GROW(maps->all, 1, maps->cap);
	maps->all[0] = (struct pprof_map){ 0 };
	maps->nr = 1;
}

void pprof_maps_release(struct pprof_maps *maps)
{
	free(maps->all);
	hash_release(&maps->index);
	memset(maps, 0, sizeof(*maps));
}

static bool has_address(const struct frame *frame)
{
	return !(frame->flags & (FRAME_NAMED | FRAME_UNMAPPED));
}

static struct hash_key key_of(const struct frame *frame)
{
	uint32_t binary = frame->flags & FRAME_UNMAPPED ? 0 : frame->image;

	return (struct hash_key){ binary, has_address(frame)		? 1
					  : frame->flags & FRAME_KERNEL ? 2
									: 3 };
}

uint32_t pprof_maps_find(const struct pprof_maps *maps, uint32_t frame)
{
	return hash_get(&maps->index, key_of(&maps->world->frames.all[frame]));
}

/* The address as linked; for a caller, that of its call instruction. 0: none. */
static uint64_t address_of(const struct pprof_maps *maps, const struct frame *frame)
{
	uint64_t addr = frame->flags & FRAME_UNMAPPED ? frame->addr : 0;

	if (has_address(frame))
		addr = image_vaddr(&maps->world->images, frame->image, frame->addr);
	return addr && frame->flags & FRAME_RETURN ? addr - 1 : addr;
}

/* The file's code, in whole pages; if that is unknown, only the code that ran. */
static void measure(struct pprof_maps *maps, struct pprof_map *map, uint64_t addr)
{
	const struct symfile *symfile = image_symfile(&maps->world->images, map->image);
	size_t nr = 0;
	const struct sym_segment *segments = symfile ? symfile_segments(symfile, &nr) : NULL;

	map->start = map->last = addr;
	map->offset = addr;
	for (size_t i = 0; i < nr; i++) {
		uint64_t last = segments[i].vaddr + segments[i].memsz - 1;

		if (addr < segments[i].vaddr || addr > last)
			continue;
		map->start = segments[i].vaddr;
		map->offset = segments[i].offset;
		map->last = last;
	}
	map->last |= PAGE - 1;
	map->offset -= map->start % PAGE < map->offset ? map->start % PAGE : map->offset;
	map->start -= map->start % PAGE;
}

static void include(struct pprof_map *map, uint64_t addr)
{
	if (addr < map->start) {
		uint64_t more = map->start - (addr - addr % PAGE);

		map->start -= more;
		map->offset -= more < map->offset ? more : map->offset;
	}
	if (addr > map->last)
		map->last = addr | (PAGE - 1);
}

static uint32_t file_of(struct pprof_maps *maps, const struct frame *frame)
{
	if (has_address(frame))
		return maps->world->images.all[frame->image].path;
	if (frame->flags & FRAME_NAMED && frame->image)
		return frame->image;
	return frame->flags & FRAME_KERNEL ? str_intern_z(maps->world->strings, "[kernel]") : 0;
}

static struct pprof_map *map_of(struct pprof_maps *maps, const struct frame *frame)
{
	uint32_t *at = hash_at(&maps->index, key_of(frame)), file;
	struct pprof_map *map;

	if (*at)
		return &maps->all[*at];
	file = file_of(maps, frame);
	if (!file)
		return NULL;
	*at = (uint32_t)maps->nr;
	GROW(maps->all, maps->nr + 1, maps->cap);
	map = &maps->all[maps->nr++];
	*map = (struct pprof_map){ .file = file };
	if (has_address(frame)) {
		map->image = frame->image;
		measure(maps, map, address_of(maps, frame));
	}
	return map;
}

void pprof_maps_add(struct pprof_maps *maps, uint32_t handle)
{
	size_t nr;
	/* First: it finds a map that came after the samples. */
	bool known = !frame_symbols(maps->world, handle, &nr)->unknown;
	const struct frame *frame = &maps->world->frames.all[handle];
	struct pprof_map *map = map_of(maps, frame);

	if (!map)
		return;
	map->known |= known;
	if (map->image)
		include(map, address_of(maps, frame));
}

static int by_start(const void *va, const void *vb, void *arg)
{
	const struct pprof_map *all = arg;
	uint32_t a = *(const uint32_t *)va, b = *(const uint32_t *)vb;

	if (all[a].start != all[b].start)
		return all[a].start < all[b].start ? -1 : 1;
	return a < b ? -1 : 1;
}

struct placing {
	struct pprof_map *all;
	uint32_t *order; /* by link address */
	size_t nr;
	size_t nr_kept; /* those that stay there come first, in that order */
};

/* If binaries overlap, the first one stays. */
static void keep(struct placing *p)
{
	uint32_t *moved = xcalloc(p->nr, sizeof(*moved));
	size_t nr_moved = 0;

	for (size_t i = 0; i < p->nr; i++) {
		const struct pprof_map *map = &p->all[p->order[i]];

		if (p->nr_kept && map->start <= p->all[p->order[p->nr_kept - 1]].last)
			moved[nr_moved++] = p->order[i];
		else
			p->order[p->nr_kept++] = p->order[i];
	}
	memcpy(p->order + p->nr_kept, moved, nr_moved * sizeof(*moved));
	free(moved);
}

static void move(struct placing *p)
{
	uint64_t next = ELSEWHERE;
	size_t kept = 0;

	for (size_t i = p->nr_kept; i < p->nr; i++) {
		struct pprof_map *map = &p->all[p->order[i]];
		uint64_t size = map->last - map->start;

		for (; kept < p->nr_kept && p->all[p->order[kept]].start <= next + size; kept++) {
			if (p->all[p->order[kept]].last >= next)
				next = p->all[p->order[kept]].last + 1;
		}
		map->moved = next - map->start;
		next += size + 1;
	}
}

void pprof_maps_place(struct pprof_maps *maps)
{
	struct placing p = { .all = maps->all, .order = xcalloc(maps->nr, sizeof(*p.order)) };

	for (uint32_t i = 1; i < maps->nr; i++) {
		if (maps->all[i].image)
			p.order[p.nr++] = i;
	}
	if (p.nr)
		qsort_r(p.order, p.nr, sizeof(*p.order), by_start, p.all);
	keep(&p);
	move(&p);
	free(p.order);
}

uint64_t pprof_maps_address(const struct pprof_maps *maps, uint32_t handle)
{
	const struct frame *frame = &maps->world->frames.all[handle];

	return address_of(maps, frame) + maps->all[pprof_maps_find(maps, handle)].moved;
}

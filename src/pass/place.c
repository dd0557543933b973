// SPDX-License-Identifier: GPL-2.0-or-later
#include "pass/place.h"

#include <stdlib.h>

#include "base/mem.h"

struct place {
	uint64_t votes;
};

struct place *place_new(const char *kernel, const char *const *elfs, size_t nr_elfs)
{
	(void)kernel;
	(void)elfs;
	(void)nr_elfs;
	return xcalloc(1, sizeof(struct place));
}

void place_free(struct place *place)
{
	free(place);
}

void place_vote(struct place *place, uint64_t pc)
{
	(void)pc;
	place->votes++;
}

bool place_slide(struct place *place, uint64_t *slide, uint64_t *hits, uint64_t *votes)
{
	(void)place;
	*slide = *hits = *votes = 0;
	return true;
}

bool place_anchor(struct place *place, const char **name, uint64_t *vaddr)
{
	(void)place;
	(void)name;
	(void)vaddr;
	return false;
}

bool place_code(struct place *place, uint64_t address, const uint8_t *bytes, size_t len,
		struct event_map *map)
{
	(void)place;
	(void)address;
	(void)bytes;
	(void)len;
	(void)map;
	return false;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* space: the current maps of one address space. */
#ifndef KSCOPE_MODEL_SPACE_H
#define KSCOPE_MODEL_SPACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct map {
	uint64_t start, last; /* both inclusive: a map may reach the top of the address space */
	uint64_t offset;      /* in the file, of start */
	uint32_t image;
};

struct space {
	struct map *maps; /* sorted, never overlapping */
	size_t nr, cap;
	uint32_t version; /* changes with every change of the maps */
	int32_t threads;  /* known running threads besides the first */
};

void space_release(struct space *space);
void space_clear(struct space *space);
/* Replaces older maps, or parts of them, that the new one overlaps. */
void space_map(struct space *space, struct map map);
/* Removes the map that begins at `start`, if any. */
void space_unmap(struct space *space, uint64_t start);
void space_copy(struct space *to, const struct space *from);
const struct map *space_find(const struct space *space, uint64_t addr); /* NULL: nothing there */

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* space: what is mapped where in one address space, as of now. */
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
	int32_t threads;  /* that are known to run besides the first */
};

void space_release(struct space *space);
void space_clear(struct space *space);
/* A newer map hides the older ones, or the part of them, where it lies. */
void space_map(struct space *space, struct map map);
/* The map that begins there is gone. */
void space_unmap(struct space *space, uint64_t start);
void space_copy(struct space *to, const struct space *from);
const struct map *space_find(const struct space *space, uint64_t addr); /* NULL: nothing there */

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * space: the current maps of one address space. A fork shares the maps of its parent: they are a
 * balanced (AVL) tree whose nodes have reference counts, and a change copies only the nodes on the way to
 * it that another space uses, too. So memory follows the number of changes, not that of processes.
 */
#ifndef KSCOPE_MODEL_SPACE_H
#define KSCOPE_MODEL_SPACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct map {
	uint64_t start, last; /* both inclusive: a map may reach the top of the address space */
	uint64_t offset;      /* in the file, of start */
	uint32_t image;
	bool code; /* executable */
};

struct map_node {
	struct map map;
	struct map_node *left, *right; /* lower and higher addresses */
	uint32_t refs;		       /* spaces and nodes that point to it */
	uint32_t height;
};

struct space {
	struct map_node *maps; /* never overlapping; NULL: none */
	uint32_t version;      /* changes with every change of the maps */
	int32_t threads;       /* known running threads besides the first */
};

void space_release(struct space *space);
void space_clear(struct space *space);
/* Replaces older maps, or parts of them, that the new one overlaps. */
void space_map(struct space *space, struct map map);
/* Removes the map that begins at `start`, if any. */
void space_unmap(struct space *space, uint64_t start);
/* The maps of `from` replace those of `to`. Both share them until one of them changes. */
void space_copy(struct space *to, const struct space *from);
/* Valid until the space changes. NULL: nothing there. */
const struct map *space_find(const struct space *space, uint64_t addr);

#endif

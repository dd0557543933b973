/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * pprof_maps: the mappings of a pprof profile, one for each binary. All processes share one address space, in which a
 * binary is at its link address if that is free.
 */
#ifndef KSCOPE_WRITE_PPROF_MAPS_H
#define KSCOPE_WRITE_PPROF_MAPS_H

#include "base/hash.h"
#include "model/world.h"

struct pprof_map {
	uint32_t file;		      /* handle */
	uint32_t image;		      /* 0: only the binary's name is known, and no addresses */
	bool known;		      /* it has a function whose name is not made up */
	uint64_t start, last, offset; /* as linked; `last` is inclusive */
	uint64_t moved;		      /* how far the place is above that */
};

struct pprof_maps {
	struct world *world;
	struct pprof_map *all; /* [0] is none */
	size_t nr, cap;
	struct hash index;
};

void pprof_maps_init(struct pprof_maps *maps, struct world *world);
void pprof_maps_release(struct pprof_maps *maps);
/* Makes the frame a part of its mapping. Call this for all frames, then place them. */
void pprof_maps_add(struct pprof_maps *maps, uint32_t frame);
void pprof_maps_place(struct pprof_maps *maps);
/* The index of a frame's mapping; 0: none. */
uint32_t pprof_maps_find(const struct pprof_maps *maps, uint32_t frame);
/* The address of a frame; for a caller, that of its call instruction. 0: none. */
uint64_t pprof_maps_address(const struct pprof_maps *maps, uint32_t frame);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * unwind: the user part of a call chain, from registers and a copy of the stack, as perf record
 * --call-graph dwarf keeps them. The rules are those of .eh_frame and .debug_frame (libdw reads
 * them); where a binary has none the frame pointer is followed. x86-64 and arm64.
 *
 * Built without libdw it leaves samples as they are, and says so once.
 */
#ifndef KSCOPE_PASS_UNWIND_H
#define KSCOPE_PASS_UNWIND_H

#include <stdbool.h>

#include "model/world.h"

struct unwind_image;
struct Dwarf_Frame_s;

struct unwind { /* zeroed but for the world: ready */
	struct world *world;
	struct unwind_image *images; /* by the image's handle */
	size_t nr_images;
	struct Dwarf_Frame_s **frames; /* rules, once for every address; [0] is none */
	size_t nr_frames, cap_frames;
	struct hash frame_index; /* (image, address) to frames */
	uint64_t *ips;		 /* the chain that was lent with the last sample */
	size_t cap_ips;
	bool told;
};

/*
 * Completes the chain of a sample that has ev->sample.state. Before the world changes: the maps
 * have to be those of the moment. What it lends stays until the next call.
 */
void unwind_sample(struct unwind *unwind, struct event *ev);
void unwind_release(struct unwind *unwind);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * unwind: the call chain from registers and a copy of the stack. perf record --call-graph dwarf
 * keeps them of the user's side; the QEMU plugin keeps them of whatever ran, kernels included.
 *
 * How is `method`, or, with UNWIND_AUTO, what the binary has, frame by frame: Linux's ORC tables,
 * else the rules of .eh_frame and .debug_frame, else frame pointers. Chains of a kernel go through
 * interrupts and system calls and end with the address of the user's code that was interrupted.
 * x86-64 and arm64; of whole states also i386, arm and RISC-V.
 *
 * Built without libdw it follows frame pointers only.
 */
#ifndef KSCOPE_UNWIND_UNWIND_H
#define KSCOPE_UNWIND_UNWIND_H

#include <stdbool.h>

#include "base/mem.h"
#include "format.h"
#include "model/world.h"

struct spot;

struct unwind_count {
	uint64_t chains; /* that were unwound */
	uint64_t ended;	 /* of them, those that reached the root: where a thread began */
};

struct unwind { /* zeroed but for the world and the method: ready */
	struct world *world;
	enum unwind_method method;
	/* By where the pc was; elsewhere: in no binary that is known, such as firmware. */
	struct unwind_count kernel, user, elsewhere;

	struct spot **spots; /* once for every address; [0] is none */
	struct arena arena;  /* they are in here */
	size_t nr_spots, cap_spots;
	struct hash spot_index; /* (offset, image) to spots */
	struct cfi_image *cfis; /* by the image's handle */
	size_t nr_cfis;
	struct orc_table *orcs; /* likewise */
	size_t nr_orcs;
	uint64_t *ips; /* the chain that was lent with the last event */
	size_t cap_ips;
	bool told;
};

/*
 * Completes the chain of a sample, or of an allocation, that has a state. Before the world changes:
 * the maps have to be those of the moment. What it lends stays until the next call.
 */
void unwind_event(struct unwind *unwind, struct event *ev);
void unwind_release(struct unwind *unwind);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * unwind: computes the call chain from registers and a copy of the stack. perf record --call-graph
 * dwarf records them for user code; the QEMU plugin for any code, kernels included.
 *
 * UNWIND_AUTO uses the best method that the binary supports, frame by frame: Linux's ORC tables,
 * else the rules of .eh_frame and .debug_frame, else those of .ARM.exidx, else frame pointers. Kernel
 * chains continue through interrupts and system calls and end at the address of the interrupted user
 * code. Supports x86-64 and arm64; for states with `whole` set also i386, arm and RISC-V.
 *
 * Without libdw it only follows frame pointers.
 */
#ifndef KSCOPE_UNWIND_UNWIND_H
#define KSCOPE_UNWIND_UNWIND_H

#include <stdbool.h>

#include "base/mem.h"
#include "format.h"
#include "model/world.h"

struct spot;

enum unwind_method { UNWIND_AUTO, UNWIND_FP, UNWIND_CFI, UNWIND_ORC };

extern const struct option_table unwind_table; /* into struct unwind */

struct unwind_count {
	uint64_t chains; /* unwound */
	uint64_t ended;	 /* those that reached the root, where a thread began */
};

struct unwind { /* to initialize, zero it and set world and method */
	struct world *world;
	enum unwind_method method;
	/* By where the pc was; elsewhere: in no known binary, for instance in firmware. */
	struct unwind_count kernel, user, elsewhere;

	struct spot **spots; /* one per address; [0] is none */
	struct arena arena;  /* holds the spots */
	size_t nr_spots, cap_spots;
	struct hash spot_index; /* (offset, image) to spots */
	struct cfi_image *cfis; /* by the image's handle */
	size_t nr_cfis;
	struct orc_table *orcs; /* likewise */
	size_t nr_orcs;
	struct exidx_table *exidxs; /* likewise */
	size_t nr_exidxs;
	uint64_t *ips; /* the chain of the last event */
	size_t cap_ips;
	bool used; /* there was something to unwind */
	bool warned;
};

/*
 * Completes the chain of a sample or an allocation that has a state, or of a sample with a `link`. Call it before applying later
 * events: it uses the maps of the world as they are now. The chain is valid until the next call.
 */
void unwind_event(struct unwind *unwind, struct event *ev);
void unwind_release(struct unwind *unwind);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * frame: a code location, stored once however many samples contain it, and the functions there,
 * innermost inlined one first, looked up on first use (frame_symbols() in world.h).
 */
#ifndef KSCOPE_MODEL_FRAME_H
#define KSCOPE_MODEL_FRAME_H

#include <stdbool.h>
#include <stdint.h>

#include "base/hash.h"
#include "model/strtab.h"

enum frame_flags {
	FRAME_RETURN = 1, /* a return address: the call is just before it */
	FRAME_KERNEL = 2,
	FRAME_NAMED = 4,    /* the data has a name: addr is its handle, image the binary's name */
	FRAME_UNMAPPED = 8, /* no map is known: addr is as sampled, image is the space */
	FRAME_FUNCTION =
		16, /* the start of a function, for all of its code: none is inlined there */
};

struct symbol {
	uint32_t name, file; /* handles */
	uint32_t line;
	bool inlined;	/* into the next symbol */
	bool unknown;	/* the name was made up from the address */
	bool label;	/* in assembly: a symbol without a size, in a table where others have one */
	uint64_t start; /* of the enclosing function that is not inlined */
};

struct frame {
	uint64_t addr; /* offset in the file, or the ELF's own address if image->as_linked */
	uint32_t image;
	uint32_t symbols;    /* index of the first; valid if nr_symbols */
	uint16_t nr_symbols; /* 0: not looked up yet */
	uint8_t flags;
};

struct frames {
	struct strtab *strings; /* borrowed */
	struct frame *all;	/* [0] is none */
	struct symbol *symbols;
	size_t nr, cap, nr_symbols, cap_symbols;
	struct hash index;
};

void frames_init(struct frames *frames, struct strtab *strings);
void frames_release(struct frames *frames);
uint32_t frame_intern(struct frames *frames, uint32_t image, uint64_t addr, uint8_t flags);
/* For readers of data that has names instead of addresses; binary may be 0. */
uint32_t frame_named(struct frames *frames, uint32_t name, uint32_t binary, uint8_t flags);

#endif

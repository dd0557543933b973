/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Interfaces between the files of the uftrace writer.
 *
 *	uftrace_place	an address for each function, and the files that name it
 */
#ifndef KSCOPE_WRITE_UFTRACE_H
#define KSCOPE_WRITE_UFTRACE_H

#include "base/buf.h"
#include "base/hash.h"
#include "format.h"

struct place_symbol {
	uint64_t offset; /* from the start of the window */
	uint32_t name;
};

struct place_window { /* a binary, or a part of it, in uftrace's address space */
	uint32_t image;
	bool named;		       /* image is not an image, but a name or a space */
	const struct symfile *symfile; /* of the image; NULL: none */
	uint64_t low, size;	       /* of the binary's own addresses */
	uint64_t start;		       /* what uftrace has instead of `low` */
	char *name;		       /* unique */
	struct place_symbol *symbols;
	size_t nr, cap;
};

struct places {
	struct world *world;
	struct place_window *windows;
	size_t nr, cap;
	uint64_t *addresses; /* of functions; [0] none */
	size_t nr_addresses, cap_addresses;
	struct hash by_frame, by_address, by_name;
	uint64_t free; /* no window from here on, except those at their own addresses */
};

/* The address of a frame's function; UINT64_MAX if there is no room. */
uint64_t place_frame(struct places *places, uint32_t frame);
/* Writes the maps and the symbols. */
void places_write(struct places *places, struct folder *folder, const char *map);
void places_release(struct places *places);
/* Appends s as one word of a line: without blanks, slashes, quotes and control characters. */
void uftrace_add_word(struct buf *buf, const char *s);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * footprint: how many lines of the instruction cache, of 64 bytes, a slice touches. Slices are numbered in
 * the order of their begins. A line counts for all open slices that began after the task last touched it.
 */
#ifndef KSCOPE_PASS_FOOTPRINT_H
#define KSCOPE_PASS_FOOTPRINT_H

#include <stddef.h>
#include <stdint.h>

#define FOOTPRINT_LINE 6 /* log2 of its size */

struct footprint_line {
	uint64_t line; /* its number, from 1 on; 0: the slot is free */
	uint64_t seen; /* the number of the innermost slice when it was last touched */
};

struct footprint { /* of a task; zeroed: empty */
	struct footprint_line *slots;
	size_t nr, mask;
};

/* The task touches a line while this slice is the innermost one. Returns what that was the last time. */
uint64_t footprint_touch(struct footprint *footprint, uint64_t line, uint64_t slice);
void footprint_release(struct footprint *footprint);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * slide: finds how far code was relocated as a whole, by voting. Each address that was seen votes
 * for every distance that would make it the first byte of a function. The true distance gets a
 * vote from every function entry among them, a wrong one only by coincidence.
 */
#ifndef KSCOPE_BASE_SLIDE_H
#define KSCOPE_BASE_SLIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct slide {
	uint64_t by;	    /* add this to a function's link address */
	uint64_t hits;	    /* addresses that are a function's first byte at this distance */
	uint64_t runner_up; /* hits of the second best distance */
};

/*
 * starts and seen are sorted and unique; distances are multiples of `step`, a power of two. False:
 * no clear winner; *slide then shows how close it was. With more than a few million votes to
 * count, only a regular subset of the addresses votes.
 */
bool slide_find(const uint64_t *starts, size_t nr_starts, const uint64_t *seen, size_t nr_seen,
		uint64_t step, struct slide *slide);

/* Sorts and removes duplicates; returns how many are left. */
size_t sort_unique(uint64_t *values, size_t nr);

#endif

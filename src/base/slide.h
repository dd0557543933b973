/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * slide: how far code was moved as a whole, by votes. Every address that was seen speaks for each
 * distance that would make it the first byte of a function; the true distance gets a vote from
 * every function entry among them, a false one only by accident.
 */
#ifndef KSCOPE_BASE_SLIDE_H
#define KSCOPE_BASE_SLIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct slide {
	uint64_t by;	    /* to add to where a function was linked */
	uint64_t hits;	    /* addresses that are then the first byte of one */
	uint64_t runner_up; /* the hits of the next best distance */
};

/*
 * Starts and seen are sorted and without repeats; distances are multiples of `step`, a power of
 * two. False: there is no clear winner; *slide then tells how close it was. Where there are more
 * than some millions of distances to count, only every so many-th address is asked.
 */
bool slide_find(const uint64_t *starts, size_t nr_starts, const uint64_t *seen, size_t nr_seen,
		uint64_t step, struct slide *slide);

/* Sorts, and removes repeats; returns how many are left. */
size_t sort_unique(uint64_t *values, size_t nr);

#endif

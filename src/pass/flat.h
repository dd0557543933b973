/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * flat: computes self and total of each function, binary, task or CPU from a tally. A recursive
 * function counts once in its total.
 */
#ifndef KSCOPE_PASS_FLAT_H
#define KSCOPE_PASS_FLAT_H

#include "pass/tally.h"

enum flat_by { FLAT_FUNCTION, FLAT_BINARY, FLAT_TASK, FLAT_CPU };
enum flat_sort { FLAT_SELF, FLAT_TOTAL, FLAT_NAME };

struct flat_row {
	uint32_t name;	      /* handle */
	uint32_t binary;      /* of a function: handle or 0 */
	uint32_t pid;	      /* of a task */
	uint64_t self, total; /* weight */
	uint64_t samples;     /* self */
};

struct flat {
	struct flat_row *rows;
	size_t nr, cap;
	struct hash index;
	uint64_t weight, samples; /* of everything */
};

void flat_make(struct flat *flat, const struct tally *tally, enum flat_by by,
	       const struct tally_options *options);
/* The row with the same key; NULL: none. Only before the rows are sorted. */
const struct flat_row *flat_find(const struct flat *flat, const struct flat_row *like);
void flat_sort_rows(struct flat *flat, const struct strtab *names, enum flat_sort sort);
void flat_release(struct flat *flat);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * pages: finds which of several binaries a page of code is from, by its first bytes. Ignores
 * padding, and pages that occur more than once.
 *
 * An object file, such as a kernel module, has no pages yet: the loader concatenates its sections
 * and relocates them. Its sections are searched for the bytes, ignoring relocated ones.
 */
#ifndef KSCOPE_PLACE_PAGES_H
#define KSCOPE_PLACE_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"
#include "sym/sym.h"

#define PAGE_HEAD 64 /* bytes that are compared */

struct page_home {
	uint32_t binary; /* the argument of pages_add() */
	uint32_t segment;
	uint64_t vaddr; /* in the binary */
	bool twice;	/* ambiguous: occurs more than once */
};

struct loose { /* a code section of an object file */
	uint32_t binary, segment;
	uint64_t vaddr;
	size_t len;
	uint8_t *code, *mask; /* mask: 0xff, but both 0 where the loader may change the code */
};

struct pages { /* to initialize, zero it */
	struct page_home *homes;
	size_t nr, cap;
	struct hash index; /* by the bytes */
	struct loose *loose;
	size_t nr_loose, cap_loose;
};

void pages_add(struct pages *pages, uint32_t binary, const struct symfile *symfile);
/* False: in none of the binaries, or ambiguous. */
bool pages_find(const struct pages *pages, const uint8_t *bytes, size_t len,
		struct page_home *home);
void pages_release(struct pages *pages);

#endif

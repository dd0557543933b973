/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * pages: which of several binaries a page of code is from, by its first bytes. Only what occurs
 * once is an answer: padding, and pages that two binaries share, are none.
 *
 * An object file, such as a kernel's module, has no pages yet: the loader puts its sections one
 * behind the other and fills in addresses. It is searched for the bytes but for those.
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
	uint32_t binary; /* as pages_add() was told */
	uint32_t segment;
	uint64_t vaddr; /* in the binary */
	bool twice;
};

struct loose { /* a section of code in an object file */
	uint32_t binary, segment;
	uint64_t vaddr;
	size_t len;
	uint8_t *code, *mask; /* mask: 0xff where the loader leaves the code alone; else both 0 */
};

struct pages { /* zeroed: ready */
	struct page_home *homes;
	size_t nr, cap;
	struct hash index; /* by the bytes */
	struct loose *loose;
	size_t nr_loose, cap_loose;
};

void pages_add(struct pages *pages, uint32_t binary, const struct symfile *symfile);
/* False: it is of none of them, or could be of several. */
bool pages_find(const struct pages *pages, const uint8_t *bytes, size_t len,
		struct page_home *home);
void pages_release(struct pages *pages);

#endif

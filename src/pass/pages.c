// SPDX-License-Identifier: GPL-2.0-or-later
#include "pass/pages.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define PAGE 4096
#define PAGES_MAX ((size_t)1 << 20) /* of all binaries: 4 GB of code */

/* Filled with one value, or a short pattern: padding, which is alike everywhere. */
static bool is_filling(const uint8_t *bytes)
{
	for (size_t period = 1; period <= 8; period *= 2) {
		if (!memcmp(bytes, bytes + period, PAGE_HEAD - period))
			return true;
	}
	return false;
}

static struct hash_key key_of(const uint8_t *bytes)
{
	uint64_t words[PAGE_HEAD / 8];

	memcpy(words, bytes, sizeof(words));
	return hash_words(words, PAGE_HEAD / 8, 0);
}

static void add_page(struct pages *pages, const uint8_t *bytes, struct page_home home)
{
	uint32_t *slot;

	if (is_filling(bytes) || pages->nr >= PAGES_MAX)
		return;
	slot = hash_at(&pages->index, key_of(bytes));
	if (*slot) {
		pages->homes[*slot - 1].twice = true;
		return;
	}
	GROW(pages->homes, pages->nr + 1, pages->cap);
	pages->homes[pages->nr++] = home;
	*slot = (uint32_t)pages->nr;
}

void pages_add(struct pages *pages, uint32_t binary, const struct symfile *symfile)
{
	size_t nr;
	const struct sym_segment *segments = symfile_segments(symfile, &nr);

	for (size_t i = 0; i < nr; i++) {
		uint64_t first = segments[i].vaddr & ~(uint64_t)(PAGE - 1);
		uint64_t len = segments[i].filesz + (segments[i].vaddr - first);

		if (len / PAGE > PAGES_MAX || first + len < first)
			continue;
		for (uint64_t at = 0; at + PAGE_HEAD <= len; at += PAGE) {
			const uint8_t *bytes = symfile_code(symfile, first + at, PAGE_HEAD);
			struct page_home home = {
				.binary = binary,
				.segment = (uint32_t)i,
				.vaddr = first + at,
			};

			if (bytes)
				add_page(pages, bytes, home);
			else if (at) /* the file ends before it should */
				break;
		}
	}
}

const struct page_home *pages_find(const struct pages *pages, const uint8_t *bytes, size_t len)
{
	uint32_t found;

	if (len < PAGE_HEAD)
		return NULL;
	found = hash_get(&pages->index, key_of(bytes));
	return found && !pages->homes[found - 1].twice ? &pages->homes[found - 1] : NULL;
}

void pages_release(struct pages *pages)
{
	free(pages->homes);
	hash_release(&pages->index);
	memset(pages, 0, sizeof(*pages));
}

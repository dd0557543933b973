// SPDX-License-Identifier: GPL-2.0-or-later
#include "place/pages.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "base/le.h"
#include "base/mem.h"

#define PAGE 4096
#define LOOSE_MAX ((uint64_t)64 << 20)
#define KNOWN_MIN 32		    /* bytes that have to match */
#define SECTION_ALIGN 4		    /* at least */
#define PAGES_MAX ((size_t)1 << 20) /* in all binaries: 4 GB of code */

/* Filled with one value or a short pattern: padding, which looks the same everywhere. */
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

static void add_segment(struct pages *pages, uint32_t binary, const struct symfile *symfile,
			const struct sym_segment *segment, uint32_t number)
{
	uint64_t first = segment->vaddr & ~(uint64_t)(PAGE - 1);
	uint64_t len = segment->filesz + (segment->vaddr - first);

	if (len / PAGE > PAGES_MAX || first + len < first)
		return;
	for (uint64_t at = 0; at + PAGE_HEAD <= len; at += PAGE) {
		const uint8_t *bytes = symfile_code(symfile, first + at, PAGE_HEAD);
		struct page_home home = {
			.binary = binary,
			.segment = number,
			.vaddr = first + at,
		};

		if (bytes)
			add_page(pages, bytes, home);
		else if (at) /* the file is cut short */
			break;
	}
}

/* ---- object files ---- */

/*
 * The bytes that a relocation may change: mostly 4. On x86 also the byte before them, because Linux
 * turns calls into jumps or nops; on RISC-V one relocation covers two instructions.
 */
struct patch {
	uint8_t before, len;
};

static struct patch patch_of(const struct symfile *symfile)
{
	switch (symfile_machine(symfile)) {
	case EM_386:
	case EM_X86_64: return (struct patch){ 1, 4 };
	case EM_RISCV: return (struct patch){ 0, 8 };
	default: return (struct patch){ 0, 4 };
	}
}

static void hide_patches(struct loose *loose, const struct symfile *symfile)
{
	struct patch patch = patch_of(symfile);
	size_t nr;
	uint64_t *patches = symfile_patches(symfile, &nr);

	for (size_t i = 0; i < nr; i++) {
		uint64_t at = patches[i] - loose->vaddr;

		if (patches[i] < loose->vaddr || at >= loose->len)
			continue;
		for (uint64_t k = at < patch.before ? 0 : at - patch.before;
		     k < at + patch.len && k < loose->len; k++)
			loose->code[k] = loose->mask[k] = 0;
	}
	free(patches);
}

static void add_loose(struct pages *pages, uint32_t binary, const struct symfile *symfile,
		      const struct sym_segment *segment, uint32_t number)
{
	const uint8_t *code = segment->filesz <= LOOSE_MAX
				      ? symfile_code(symfile, segment->vaddr, segment->filesz)
				      : NULL;
	struct loose loose = {
		.binary = binary,
		.segment = number,
		.vaddr = segment->vaddr,
		.len = segment->filesz,
	};

	if (!code || segment->filesz < PAGE_HEAD)
		return;
	loose.code = xmalloc(loose.len);
	loose.mask = xmalloc(loose.len);
	memcpy(loose.code, code, loose.len);
	memset(loose.mask, 0xff, loose.len);
	hide_patches(&loose, symfile);
	GROW(pages->loose, pages->nr_loose + 1, pages->cap_loose);
	pages->loose[pages->nr_loose++] = loose;
}

static bool looks_like(const struct loose *loose, size_t at, const uint64_t *words)
{
	unsigned known = 0;

	for (size_t i = 0; i < PAGE_HEAD / 8; i++) {
		uint64_t code = le64_at(loose->code + at + 8 * i);
		uint64_t mask = le64_at(loose->mask + at + 8 * i);

		if ((words[i] & mask) != code)
			return false;
		known += (unsigned)__builtin_popcountll(mask) / 8;
	}
	return known >= KNOWN_MIN;
}

/* Returns how many places match; *home is the last one. */
static size_t search(const struct loose *loose, const uint64_t *words, struct page_home *home)
{
	size_t found = 0;

	for (size_t at = 0; at + PAGE_HEAD <= loose->len; at += SECTION_ALIGN) {
		if (!looks_like(loose, at, words))
			continue;
		found++;
		*home = (struct page_home){
			.binary = loose->binary,
			.segment = loose->segment,
			.vaddr = loose->vaddr + at,
		};
	}
	return found;
}

static bool search_all(const struct pages *pages, const uint8_t *bytes, struct page_home *home)
{
	uint64_t words[PAGE_HEAD / 8];
	size_t found = 0;

	memcpy(words, bytes, sizeof(words));
	for (size_t i = 0; i < pages->nr_loose; i++)
		found += search(&pages->loose[i], words, home);
	return found == 1;
}

/* ---- all ---- */

void pages_add(struct pages *pages, uint32_t binary, const struct symfile *symfile)
{
	size_t nr;
	const struct sym_segment *segments = symfile_segments(symfile, &nr);

	for (size_t i = 0; i < nr; i++) {
		if (symfile_is_object(symfile))
			add_loose(pages, binary, symfile, &segments[i], (uint32_t)i);
		else
			add_segment(pages, binary, symfile, &segments[i], (uint32_t)i);
	}
}

bool pages_find(const struct pages *pages, const uint8_t *bytes, size_t len, struct page_home *home)
{
	uint32_t found;

	if (len < PAGE_HEAD || is_filling(bytes))
		return false;
	found = hash_get(&pages->index, key_of(bytes));
	if (!found)
		return search_all(pages, bytes, home);
	*home = pages->homes[found - 1];
	return !home->twice;
}

void pages_release(struct pages *pages)
{
	for (size_t i = 0; i < pages->nr_loose; i++) {
		free(pages->loose[i].code);
		free(pages->loose[i].mask);
	}
	free(pages->loose);
	free(pages->homes);
	hash_release(&pages->index);
	memset(pages, 0, sizeof(*pages));
}

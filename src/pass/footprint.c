// SPDX-License-Identifier: GPL-2.0-or-later
#include "pass/footprint.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define FIRST_SIZE 64

static struct footprint_line *slot_of(const struct footprint *f, uint64_t line)
{
	size_t at = (size_t)(line * 0x9e3779b97f4a7c15ull >> 20) & f->mask;

	while (f->slots[at].line && f->slots[at].line != line)
		at = (at + 1) & f->mask;
	return &f->slots[at];
}

static void grow(struct footprint *f)
{
	struct footprint old = *f;
	size_t size = old.slots ? 2 * (old.mask + 1) : FIRST_SIZE;

	f->slots = xcalloc(size, sizeof(*f->slots));
	f->mask = size - 1;
	for (size_t i = 0; old.slots && i <= old.mask; i++) {
		if (old.slots[i].line)
			*slot_of(f, old.slots[i].line) = old.slots[i];
	}
	free(old.slots);
}

uint64_t footprint_touch(struct footprint *f, uint64_t line, uint64_t slice)
{
	struct footprint_line *slot;
	uint64_t seen;

	if (!f->slots || f->nr * 4 > f->mask * 3)
		grow(f);
	slot = slot_of(f, line + 1);
	if (!slot->line) {
		slot->line = line + 1;
		f->nr++;
	}
	seen = slot->seen;
	slot->seen = slice;
	return seen;
}

void footprint_release(struct footprint *f)
{
	free(f->slots);
	memset(f, 0, sizeof(*f));
}

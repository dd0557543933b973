// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * code: records the first bytes of each page of code that was sampled, which identify its binary. It
 * records a page again if the bytes change. A small table holds the known pages; a page that another
 * one has replaced there is recorded again.
 */
#include <stdlib.h>
#include <string.h>

#include "sample.h"

#define TABLE_SIZE 2048

struct page {
	uint64_t page, space, digest;
};

static _Atomic(struct page *) tables[WIRE_CPUS_MAX];

static uint64_t mix(uint64_t hash, uint64_t value)
{
	hash = (hash ^ value) * 0x9fb21c651e98df25;
	return hash ^ hash >> 32;
}

static struct page *table_of(unsigned cpu)
{
	struct page *table = atomic_load(&tables[cpu]);

	if (!table) {
		table = calloc(TABLE_SIZE, sizeof(*table));
		atomic_store(&tables[cpu], table); /* only the thread of the vCPU runs this */
	}
	return table;
}

static void put_code(struct track *track, const struct regs *regs, uint64_t page,
		     const uint8_t *bytes, size_t size)
{
	struct wire_code code = { 0, regs->space, page, regs->level, bytes, size };
	size_t room = 2 * WIRE_SAMPLE_HEAD + WIRE_CODE_SIZE;
	uint8_t *at = track_begin(track, room);
	struct wire w = wire_into(at, room);

	if (!at)
		return;
	code.time = sample_now();
	wire_code(&w, WIRE_CHUNK_CODE, &code);
	track_end(track, w.full ? at : w.at);
}

void code_note(struct track *track, const struct regs_view *view, const struct regs *regs)
{
	uint64_t page = regs->pc & ~(uint64_t)(REGS_PAGE - 1);
	/* The kernel is the same in every address space. */
	uint64_t space = regs->level == WIRE_LEVEL_USER ? regs->space : 0, digest = 1;
	struct page *table = table_of(track->cpu), *known;
	uint64_t bytes[WIRE_CODE_SIZE / 8];

	if (!table || regs_memory(view, page, bytes, sizeof(bytes)) != sizeof(bytes))
		return;
	for (size_t i = 0; i < WIRE_CODE_SIZE / 8; i++)
		digest = mix(digest, bytes[i]);
	known = &table[mix(mix(regs->level, space), page) % TABLE_SIZE];
	if (known->digest == digest && known->page == page && known->space == space)
		return;
	*known = (struct page){ page, space, digest };
	put_code(track, regs, page, (const uint8_t *)bytes, sizeof(bytes));
}

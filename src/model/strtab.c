// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/strtab.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

void strtab_init(struct strtab *st)
{
	memset(st, 0, sizeof(*st));
	st->mask = 255;
	st->slots = xcalloc(st->mask + 1, sizeof(*st->slots));
	GROW(st->entries, 1, st->cap);
	st->entries[0] = (struct strtab_entry){ .text = "" };
	st->nr = 1;
}

void strtab_release(struct strtab *st)
{
	arena_release(&st->arena);
	free(st->entries);
	free(st->slots);
	memset(st, 0, sizeof(*st));
}

static size_t find_slot(const struct strtab *st, const char *text, size_t len, uint32_t hash)
{
	size_t i = hash & st->mask;

	for (; st->slots[i]; i = (i + 1) & st->mask) {
		const struct strtab_entry *entry = &st->entries[st->slots[i]];

		if (entry->hash == hash && entry->len == len && !memcmp(entry->text, text, len))
			break;
	}
	return i;
}

static void grow_slots(struct strtab *st)
{
	free(st->slots);
	st->mask = st->mask * 2 + 1;
	st->slots = xcalloc(st->mask + 1, sizeof(*st->slots));
	for (size_t handle = 1; handle < st->nr; handle++) {
		size_t i = st->entries[handle].hash & st->mask;

		while (st->slots[i])
			i = (i + 1) & st->mask;
		st->slots[i] = (uint32_t)handle;
	}
}

uint32_t str_intern(struct strtab *st, const char *text, size_t len)
{
	uint32_t hash = (uint32_t)hash_bytes(text, len);
	size_t i = find_slot(st, text, len, hash);

	if (st->slots[i])
		return st->slots[i];
	GROW(st->entries, st->nr + 1, st->cap);
	st->entries[st->nr] = (struct strtab_entry){
		.text = arena_strndup(&st->arena, text, len),
		.len = (uint32_t)len,
		.hash = hash,
	};
	st->slots[i] = (uint32_t)st->nr++;
	if (st->nr * 2 > st->mask)
		grow_slots(st);
	return (uint32_t)(st->nr - 1);
}

uint32_t str_intern_z(struct strtab *st, const char *text)
{
	return str_intern(st, text, strlen(text));
}

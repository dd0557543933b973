/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * strtab: stores every string once. Handles are dense, start at 1 and stay valid; 0 is "none" and
 * reads as "". The table owns the text.
 */
#ifndef KSCOPE_MODEL_STRTAB_H
#define KSCOPE_MODEL_STRTAB_H

#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"

struct strtab_entry {
	const char *text;
	uint32_t len;
	uint32_t hash;
};

struct strtab {
	struct arena arena;
	struct strtab_entry *entries; /* [0] is "none" */
	uint32_t *slots;	      /* open addressing, by hash; 0: free */
	size_t nr, cap, mask;
};

void strtab_init(struct strtab *st);
void strtab_release(struct strtab *st);
uint32_t str_intern(struct strtab *st, const char *text, size_t len);
uint32_t str_intern_z(struct strtab *st, const char *text);

static inline const char *str_text(const struct strtab *st, uint32_t handle)
{
	return st->entries[handle].text;
}

static inline size_t str_len(const struct strtab *st, uint32_t handle)
{
	return st->entries[handle].len;
}

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* store_parts: what the files of base/store share. */
#ifndef KSCOPE_BASE_STORE_PARTS_H
#define KSCOPE_BASE_STORE_PARTS_H

#include "base/store.h"

struct hash_key store_key_of(enum store_key_kind kind, const char *text);
/* The result is valid until the next call. */
struct store_file *store_add_file(struct store *store, const char *path);
void store_add_key(struct store *store, size_t index, enum store_key_kind kind, const char *text);

#endif

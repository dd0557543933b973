/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hash: hash functions, and an open-addressing map from a 128-bit key to a handle. Every table of
 * the model fits: (image, address), (parent, frame), the 128-bit digest of a raw stack.
 * doc/dependencies.md says why it is not a library.
 */
#ifndef KSCOPE_BASE_HASH_H
#define KSCOPE_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

struct hash_key {
	uint64_t a, b;
};

struct hash_entry {
	struct hash_key key;
	uint32_t value; /* 0: the slot is free */
};

struct hash {
	struct hash_entry *slots;
	size_t nr, mask;
};

uint64_t hash_bytes(const void *data, size_t len);
/* A digest wide enough to be used in place of the words themselves. */
struct hash_key hash_words(const uint64_t *words, size_t nr, uint64_t seed);

/* Returns the slot of the value. A new key's slot holds 0: store a value before the next call. */
uint32_t *hash_at(struct hash *hash, struct hash_key key);
uint32_t hash_get(const struct hash *hash, struct hash_key key); /* 0 if absent */
void hash_release(struct hash *hash);

#endif

// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/hash.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/wide.h"

#define K1 0x9e3779b97f4a7c15ULL
#define K2 0xe7037ed1a0b428dbULL

static inline uint64_t fold(uint64_t a, uint64_t b)
{
	struct wide product = wide_product(a, b);

	return product.low ^ product.high;
}

static inline uint64_t load(const uint8_t *p)
{
	uint64_t word;

	memcpy(&word, p, sizeof(word));
	return word;
}

/* Up to eight bytes: four or more take two loads, which may overlap. */
static inline uint64_t load_short(const uint8_t *p, size_t len)
{
	uint32_t first, last;

	if (len < 4)
		return len ? p[0] | (uint64_t)p[len / 2] << 8 | (uint64_t)p[len - 1] << 16 : 0;
	memcpy(&first, p, sizeof(first));
	memcpy(&last, p + len - sizeof(last), sizeof(last));
	return first | (uint64_t)last << 32;
}

uint64_t hash_bytes(const void *data, size_t len)
{
	const uint8_t *p = data;
	uint64_t h = len * K2;

	for (; len > 16; p += 16, len -= 16)
		h = fold(load(p) ^ K1, load(p + 8) ^ h);
	if (len > 8)
		return fold(fold(load(p) ^ K1, load(p + len - 8) ^ h), K2);
	return fold(fold(load_short(p, len) ^ K1, h ^ K2), K1);
}

struct hash_key hash_words(const uint64_t *words, size_t nr, uint64_t seed)
{
	uint64_t a = seed ^ K1, b = nr ^ K2;

	for (size_t i = 0; i < nr; i++) {
		a = fold(a ^ words[i], K2);
		b = (b ^ (words[i] * K1)) * K2;
		b ^= b >> 29;
	}
	return (struct hash_key){ a, b };
}

static inline size_t slot_of(const struct hash *hash, struct hash_key key)
{
	return (size_t)fold(key.a ^ K1, key.b ^ K2) & hash->mask;
}

static struct hash_entry *find(const struct hash *hash, struct hash_key key)
{
	size_t i = slot_of(hash, key);

	while (hash->slots[i].value &&
	       (hash->slots[i].key.a != key.a || hash->slots[i].key.b != key.b))
		i = (i + 1) & hash->mask;
	return &hash->slots[i];
}

static void grow(struct hash *hash)
{
	struct hash old = *hash;
	size_t size = old.slots ? (old.mask + 1) * 2 : 64;

	hash->slots = xcalloc(size, sizeof(*hash->slots));
	hash->mask = size - 1;
	for (size_t i = 0; old.slots && i <= old.mask; i++) {
		if (old.slots[i].value)
			*find(hash, old.slots[i].key) = old.slots[i];
	}
	free(old.slots);
}

uint32_t *hash_at(struct hash *hash, struct hash_key key)
{
	struct hash_entry *entry;

	if (!hash->slots || hash->nr * 3 >= (hash->mask + 1) * 2)
		grow(hash);
	entry = find(hash, key);
	if (!entry->value) {
		entry->key = key;
		hash->nr++;
	}
	return &entry->value;
}

uint32_t hash_get(const struct hash *hash, struct hash_key key)
{
	return hash->slots ? find(hash, key)->value : 0;
}

void hash_release(struct hash *hash)
{
	free(hash->slots);
	memset(hash, 0, sizeof(*hash));
}

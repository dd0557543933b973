// SPDX-License-Identifier: GPL-2.0-or-later
/* hasher: a protection domain that hashes forever. Only its addresses are used: it never runs. */
#include <stdint.h>

static uint8_t block[4096];
volatile uint64_t result;

static inline uint32_t rotate(uint32_t x, unsigned n)
{
	return x << n | x >> (32 - n);
}

__attribute__((noinline)) uint32_t mix_round(uint32_t h, uint32_t k)
{
	for (int i = 0; i < 8; i++)
		h = rotate(h ^ k, 13) * 5 + 0xe6546b64;
	return h;
}

__attribute__((noinline)) uint32_t hash_block(const uint8_t *data, unsigned len)
{
	uint32_t h = len;

	for (unsigned i = 0; i < len; i += 4)
		h = mix_round(h, data[i]) + 1;
	return h;
}

__attribute__((noinline)) void fill_block(uint32_t seed)
{
	for (unsigned i = 0; i < sizeof(block); i++) {
		seed = seed * 1664525 + 1013904223;
		block[i] = (uint8_t)(seed >> 24);
	}
}

void _start(void)
{
	for (uint32_t seed = 1;; seed++) {
		fill_block(seed);
		result += hash_block(block, sizeof(block));
	}
}

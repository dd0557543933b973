/* SPDX-License-Identifier: MIT */
/*
 * divide: numbers of 64 bits. On machines of 32 bits, compilers call a function of their library for that, which a
 * kernel need not have.
 */
#ifndef KSCOPE_DIVIDE_H
#define KSCOPE_DIVIDE_H

#include <stdint.h>

static inline uint64_t kscope_quotient(uint64_t number, uint64_t by)
{
#if UINTPTR_MAX > UINT32_MAX
	return number / by;
#else
	uint64_t quotient = 0;
	unsigned shift = 0;

	if (!(number >> 32) && !(by >> 32))
		return (uint32_t)number / (uint32_t)by;
	for (; by < number && !(by >> 63); shift++)
		by <<= 1;
	for (;; by >>= 1) {
		quotient = quotient << 1 | (number >= by);
		number -= number >= by ? by : 0;
		if (!shift--)
			return quotient;
	}
#endif
}

/* number * by / over, where the product of the last two fits 64 bits, but not that of the first two. */
static inline uint64_t kscope_scale(uint64_t number, uint64_t by, uint64_t over)
{
	uint64_t whole = kscope_quotient(number, over);

	return whole * by + kscope_quotient((number - whole * over) * by, over);
}

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* wide: products of 128 bits. Compilers for 32-bit machines have no type for them. */
#ifndef KSCOPE_BASE_WIDE_H
#define KSCOPE_BASE_WIDE_H

#include <stdint.h>

struct wide {
	uint64_t high, low;
};

static inline struct wide wide_product_by_parts(uint64_t a, uint64_t b)
{
	uint64_t a_low = (uint32_t)a, b_low = (uint32_t)b, a_high = a >> 32, b_high = b >> 32;
	uint64_t low = a_low * b_low;
	uint64_t middle = a_high * b_low + (low >> 32);
	uint64_t other = a_low * b_high + (uint32_t)middle;

	return (struct wide){ a_high * b_high + (middle >> 32) + (other >> 32),
			      other << 32 | (uint32_t)low };
}

static inline struct wide wide_product(uint64_t a, uint64_t b)
{
#ifdef __SIZEOF_INT128__
	__uint128_t product = (__uint128_t)a * b;

	return (struct wide){ (uint64_t)(product >> 64), (uint64_t)product };
#else
	return wide_product_by_parts(a, b);
#endif
}

/* Both for by < 64. Bits that do not fit are lost. */
static inline uint64_t wide_right(struct wide n, unsigned by)
{
	return by ? n.high << (64 - by) | n.low >> by : n.low;
}

static inline struct wide wide_left(uint64_t n, unsigned by)
{
	return (struct wide){ by ? n >> (64 - by) : 0, n << by };
}

/* UINT64_MAX if the quotient does not fit, or if there is none. */
static inline uint64_t wide_quotient(struct wide n, uint64_t by)
{
	uint64_t rest = n.high, quotient = 0;

	if (!n.high && by)
		return n.low / by;
	if (rest >= by)
		return UINT64_MAX;
	for (int bit = 63; bit >= 0; bit--) {
		uint64_t carry = rest >> 63;

		rest = rest << 1 | (n.low >> bit & 1);
		if (carry || rest >= by) {
			rest -= by;
			quotient |= (uint64_t)1 << bit;
		}
	}
	return quotient;
}

#endif

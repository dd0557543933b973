// SPDX-License-Identifier: GPL-2.0-or-later
/* base/wide: products and quotients of 128 bits, also as 32-bit machines compute them. */
#include "base/wide.h"
#include "test.h"

#define MAX UINT64_MAX

static const uint64_t numbers[] = { 0,		1,	     2,		 999,
				    0xffffffff, 0x100000000, 1000000000, 0x123456789abcdef0,
				    MAX / 2,	MAX };
#define NR (sizeof(numbers) / sizeof(*numbers))

static void test_products(void)
{
	struct wide most = wide_product_by_parts(MAX, MAX);
	bool same = true, back = true;

	for (size_t i = 0; i < NR * NR; i++) {
		uint64_t a = numbers[i / NR], b = numbers[i % NR];
		struct wide one = wide_product(a, b), other = wide_product_by_parts(a, b);

		same &= one.high == other.high && one.low == other.low;
		back &= !b || wide_quotient(other, b) == a;
	}
	check("a product of parts is the product", same);
	check("the largest product", most.high == MAX - 1 && most.low == 1);
	check("a quotient undoes a product", back);
}

static void test_quotients(void)
{
	check("a quotient is rounded down",
	      wide_quotient((struct wide){ 1, 5 }, 1u << 31) == 1ull << 33);
	check("a divisor with the highest bit",
	      wide_quotient((struct wide){ MAX - 1, 0 }, MAX) == MAX - 1);
	check("a quotient that does not fit", wide_quotient((struct wide){ 7, 0 }, 7) == MAX);
	check("a quotient by 0", wide_quotient((struct wide){ 0, 7 }, 0) == MAX);
}

static void test_shifts(void)
{
	struct wide left = wide_left(0x8000000000000001, 4);

	check("to the left", left.high == 8 && left.low == 16);
	check("to the right", wide_right(left, 4) == 0x8000000000000001);
	check("by 0", wide_right(wide_left(MAX, 0), 0) == MAX && !wide_left(MAX, 0).high);
}

int main(void)
{
	test_products();
	test_quotients();
	test_shifts();
	return test_result();
}

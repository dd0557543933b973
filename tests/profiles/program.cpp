// SPDX-License-Identifier: GPL-2.0-or-later
// program: functions for tests/kit/profiles.py: templates with a name of 10 kB, and inlined functions.
// It never runs: the profile that the tests read consists of addresses in it.
#define NOINLINE __attribute__((noinline))
#define INLINE __attribute__((always_inline)) inline

extern "C" {
NOINLINE int odd_quotes(int n);
NOINLINE int odd_emoji(int n);
NOINLINE int odd_separators(int n);
}

namespace very_long_name_of_a_namespace_that_many_kernels_would_not_have {
template <class A, class B> struct pair_of_types_that_are_pairs_themselves {};
template <class T, int depth> struct nest {
	using type = typename nest<pair_of_types_that_are_pairs_themselves<T, T>, depth - 1>::type;
};
template <class T> struct nest<T, 0> {
	using type = T;
};
template <class T> NOINLINE int of_type(int n)
{
	volatile int sum = 0;

	for (int i = 0; i < n; i++)
		sum = sum + odd_quotes(i);
	return sum;
}
}

static INLINE int mix(int a, int b)
{
	a ^= b << 7;
	a += b >> 3;
	return a * 0x01000193;
}

static INLINE int mix_twice(int a, int b)
{
	return mix(mix(a, b), b + 1);
}

NOINLINE int hash_all(const int *data, int n)
{
	volatile int result;
	int hash = 17;

	for (int i = 0; i < n; i++)
		hash = mix_twice(hash, data[i]);
	result = hash;
	return result;
}

NOINLINE int recurse(int n)
{
	volatile int below = n ? recurse(n - 1) : odd_emoji(n);

	return below + 1;
}

NOINLINE int thread_main(int n)
{
	using namespace very_long_name_of_a_namespace_that_many_kernels_would_not_have;
	int data[4] = { n, n + 1, n + 2, n + 3 };
	volatile int sum = hash_all(data, 4) + recurse(n) + odd_separators(n);

	sum = sum + of_type<nest<int, 7>::type>(n);
	return sum;
}

int main(int argc, char **)
{
	volatile int sum = thread_main(argc);

	return sum;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/* sorter: a protection domain that sorts forever, with a recursive function. */
#include <stdint.h>

#define COUNT 1024

static uint32_t numbers[COUNT];
volatile uint32_t smallest;

static inline void swap(uint32_t *a, uint32_t *b)
{
	uint32_t t = *a;

	*a = *b;
	*b = t;
}

__attribute__((noinline)) int partition(uint32_t *a, int low, int high)
{
	int at = low;

	for (int i = low; i < high; i++) {
		if (a[i] < a[high])
			swap(&a[i], &a[at++]);
	}
	swap(&a[at], &a[high]);
	return at;
}

__attribute__((noinline)) int quicksort(uint32_t *a, int low, int high)
{
	int middle, depth;

	if (low >= high)
		return 0;
	middle = partition(a, low, high);
	depth = quicksort(a, low, middle - 1);
	return depth + quicksort(a, middle + 1, high) + 1;
}

__attribute__((noinline)) void shuffle(uint32_t seed)
{
	for (unsigned i = 0; i < COUNT; i++) {
		seed = seed * 1664525 + 1013904223;
		numbers[i] = seed;
	}
}

void _start(void)
{
	for (uint32_t seed = 1;; seed++) {
		shuffle(seed);
		smallest = (uint32_t)quicksort(numbers, 0, COUNT - 1) + numbers[0];
	}
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Control flow that is hard to predict, so that its trace has several PSBs. libc and the program are far apart: the
 * last address in a packet may be in the other one. An argument says how many numbers to sort.
 */
#include <stdio.h>
#include <stdlib.h>

#define NUMBERS 3000

static unsigned numbers[NUMBERS];

static int compare(const void *one, const void *other)
{
	unsigned a = *(const unsigned *)one, b = *(const unsigned *)other;

	return (a > b) - (a < b);
}

/* Its jumps are all conditional, so no packet has an address until the next PSB. */
__attribute__((noinline)) static void insert(unsigned *all, int nr)
{
	for (int i = 1; i < nr; i++) {
		unsigned one = all[i];
		int at = i;

		for (; at && all[at - 1] > one; at--)
			all[at] = all[at - 1];
		all[at] = one;
	}
}

int main(int argc, char **argv)
{
	unsigned long seed = (unsigned long)atoi("1");
	int nr = argc > 1 ? atoi(argv[1]) : NUMBERS;

	if (nr > NUMBERS)
		return 2;
	for (int i = 0; i < nr; i++) {
		seed = seed * 6364136223846793005 + 1442695040888963407;
		numbers[i] = (unsigned)(seed >> 33);
	}
	insert(numbers, nr / 4);
	qsort(numbers, (size_t)nr, sizeof(numbers[0]), compare);
	for (int i = 1; i < nr; i++) {
		if (numbers[i - 1] > numbers[i])
			return 1;
	}
	return 0;
}

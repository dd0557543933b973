// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * pt_load ROUNDS: what programs do, for traces: sorting with a callback, a tree, a hash table, text, a small
 * interpreter with a jump table, recursion, and calls through a table. A round has about 5 M instructions.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NUMBERS 6000
#define SLOTS 4096

static uint64_t seed = 1;

static uint32_t random32(void)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(seed >> 33);
}

static int compare(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static uint64_t sort(void)
{
	static uint32_t numbers[NUMBERS];

	for (int i = 0; i < NUMBERS; i++)
		numbers[i] = random32();
	qsort(numbers, NUMBERS, sizeof(*numbers), compare);
	return numbers[NUMBERS / 2];
}

static uint64_t fill_table(void)
{
	static uint32_t table[SLOTS];
	uint64_t sum = 0;

	memset(table, 0, sizeof(table));
	for (int i = 0; i < 20000; i++) {
		uint32_t key = random32() % 3000 + 1, at = key * 2654435761u >> 20;

		while (table[at % SLOTS] && table[at % SLOTS] != key)
			at++;
		table[at % SLOTS] = key;
		sum += at;
	}
	return sum;
}

static uint64_t write_text(void)
{
	static char text[4096];
	uint64_t sum = 0;

	for (int i = 0; i < 600; i++) {
		int len = snprintf(text, sizeof(text), "%d:%s:%x", i, "some text", i * 77);

		sum += (uint64_t)len + strlen(text);
		for (char *at = text; *at; at++)
			sum += *at == ':';
	}
	return sum;
}

/* Adds, jumps and stops, like any interpreter. */
static __attribute__((noinline)) uint64_t interpret(const uint8_t *code)
{
	uint64_t a = 0, n = 3000;

	for (const uint8_t *at = code;;) {
		switch (*at++) {
		case 0: a++; break;
		case 1: a *= 3; break;
		case 2: a ^= n; break;
		case 3: a >>= 1; break;
		case 4:
			if (!--n)
				return a;
			at = code;
			break;
		case 5: at += a & 1; break;
		default: a += 7; break;
		}
	}
}

static uint64_t fibonacci(unsigned n)
{
	return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

static uint64_t add(uint64_t a)
{
	return a + 3;
}

static uint64_t turn(uint64_t a)
{
	return a << 7 | a >> 57;
}

static uint64_t half(uint64_t a)
{
	return a & 1 ? add(a) : a / 2;
}

static uint64_t call_table(void)
{
	static uint64_t (*volatile const table[])(uint64_t) = { add, turn, half, turn };
	uint64_t a = 1;

	for (unsigned i = 0; i < 60000; i++)
		a = table[a & 3](a + i);
	return a;
}

int main(int argc, char **argv)
{
	static const uint8_t code[] = { 0, 1, 2, 5, 0, 3, 6, 5, 1, 2, 0, 4, 4 };
	int rounds = argc > 1 ? atoi(argv[1]) : 1;
	uint64_t sum = 0;

	while (rounds-- > 0)
		sum += sort() + fill_table() + write_text() + interpret(code) + fibonacci(20) +
		       call_table();
	printf("%llu\n", (unsigned long long)sum);
	return 0;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* test: what the unit tests in C share. One line for each check, as tests/run expects. */
#ifndef KSCOPE_TESTS_UNIT_TEST_H
#define KSCOPE_TESTS_UNIT_TEST_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

static int test_failures;

static inline void check(const char *name, bool good)
{
	printf(good ? "ok %s\n" : "not ok %s: is not so\n", name);
	test_failures += !good;
}

static inline int test_result(void)
{
	return test_failures > 0;
}

/* The same numbers in every run. */
static inline uint32_t next_random(uint64_t *state)
{
	*state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
	return (uint32_t)(*state >> 33);
}

#endif

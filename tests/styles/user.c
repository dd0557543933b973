// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A user program of onestack. Its name is NAME: red, green or blue. The programs differ only in names
 * and constants, so that equal functions are at equal addresses. Its second thread is on the side.
 */
#include <stdint.h>

#include "shapes.h"
#include "user.h"

#ifndef ROUNDS
#define ROUNDS 4000
#endif

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define EXPAND(shape, ...) shape(__VA_ARGS__)

void user_call(uint64_t number); /* user.S */
void user_main(uint64_t argument);

static const unsigned rounds = ROUNDS;

static void fail(const char *what, const char *who)
{
	(void)what, (void)who;
	user_call(USER_FAIL);
}

NOINLINE static void JOIN(NAME, _yield)(void)
{
	user_call(USER_YIELD);
}
#define yield JOIN(NAME, _yield)

EXPAND(CHAIN, NAME, SEED)
EXPAND(RECURSIVE, JOIN(NAME, _side), SEED, 6)

void user_main(uint64_t argument)
{
	if (argument)
		JOIN(NAME, _side_main)();
	else
		JOIN(NAME, _main)();
	user_call(USER_END);
}

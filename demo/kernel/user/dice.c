// SPDX-License-Identifier: GPL-2.0-or-later
/* A game of dice: eight throws. */
#define PROGRAM "dice"
#include "user.h"

static volatile uint64_t eyes;

static NOINLINE uint64_t throw_dice(uint64_t luck)
{
	return mix(luck, 4 * ROUNDS);
}

static NOINLINE void play_game(void)
{
	for (uint64_t i = 1; i <= 8; i++)
		eyes = (uint32_t)throw_dice(i) % 6 + 1; /* with 64 bits, Arm calls a function */
}

void user_main(uint64_t units)
{
	while (units--)
		play_game();
}

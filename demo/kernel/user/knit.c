// SPDX-License-Identifier: GPL-2.0-or-later
/* A sock of four rows with eight stitches. */
#define PROGRAM "knit"
#include "user.h"

static volatile uint64_t wool;

static NOINLINE uint64_t knit_stitch(uint64_t yarn)
{
	return mix(yarn, ROUNDS);
}

static NOINLINE void knit_row(uint64_t row)
{
	for (uint64_t i = 1; i <= 8; i++)
		wool = knit_stitch(row * i);
}

static NOINLINE void knit_sock(void)
{
	for (uint64_t row = 1; row <= 4; row++)
		knit_row(row);
}

void user_main(uint64_t units)
{
	while (units--)
		knit_sock();
}

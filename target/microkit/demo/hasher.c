// SPDX-License-Identifier: MIT
/* hasher: always busy. Of its time, 60 % is in digest() and 40 % in mix(), both called by hash_block(). */
#include <microkit.h>

#include "work.h"

static FUNCTION void digest(void)
{
	work(0, 3);
}

static FUNCTION void mix(void)
{
	work(1, 2);
}

static FUNCTION void hash_block(void)
{
	digest();
	mix();
}

void init(void)
{
	for (;;)
		hash_block();
}

void notified(microkit_channel channel)
{
	(void)channel;
}

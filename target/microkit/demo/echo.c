// SPDX-License-Identifier: MIT
/* echo: a server that answers each message with the same message: two thirds of its work is in checksum(). */
#include <microkit.h>

#include "work.h"

static FUNCTION uint64_t checksum(uint64_t word)
{
	work(0, 2);
	return ~word;
}

static FUNCTION void copy(uint64_t word)
{
	work(1, 1);
	microkit_mr_set(0, word);
}

static FUNCTION void answer(void)
{
	copy(~checksum(microkit_mr_get(0)));
}

microkit_msginfo protected(microkit_channel channel, microkit_msginfo message)
{
	(void)channel;
	(void)message;
	answer();
	return microkit_msginfo_new(0, 1);
}

void init(void)
{
}

void notified(microkit_channel channel)
{
	(void)channel;
}

// SPDX-License-Identifier: MIT
/* load: keeps the echo server busy: one unit of work of its own for three of the server. */
#include <microkit.h>

#include "work.h"

#define ECHO 0

static FUNCTION void prepare(uint64_t word)
{
	work(0, 1);
	microkit_mr_set(0, word);
}

static FUNCTION void request(uint64_t word)
{
	prepare(word);
	microkit_ppcall(ECHO, microkit_msginfo_new(0, 1));
	if (microkit_mr_get(0) != word)
		microkit_dbg_puts("load: this is no echo\n");
}

void init(void)
{
	for (uint64_t word = 1;; word++)
		request(word);
}

void notified(microkit_channel channel)
{
	(void)channel;
}

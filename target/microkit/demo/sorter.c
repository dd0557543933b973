// SPDX-License-Identifier: MIT
/* sorter: always busy, in merge(), which sort() calls at each of its levels: four calls deep, and 15 merges in all. */
#include <microkit.h>

#include "work.h"

static FUNCTION void merge(void)
{
	work(0, 1);
}

static FUNCTION void sort(unsigned level)
{
	if (level) {
		sort(level - 1);
		sort(level - 1);
	}
	merge();
}

void init(void)
{
	for (;;)
		sort(3);
}

void notified(microkit_channel channel)
{
	(void)channel;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/* Does the work of the demo's kernel (demo/kernel/work.c) as a program of the host, in one task. */
#include <stdio.h>
#include <stdlib.h>

#include "kernel.h"

extern const struct work compress, checksum, route, cache;
void dice_main(uint64_t units), knit_main(uint64_t units); /* user_main() of the programs */

void panic(const char *why, uintptr_t where)
{
	fprintf(stderr, "%s at %#zx\n", why, (size_t)where);
	exit(1);
}

void profile_alloc(bool is_free, void *memory, size_t size, uintptr_t caller, const void *frame)
{
	(void)is_free, (void)memory, (void)size, (void)caller, (void)frame;
}

static void run(const struct work *work, unsigned units)
{
	while (units--)
		work->unit();
}

/* The units that all tasks of the kernel do together, at scale=1. */
int main(void)
{
	run(&compress, 80);
	run(&checksum, 80);
	run(&route, 70);
	run(&cache, 10);
	dice_main(60);
	knit_main(50);
	return 0;
}

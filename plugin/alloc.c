// SPDX-License-Identifier: GPL-2.0-or-later
/* See trace.h. */
#include "trace.h"

#include "api.h"
#include "args.h"

int alloc_open(void)
{
	if (args.n_hooks)
		api_say("alloc=, realloc= and free= are not part of this build");
	return args.n_hooks ? -1 : 0;
}

void alloc_translate(struct qemu_plugin_tb *tb)
{
	(void)tb;
}

void alloc_cpu_init(unsigned cpu)
{
	(void)cpu;
}

void alloc_flush(void)
{
}

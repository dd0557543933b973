// SPDX-License-Identifier: MIT
/* main: the entry points of a protection domain of kscope. Its name says which one it is. */
#include <microkit.h>

#include "domain.h"

uintptr_t kscope_region;
uintptr_t kscope_region_size;

static bool is_profiler;

static bool same(const char *a, const char *b)
{
	while (*a && *a == *b)
		a++, b++;
	return *a == *b;
}

void init(void)
{
	domain_port_init();
	for (unsigned cpu = 0; cpu < system_n_profilers; cpu++) {
		const char *name = system_profilers[cpu].name;

		if (!name || !same(name, microkit_name))
			continue;
		is_profiler = true;
		profiler_init(cpu);
		return;
	}
	client_init();
}

void notified(microkit_channel channel)
{
	if (is_profiler)
		profiler_notified(channel);
	else
		client_notified(channel);
}

seL4_Bool fault(microkit_child child, microkit_msginfo message, microkit_msginfo *reply)
{
	if (!is_profiler || !profiler_fault(child, microkit_msginfo_get_label(message)))
		return seL4_False;
	*reply = microkit_msginfo_new(0, 0);
	return seL4_True;
}

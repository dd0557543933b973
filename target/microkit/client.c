// SPDX-License-Identifier: MIT
/*
 * client: the protection domain that talks to the host: it obeys commands and sends the stream. It has to have a higher
 * priority than what is profiled, because busy programs would leave it no time.
 */
#include <microkit.h>

#include "domain.h"

static void serve(void)
{
	while (kscope_serve(&shared_region()->k))
		;
}

void client_init(void)
{
	struct shared *shared = shared_region();
	uintptr_t memory = kscope_region + sizeof(*shared);

	/* There is no clock of the day. Where two boots take equally long, hosts look at the sequence. */
	domain_port.boot = clock_now();
	if (kscope_region_size < sizeof(*shared) ||
	    !kscope_init(&shared->k, &domain_port, (void *)memory,
			 kscope_region_size - sizeof(*shared))) {
		microkit_dbg_puts("kscope: the region is too small\n");
		return;
	}
	link_init();
	__atomic_store_n(&shared->ready, 1, __ATOMIC_RELEASE);
	serve();
}

static bool is_profilers(unsigned channel)
{
	for (unsigned cpu = 0; cpu < system_n_profilers; cpu++) {
		if (system_profilers[cpu].name && system_profilers[cpu].kick == (int)channel)
			return true;
	}
	return false;
}

void client_notified(unsigned channel)
{
	if (!shared_is_ready())
		return;
	if (!is_profilers(channel))
		link_notified(channel);
	serve();
}

// SPDX-License-Identifier: GPL-2.0-or-later
#include "read/bare.h"

#include <sys/mman.h>

#include "model/source.h"

void bare_map(struct event *ev)
{
	ev->kind = EVENT_MAP;
	ev->map = (struct event_map){
		.len = UINT64_MAX,
		.path = "[kernel.kallsyms]",
		.prot = PROT_READ | PROT_EXEC,
		.kernel = true,
		.as_linked = true,
		.foreign = true,
	};
}

bool bare_tell(struct bare *bare, const char *source, struct event *ev)
{
	if (bare->told == 0) {
		bare->told++;
		bare_map(ev);
		ev->map.path = "[kernel]";
		ev->map.foreign = false;
		return true;
	}
	if (bare->told == 1 && source) {
		bare->told++;
		ev->kind = EVENT_SOURCE;
		ev->source.id = 1;
		source_from_name(&ev->source, bare->event_name ? bare->event_name : source);
		return true;
	}
	return false;
}

uint32_t bare_chain(uint64_t *ips, uint32_t nr)
{
	while (nr > 1 && ips[nr - 1] == 0)
		nr--;
	for (uint32_t i = 0; i < nr; i++) {
		if (ip_is_marker(ips[i]))
			ips[i] = 0;
	}
	return nr;
}

void bare_sample(struct event *ev, uint64_t *ips, uint32_t nr)
{
	ev->kind = EVENT_SAMPLE;
	ev->sample = (struct event_sample){
		.ips = ips,
		.nr = bare_chain(ips, nr),
		.source = 1,
		.weight = 1,
		.context = IP_KERNEL,
	};
}

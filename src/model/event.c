// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/event.h"

#include <string.h>

const char *const event_names[EVENT_KINDS] = {
	[EVENT_META] = "meta",	     [EVENT_SOURCE] = "source", [EVENT_COMM] = "comm",
	[EVENT_FORK] = "fork",	     [EVENT_EXIT] = "exit",	[EVENT_MAP] = "map",
	[EVENT_SAMPLE] = "sample",   [EVENT_LOST] = "lost",	[EVENT_SYMBOL] = "symbol",
	[EVENT_SWITCH] = "switch",   [EVENT_ALLOC] = "alloc",	[EVENT_CALL] = "call",
	[EVENT_STRETCH] = "stretch", [EVENT_SLICE] = "slice",	[EVENT_BRANCH] = "branch",
	[EVENT_AUX] = "aux",	     [EVENT_CHAIN] = "sample",	[EVENT_CHECK] = "check",
	[EVENT_MASK] = "mask",
};

static const struct {
	const char *name;
	uint64_t marker;
} markers[] = {
	{ "kernel", IP_KERNEL },	 { "user", IP_USER },
	{ "guest", IP_GUEST },		 { "guest-kernel", IP_GUEST_KERNEL },
	{ "guest-user", IP_GUEST_USER }, { "named", IP_NAMED },
};

const char *ip_marker_name(uint64_t marker)
{
	for (size_t i = 0; i < sizeof(markers) / sizeof(markers[0]); i++) {
		if (markers[i].marker == marker)
			return markers[i].name;
	}
	return NULL;
}

uint64_t ip_marker_by_name(const char *name, size_t len)
{
	for (size_t i = 0; i < sizeof(markers) / sizeof(markers[0]); i++) {
		if (strlen(markers[i].name) == len && !memcmp(markers[i].name, name, len))
			return markers[i].marker;
	}
	return 0;
}

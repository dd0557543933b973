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
	[EVENT_MASK] = "mask",	     [EVENT_NOTE] = "note",	[EVENT_COUNTER] = "counter",
};

const char *const note_names[NOTE_KINDS] = {
	[NOTE_PTWRITE] = "ptwrite", [NOTE_MWAIT] = "mwait",   [NOTE_PWRE] = "pwre",
	[NOTE_PWRX] = "pwrx",	    [NOTE_EXSTOP] = "exstop", [NOTE_CBR] = "cbr",
};

const struct note_field note_fields[NOTE_FIELDS] = {
	[NOTE_VALUE] = { "value", NOTE_PTWRITE, 0, 64 },
	[NOTE_HINTS] = { "hints", NOTE_MWAIT, 0, 8 },
	[NOTE_EXTENSIONS] = { "extensions", NOTE_MWAIT, 32, 2 },
	[NOTE_CSTATE] = { "cstate", NOTE_PWRE, 12, 4 },
	[NOTE_SUB_CSTATE] = { "sub_cstate", NOTE_PWRE, 8, 4 },
	[NOTE_HW] = { "hw", NOTE_PWRE, 7, 1 },
	[NOTE_LAST_CSTATE] = { "last_cstate", NOTE_PWRX, 4, 4 },
	[NOTE_DEEPEST_CSTATE] = { "deepest_cstate", NOTE_PWRX, 0, 4 },
	[NOTE_WAKE_REASON] = { "wake_reason", NOTE_PWRX, 8, 4 },
	[NOTE_RATIO] = { "ratio", NOTE_CBR, 0, 8 },
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

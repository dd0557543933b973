/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * bare: what readers of data from one bare kernel share. Such data has addresses and nothing else:
 * no maps, no tasks, one ELF that the user names with --kernel.
 */
#ifndef KSCOPE_READ_BARE_H
#define KSCOPE_READ_BARE_H

#include <string.h>

#include "format.h"

struct bare {
	const char *event_name; /* --event-name; NULL: not given */
	unsigned told;
};

/* All of a kernel that ran on another machine: at the addresses of its ELF, as perf names it. */
void bare_map(struct event *ev);
/* The options of a reader whose private state has a struct bare named `bare`. */
#define BARE_OPTIONS(priv) OPTION_USES({ &event_name_table, offsetof(priv, bare.event_name) })

/*
 * What stands before the samples: the kernel's map, and a source with id 1 unless `source` is
 * NULL. False: all of it was told.
 */
bool bare_tell(struct bare *bare, const char *source, struct event *ev);

/* Fills a sample of source 1 in the kernel. The ips are made safe: see bare_chain(). */
void bare_sample(struct event *ev, uint64_t *ips, uint32_t nr);
/*
 * Walkers run past the root: the zeros at the end go, and garbage that would read as a marker
 * becomes 0. Returns what is left of nr, at least 1.
 */
uint32_t bare_chain(uint64_t *ips, uint32_t nr);

/* An address that an x86-64, and so every 32-bit, processor can execute from. */
static inline bool bare_canonical(uint64_t ip)
{
	return ip < (uint64_t)1 << 47 || (ip >= (uint64_t)-1 << 47 && !ip_is_marker(ip));
}

static inline uint64_t bare_le64(const uint8_t *at)
{
	uint64_t value = 0;

	for (unsigned i = 8; i-- > 0;)
		value = value << 8 | at[i];
	return value;
}

#endif

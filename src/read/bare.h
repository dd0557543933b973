/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * bare: helpers shared by the readers of bare-kernel data. Such data has only addresses: no maps,
 * no tasks, and a single ELF, which the user names with --kernel.
 */
#ifndef KSCOPE_READ_BARE_H
#define KSCOPE_READ_BARE_H

#include <string.h>

#include "format.h"

struct bare {
	const char *event_name; /* --event-name; NULL: not given */
	unsigned told;		/* events of the preamble that were emitted */
};

/* A map of a whole kernel of another machine, at the addresses of its ELF and under perf's name. */
void bare_map(struct event *ev);
/* The options of a reader whose private state has a struct bare named `bare`. */
#define BARE_OPTIONS(priv) OPTION_USES({ &event_name_table, offsetof(priv, bare.event_name) })

/*
 * Emits the next event of the preamble: the kernel's map, then a source with id 1 unless `source`
 * is NULL. Returns false when nothing is left.
 */
bool bare_tell(struct bare *bare, const char *source, struct event *ev);

/* Fills a kernel sample of source 1. Sanitizes the ips with bare_chain(). */
void bare_sample(struct event *ev, uint64_t *ips, uint32_t nr);
/*
 * Stack walkers run past the root: drops trailing zeros, and replaces garbage that looks like a
 * marker with 0. Returns the new length, at least 1.
 */
uint32_t bare_chain(uint64_t *ips, uint32_t nr);

/* Is this an address that an x86-64 cpu (or any 32-bit one) can execute from? */
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

// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/stock.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "model/event.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const char *const hardware[] = {
	"cycles",
	"instructions",
	"cache-references",
	"cache-misses",
	"branches",
	"branch-misses",
	"bus-cycles",
	"stalled-cycles-frontend",
	"stalled-cycles-backend",
	"ref-cycles",
};

static const char *const software[] = {
	"cpu-clock",	    "task-clock",   "page-faults",  "context-switches",
	"cpu-migrations",   "minor-faults", "major-faults", "alignment-faults",
	"emulation-faults", "dummy",	    "bpf-output",   "cgroup-switches",
};

/* Caches: what perf counts there, in the order of its numbers. */
static const struct {
	const char *name;
	bool stores, prefetches;
} caches[] = {
	{ "L1-dcache", true, true }, { "L1-icache", false, true }, { "LLC", true, true },
	{ "dTLB", true, true },	     { "iTLB", false, false },	   { "branch", false, false },
	{ "node", true, true },
};

static const char *cache_name(uint64_t config, char room[STOCK_NAME])
{
	static const char *const accesses[] = { "load", "store", "prefetch" };
	uint64_t cache = config & 0xff, access = config >> 8 & 0xff, misses = config >> 16;

	if (cache >= COUNT(caches) || access >= COUNT(accesses) || misses > 1 ||
	    (access == 1 && !caches[cache].stores) || (access == 2 && !caches[cache].prefetches))
		return NULL;
	/* perf's plural of prefetch is prefetches. */
	snprintf(room, STOCK_NAME, "%s-%s%s", caches[cache].name, accesses[access],
		 misses	       ? "-misses"
		 : access == 2 ? "es"
			       : "s");
	return room;
}

const char *stock_name(uint32_t type, uint64_t config, char room[STOCK_NAME])
{
	if (type == SOURCE_HARDWARE && config < COUNT(hardware))
		return hardware[config];
	if (type == SOURCE_SOFTWARE && config < COUNT(software))
		return software[config];
	return type == SOURCE_CACHE ? cache_name(config, room) : NULL;
}

static bool find(const char *const *names, size_t nr, const char *name, uint64_t *config)
{
	for (size_t i = 0; i < nr; i++) {
		if (!strcmp(names[i], name)) {
			*config = i;
			return true;
		}
	}
	return false;
}

bool stock_find(const char *name, uint32_t *type, uint64_t *config)
{
	bool counts = find(hardware, COUNT(hardware), name, config);

	if (!counts && !find(software, COUNT(software), name, config))
		return false;
	*type = counts ? SOURCE_HARDWARE : SOURCE_SOFTWARE;
	return true;
}

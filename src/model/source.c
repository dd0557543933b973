// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/source.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "model/stock.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

struct named_event {
	uint64_t config;
	const char *name;
};

/* Arm PMUv3: the architected events, as perf spells them. */
static const struct named_event arm_pmuv3[] = {
	{ 0x00, "sw_incr" },
	{ 0x01, "l1i_cache_refill" },
	{ 0x02, "l1i_tlb_refill" },
	{ 0x03, "l1d_cache_refill" },
	{ 0x04, "l1d_cache" },
	{ 0x05, "l1d_tlb_refill" },
	{ 0x06, "ld_retired" },
	{ 0x07, "st_retired" },
	{ 0x08, "inst_retired" },
	{ 0x09, "exc_taken" },
	{ 0x0a, "exc_return" },
	{ 0x0b, "cid_write_retired" },
	{ 0x0c, "pc_write_retired" },
	{ 0x0d, "br_immed_retired" },
	{ 0x0e, "br_return_retired" },
	{ 0x0f, "unaligned_ldst_retired" },
	{ 0x10, "br_mis_pred" },
	{ 0x11, "cpu_cycles" },
	{ 0x12, "br_pred" },
	{ 0x13, "mem_access" },
	{ 0x14, "l1i_cache" },
	{ 0x15, "l1d_cache_wb" },
	{ 0x16, "l2d_cache" },
	{ 0x17, "l2d_cache_refill" },
	{ 0x18, "l2d_cache_wb" },
	{ 0x19, "bus_access" },
	{ 0x1a, "memory_error" },
	{ 0x1b, "inst_spec" },
	{ 0x1c, "ttbr_write_retired" },
	{ 0x1d, "bus_cycles" },
	{ 0x1e, "chain" },
	{ 0x1f, "l1d_cache_allocate" },
	{ 0x20, "l2d_cache_allocate" },
	{ 0x21, "br_retired" },
	{ 0x22, "br_mis_pred_retired" },
	{ 0x23, "stall_frontend" },
	{ 0x24, "stall_backend" },
	{ 0x25, "l1d_tlb" },
	{ 0x26, "l1i_tlb" },
	{ 0x29, "l3d_cache_allocate" },
	{ 0x2a, "l3d_cache_refill" },
	{ 0x2b, "l3d_cache" },
	{ 0x2d, "l2d_tlb_refill" },
	{ 0x2f, "l2d_tlb" },
	{ 0x34, "dtlb_walk" },
	{ 0x35, "itlb_walk" },
	{ 0x36, "ll_cache_rd" },
	{ 0x37, "ll_cache_miss_rd" },
};

/* Intel's architectural events: umask << 8 | event. */
static const struct named_event x86_architectural[] = {
	{ 0x003c, "cpu-cycles" },    { 0x00c0, "instructions" },
	{ 0x013c, "bus-cycles" },    { 0x4f2e, "cache-references" },
	{ 0x412e, "cache-misses" },  { 0x00c4, "branch-instructions" },
	{ 0x00c5, "branch-misses" },
};

static const struct pmu {
	const char *arch; /* a prefix of world_arch() */
	const struct named_event *events;
	size_t nr;
} pmus[] = {
	{ "aarch64", arm_pmuv3, COUNT(arm_pmuv3) },
	{ "arm", arm_pmuv3, COUNT(arm_pmuv3) },
	{ "x86_64", x86_architectural, COUNT(x86_architectural) },
	{ "i686", x86_architectural, COUNT(x86_architectural) },
};

static const char *raw_name(const char *arch, uint64_t config)
{
	for (size_t i = 0; i < COUNT(pmus); i++) {
		if (strncmp(arch, pmus[i].arch, strlen(pmus[i].arch)) != 0)
			continue;
		for (size_t j = 0; j < pmus[i].nr; j++) {
			if (pmus[i].events[j].config == config)
				return pmus[i].events[j].name;
		}
	}
	return NULL;
}

uint32_t source_name(struct world *world, uint32_t handle)
{
	struct source *source = &world->sources[handle];
	char room[STOCK_NAME], text[40];
	const char *name;

	if (source->name)
		return source->name;
	name = stock_name(source->type, source->config, room);
	if (source->type == SOURCE_RAW)
		name = raw_name(world_arch(world), source->config);
	if (!name) {
		snprintf(text, sizeof(text), "%s0x%" PRIx64,
			 source->type == SOURCE_RAW ? "raw " : "event ", source->config);
		name = text;
	}
	/* A raw event's name may still change when the architecture becomes known. */
	if (name != text)
		source->name = str_intern_z(world->strings, name);
	return str_intern_z(world->strings, name);
}

void source_from_name(struct event_source *source, const char *name)
{
	source->name = name;
	if (stock_find(name, &source->type, &source->config))
		return;
	/* rHEX, as in perf record -e */
	if (name[0] == 'r' && text_hex(name + 1, strlen(name + 1), &source->config)) {
		source->type = SOURCE_RAW;
		source->name = NULL;
		return;
	}
	source->type = SOURCE_SOFTWARE;
	for (size_t i = 0; i < COUNT(arm_pmuv3); i++) {
		if (!strcmp(arm_pmuv3[i].name, name)) {
			source->type = SOURCE_RAW;
			source->config = arm_pmuv3[i].config;
			return;
		}
	}
	/* cpu-clock: perf shows the name. Not dummy: perf script prints no chains for that. */
	source->config = 0;
}

bool source_sum_is_time(const struct world *world, uint32_t source, uint64_t samples,
			uint64_t weight)
{
	return weight && weight != samples && source_counts_time(world, &world->sources[source]);
}

bool source_has_weights(const struct world *world, uint32_t source, uint64_t weight)
{
	return world->sources[source].unit || weight;
}

bool source_counts_time(const struct world *world, const struct source *source)
{
	return source->unit ? !strcmp(str_text(world->strings, source->unit), "ns")
			    : source->type == SOURCE_SOFTWARE && source->config <= 1;
}

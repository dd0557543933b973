/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * abi: perf's interface for dlfilters, of perf 5.14 and later. perf's own header is used if it is installed; the
 * declarations here are only what the filter needs of it.
 */
#ifndef KSCOPE_DLFILTER_ABI_H
#define KSCOPE_DLFILTER_ABI_H

#include <stddef.h>
#include <stdint.h>

#if __has_include(<perf/perf_dlfilter.h>) && !defined(KSCOPE_OWN_ABI)
#include <perf/perf_dlfilter.h>
#else
struct perf_dlfilter_sample {
	uint32_t size;
	uint16_t ins_lat, p_stage_cyc;
	uint64_t ip;
	int32_t pid, tid;
	uint64_t time, addr;
	uint64_t id, stream_id, period, weight, transaction;
	uint64_t insn_cnt, cyc_cnt;
	int32_t cpu;
	uint32_t flags;
	uint64_t data_src, phys_addr, data_page_size, code_page_size, cgroup;
	uint8_t cpumode, addr_correlates_sym;
	uint16_t misc;
	uint32_t raw_size;
	const void *raw_data;
	uint64_t brstack_nr;
	const void *brstack;
	uint64_t raw_callchain_nr;
	const uint64_t *raw_callchain;
	const char *event;
};

struct perf_dlfilter_al {
	uint32_t size;
	uint32_t symoff;
	const char *sym;
	uint64_t addr; /* in the binary */
	uint64_t sym_start, sym_end;
	const char *dso;
	uint8_t sym_binding, is_64_bit, is_kernel_ip;
	uint32_t buildid_size;
	uint8_t *buildid;
	uint8_t filtered;
	const char *comm;
};

struct perf_dlfilter_fns {
	const struct perf_dlfilter_al *(*resolve_ip)(void *ctx);
	const struct perf_dlfilter_al *(*resolve_addr)(void *ctx);
	char **(*args)(void *ctx, int *nr);
	int32_t (*resolve_address)(void *ctx, uint64_t address, struct perf_dlfilter_al *al);
	const uint8_t *(*insn)(void *ctx, uint32_t *len);
	const char *(*srcline)(void *ctx, uint32_t *line);
	struct perf_event_attr *(*attr)(void *ctx);
	int32_t (*object_code)(void *ctx, uint64_t ip, void *buf, uint32_t len);
	void *(*reserved[120])(void *); /* perf copies all of it */
};

int start(void **data, void *ctx);
int stop(void *data, void *ctx);
int filter_event(void *data, const struct perf_dlfilter_sample *sample, void *ctx);
const char *filter_description(const char **more);
#endif

/* What the first version had, of which the last field that the filter uses is the last one. */
#define OLDEST_SAMPLE (offsetof(struct perf_dlfilter_sample, event) + sizeof(char *))
#define OLDEST_AL (offsetof(struct perf_dlfilter_al, comm) + sizeof(char *))

#endif

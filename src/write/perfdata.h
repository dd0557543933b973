/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the files of the perf.data writer share. It writes little-endian files on every machine: perf
 * tells the order from the magic number.
 *
 *	perfdata		records and attributes
 *	perfdata_feature	the features that follow them
 */
#ifndef KSCOPE_WRITE_PERFDATA_H
#define KSCOPE_WRITE_PERFDATA_H

#include <endian.h>

#include "abi/perf_file.h"
#include "base/buf.h"
#include "base/hash.h"
#include "format.h"
#include "model/world.h"

struct perfdata {
	struct buf record;
	uint64_t first_time, last_time;
	uint32_t nr_cpus;
	bool kernel_seen;
	bool kernel_mapped;
	uint32_t placed_kernel; /* the image of a kernel at a known place; 0: none */
	bool started;		/* a record was written: the fields of source 1 are fixed */
	unsigned lacks; /* fields that source 1, and so the trailer of other records, lacks */
	bool switches;
	bool arm_settled, arm; /* write a branch stack with every sample, even if empty */
	struct hash mapped;    /* images that have a map: they get a build id */
	uint32_t in_round;     /* samples since the last FINISHED_ROUND */
	struct buf tracing;    /* the formats of tracepoints */
	uint64_t left_out;     /* bytes of hardware trace that were not written */
};

static inline void put_u32(struct buf *buf, uint32_t value)
{
	value = htole32(value);
	buf_add(buf, &value, sizeof(value));
}

static inline void put_u64(struct buf *buf, uint64_t value)
{
	value = htole64(value);
	buf_add(buf, &value, sizeof(value));
}

/* Sources are numbered from 1. A file without samples still needs one event. */
size_t perfout_nr_sources(const struct world *world);
struct source perfout_source(const struct world *world, size_t n);
struct perf_attr perfout_attr(struct writer *w, uint32_t handle, const struct source *source);
void perfout_put_attr(struct buf *to, const struct perf_attr *attr);
void perfout_put_section(struct buf *to, const struct perf_section *section);
/*
 * perf looks for a binary under the name in the map, so a bare name becomes the path of the file
 * that we found. Paths stay, and so do all names of another machine: perf prepends its --symfs.
 */
const char *perfout_filename(const struct writer *w, uint32_t image);
/* After the data: a table of sections, then the sections. */
void perfout_features(struct writer *w, struct perf_header *header);

#endif

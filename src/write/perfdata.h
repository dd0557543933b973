/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the files of the perf.data writer share.
 *
 *	perfdata		records and attributes
 *	perfdata_feature	the features behind them
 */
#ifndef KSCOPE_WRITE_PERFDATA_H
#define KSCOPE_WRITE_PERFDATA_H

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
	bool started;	/* a record was written: the fields of the first source are settled */
	unsigned lacks; /* what it does not have; nor has what follows other records */
	bool switches;
	bool arm_settled, arm; /* samples have a branch stack, if only an empty one */
	struct hash mapped;    /* images that a map has named: they get a build id */
	uint32_t in_round;     /* samples since the last end of a round */
	struct buf tracing;    /* how the bytes of tracepoints are read */
	uint64_t left_out;     /* bytes of hardware traces */
};

static inline void put_u32(struct buf *buf, uint32_t value)
{
	buf_add(buf, &value, sizeof(value));
}

static inline void put_u64(struct buf *buf, uint64_t value)
{
	buf_add(buf, &value, sizeof(value));
}

/* Sources are numbered from 1. A file without samples still wants one event. */
size_t perfout_nr_sources(const struct world *world);
struct source perfout_source(const struct world *world, size_t n);
struct perf_attr perfout_attr(struct writer *w, uint32_t handle, const struct source *source);
/*
 * perf looks for a binary under the name in the map: a bare name becomes the file that we found.
 * Paths stay, those of another machine in any case: perf puts its --symfs before them.
 */
const char *perfout_filename(const struct world *world, const struct image *image);
/* After the data: a table of sections, then the sections. */
void perfout_features(struct writer *w, struct perf_header *header);

#endif

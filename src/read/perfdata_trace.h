/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * perfdata_trace: the bytes of one trace, that of a thread or a cpu. They are in several places of a perf.data:
 * behind AUXTRACE records, or in samples.
 */
#ifndef KSCOPE_READ_PERFDATA_TRACE_H
#define KSCOPE_READ_PERFDATA_TRACE_H

#include "base/in.h"

struct trace_part {
	struct in *in;
	uint64_t file_offset, len;
	uint64_t offset; /* its position in the trace; see trace_lay_out() */
};

struct trace { /* zeroed: empty */
	struct trace_part *parts;
	size_t nr, cap;
};

void trace_add(struct trace *trace, const struct trace_part *part);
void trace_release(struct trace *trace);
/*
 * All parts are added. In a full trace, each part has its offset in the trace, and the parts are sorted by it.
 */
void trace_sort(struct trace *trace);
/*
 * Snapshots and samples instead: each part is what the buffer had at some time, in the order of time. Their
 * offsets tell nothing, because the buffer wraps around: parts get new ones. If a part begins with the last
 * bytes of the part before, both are joined; else there is a hole between them.
 */
void trace_lay_out(struct trace *trace);
/* The part at a position, or before it if there is a hole; NULL: none. After trace_sort() or trace_lay_out(). */
const struct trace_part *trace_at(const struct trace *trace, uint64_t position);
/* False: there is a hole, or the file cannot be read. */
bool trace_read(const struct trace *trace, uint64_t position, uint8_t *to, size_t len);
/* The TSC of the first PSB packet, as far as its packets tell; else 0. */
uint64_t trace_first_time(const struct trace *trace);

/* A temporary file for bytes that have no place of their own in the file, because they are compressed there. */
struct trace_spool { /* zeroed: empty. It must not move. */
	struct in in;
	uint64_t len;
};

/* Keeps the bytes of a part, and says in the part where they are. */
int trace_spool_add(struct trace_spool *spool, struct trace_part *part, const uint8_t *bytes,
		    struct err *err);
void trace_spool_close(struct trace_spool *spool);

#endif

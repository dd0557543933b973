/* SPDX-License-Identifier: GPL-2.0-or-later */
/* perfdata_chunks: the trace of a thread or a cpu, which is in several places of one or more files. */
#ifndef KSCOPE_READ_PERFDATA_CHUNKS_H
#define KSCOPE_READ_PERFDATA_CHUNKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/in.h"

struct perfdata_chunk {
	struct in *in;
	uint64_t file_offset, len;
	uint64_t offset; /* in the trace of its thread or cpu */
	uint32_t tid, cpu;
};

struct perfdata_chunks {
	struct perfdata_chunk *all; /* the owner frees it */
	size_t nr, cap;
};

/* All are there: sorts them by their offsets, and removes overlaps. Call this before the others. */
void perfdata_chunks_complete(struct perfdata_chunks *chunks);
/* The last one that begins at or before a position of the trace; NULL: none. */
const struct perfdata_chunk *perfdata_chunks_at(const struct perfdata_chunks *chunks,
						uint64_t position);
/* False: part of it is missing. */
bool perfdata_chunks_read(const struct perfdata_chunks *chunks, uint64_t position, uint8_t *to,
			  size_t len);

#endif

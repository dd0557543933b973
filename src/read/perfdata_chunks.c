// SPDX-License-Identifier: GPL-2.0-or-later
#include "read/perfdata_chunks.h"

#include <stdlib.h>

static int by_offset(const void *a, const void *b)
{
	const struct perfdata_chunk *x = a, *y = b;

	return (x->offset > y->offset) - (x->offset < y->offset);
}

/*
 * In a snapshot, perf copies the whole buffer: chunks overlap. They also do because perf fills up a chunk to a
 * multiple of 8 bytes, which the next offset does not count: so the end of the first chunk is what is removed.
 */
static void remove_overlaps(struct perfdata_chunks *chunks)
{
	struct perfdata_chunk *last = NULL;

	for (size_t i = 0; i < chunks->nr; i++) {
		struct perfdata_chunk *chunk = &chunks->all[i];

		if (last && chunk->offset + chunk->len <= last->offset + last->len) {
			chunk->len = 0;
			continue;
		}
		if (last && last->offset + last->len > chunk->offset)
			last->len = chunk->offset - last->offset;
		last = chunk;
	}
}

void perfdata_chunks_complete(struct perfdata_chunks *chunks)
{
	if (chunks->nr)
		qsort(chunks->all, chunks->nr, sizeof(*chunks->all), by_offset);
	remove_overlaps(chunks);
}

const struct perfdata_chunk *perfdata_chunks_at(const struct perfdata_chunks *chunks,
						uint64_t position)
{
	size_t low = 0, high = chunks->nr;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (chunks->all[middle].offset <= position)
			low = middle + 1;
		else
			high = middle;
	}
	while (low && !chunks->all[low - 1].len)
		low--;
	return low ? &chunks->all[low - 1] : NULL;
}

bool perfdata_chunks_read(const struct perfdata_chunks *chunks, uint64_t position, uint8_t *to,
			  size_t len)
{
	while (len) {
		const struct perfdata_chunk *chunk = perfdata_chunks_at(chunks, position);
		uint64_t skip = chunk ? position - chunk->offset : 0;
		size_t part;

		if (!chunk || skip >= chunk->len)
			return false;
		part = chunk->len - skip < len ? (size_t)(chunk->len - skip) : len;
		if (in_copy(chunk->in, chunk->file_offset + skip, to, part) < part)
			return false;
		to += part;
		position += part;
		len -= part;
	}
	return true;
}

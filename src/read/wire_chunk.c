// SPDX-License-Identifier: GPL-2.0-or-later
/* wire_chunk: finds chunks in a stream that may be damaged. */
#include <string.h>

#include "read/wire_parts.h"

#define HEAD 16 /* maximum size of tag, length and sync */
#define WINDOW ((size_t)65536)
#define CHUNK_TAG WIRE_TAG(WIRE_STREAM_CHUNK, WIRE_BYTES)

bool wire_head(const uint8_t *data, size_t have, size_t *head, size_t *len)
{
	static const uint8_t sync[] = { WIRE_TAG(WIRE_CHUNK_SYNC, WIRE_FIXED32), WIRE_SYNC & 0xff,
					WIRE_SYNC >> 8 & 0xff, WIRE_SYNC >> 16 & 0xff,
					WIRE_SYNC >> 24 };
	struct pb pb = { data + 1, data + (have < HEAD ? have : HEAD) };
	uint64_t size;

	if (have < 2 || data[0] != CHUNK_TAG || !pb_varint(&pb, &size) || size > WIRE_CHUNK_MAX)
		return false;
	*head = (size_t)(pb.at - data);
	*len = (size_t)size;
	return size >= sizeof(sync) && pb.end - pb.at >= (ptrdiff_t)sizeof(sync) &&
	       !memcmp(pb.at, sync, sizeof(sync));
}

int wire_peek(struct in *in, struct wire_chunk *chunk)
{
	size_t have;
	const uint8_t *data = in_peek(in, 1, &have);

	/* Do not wait for HEAD bytes if the chunk is shorter: the next one may come much later. */
	if (!wire_head(data, have, &chunk->head, &chunk->len))
		data = in_peek(in, HEAD, &have);
	if (!have)
		return 0;
	chunk->offset = in_offset(in);
	if (!wire_head(data, have, &chunk->head, &chunk->len))
		return -1;
	data = in_peek(in, chunk->head + chunk->len, &have);
	chunk->cut = have < chunk->head + chunk->len;
	if (chunk->cut)
		chunk->len = have - chunk->head;
	chunk->data = data + chunk->head;
	return 1;
}

bool wire_ready(struct in *in)
{
	bool decided = in_ready(in, HEAD);
	size_t have, head, len;
	const uint8_t *data = in_peek(in, 0, &have);

	if (wire_head(data, have, &head, &len))
		return in_ready(in, head + len);
	return decided && in_ready(in, WINDOW);
}

void wire_resync(struct in *in)
{
	size_t have, head, len, at = 1;
	const uint8_t *data = in_peek(in, WINDOW, &have), *next;

	while (at < have) {
		next = memchr(data + at, CHUNK_TAG, have - at);
		at = next ? (size_t)(next - data) : have;
		/* A head may cross the end of the window. */
		if (have - at < HEAD && have >= WINDOW) {
			in_skip(in, at);
			data = in_peek(in, WINDOW, &have);
			at = 0;
		}
		if (at < have && wire_head(data + at, have - at, &head, &len))
			break;
		at++;
	}
	in_skip(in, at);
}

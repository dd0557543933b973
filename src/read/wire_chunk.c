// SPDX-License-Identifier: GPL-2.0-or-later
/* wire_chunk: finds chunks in a stream that may be damaged. */
#include <string.h>

#include "read/wire_parts.h"

#define LENGTH 4 /* of a length, as writers write it */
#define CHUNK_TAG WIRE_TAG(WIRE_STREAM_CHUNK, WIRE_BYTES)

static const uint8_t sync[] = { WIRE_TAG(WIRE_CHUNK_SYNC, WIRE_FIXED32), WIRE_SYNC & 0xff,
				WIRE_SYNC >> 8 & 0xff, WIRE_SYNC >> 16 & 0xff, WIRE_SYNC >> 24 };

bool wire_head(const uint8_t *data, size_t have, size_t *head, size_t *len)
{
	struct pb pb = { data + 1, data + (have < WIRE_HEAD_MAX ? have : WIRE_HEAD_MAX) };
	uint64_t size;

	if (have < 2 || data[0] != CHUNK_TAG || !pb_varint(&pb, &size) || size > WIRE_CHUNK_MAX)
		return false;
	*head = (size_t)(pb.at - data);
	*len = (size_t)size;
	return size >= sizeof(sync) && pb.end - pb.at >= (ptrdiff_t)sizeof(sync) &&
	       !memcmp(pb.at, sync, sizeof(sync));
}

static bool is_text(uint8_t c)
{
	return (c >= ' ' && c != 0x7f) || (c >= '\a' && c <= '\r') || c == 0x1b;
}

size_t wire_text(const uint8_t *data, size_t have)
{
	size_t at = 0, head, len;

	/* A line feed is also the first byte of a chunk: more bytes tell which. */
	while (at < have && is_text(data[at]) && !wire_head(data + at, have - at, &head, &len) &&
	       (data[at] != CHUNK_TAG || have - at >= WIRE_HEAD_MAX))
		at++;
	return at;
}

/* Whether the last field is a checksum, and the last of the chunk's bytes. */
static bool ends_in_check(const struct wire_chunk *chunk)
{
	struct pb message = { chunk->data, chunk->data + chunk->len };
	struct pb_field field = { 0 };

	while (message.end - message.at > WIRE_CHECK_SIZE) {
		if (pb_next(&message, &field) <= 0)
			return false;
	}
	return message.end - message.at == WIRE_CHECK_SIZE && pb_next(&message, &field) > 0 &&
	       field.number == WIRE_CHUNK_CHECK;
}

static void verify(struct wire_chunk *chunk)
{
	const uint8_t *end = chunk->data + chunk->len;
	struct pb last = { end - WIRE_CHECK_SIZE, end }; /* the sync alone is as long */
	struct pb_field field;

	chunk->check = WIRE_CHECK_NONE;
	if (chunk->cut || pb_next(&last, &field) <= 0 || field.number != WIRE_CHUNK_CHECK ||
	    field.wire != PB_FIXED32)
		return;
	if (wire_crc(0, chunk->data, chunk->len - WIRE_CHECK_SIZE) == field.value)
		chunk->check = WIRE_CHECK_GOOD;
	else if (ends_in_check(chunk)) /* and not in something that looks like it */
		chunk->check = WIRE_CHECK_WRONG;
}

int wire_peek(struct in *in, struct wire_chunk *chunk)
{
	size_t have;
	const uint8_t *data = in_peek(in, 1, &have);

	/* Do not wait for WIRE_HEAD_MAX bytes if the chunk is shorter: the next one may come much later. */
	if (!wire_head(data, have, &chunk->head, &chunk->len))
		data = in_peek(in, WIRE_HEAD_MAX, &have);
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
	verify(chunk);
	return 1;
}

bool wire_ready(struct in *in)
{
	bool decided = in_ready(in, WIRE_HEAD_MAX);
	size_t have, head, len;
	const uint8_t *data = in_peek(in, 0, &have);

	return wire_head(data, have, &head, &len) ? in_ready(in, head + len) : decided;
}

bool wire_begins(struct in *in)
{
	size_t have, text, head, len;

	while (in_ready(in, WIRE_HEAD_MAX)) {
		const uint8_t *data = in_peek(in, 0, &have);

		text = wire_text(data, have);
		if (wire_head(data + text, have - text, &head, &len))
			return in_ready(in, text + head + len);
		if (have - text >= WIRE_HEAD_MAX || in_ready(in, have + 1)) {
			in_peek(in, 0, &len);
			if (have - text >= WIRE_HEAD_MAX || len == have) /* no text, or the end */
				return true;
			continue;
		}
		return false;
	}
	return false;
}

bool wire_skip_text(struct in *in)
{
	size_t have, text, head, len;

	while (in_ready(in, WIRE_HEAD_MAX)) {
		const uint8_t *data = in_peek(in, WIRE_HEAD_MAX, &have);

		text = wire_text(data, have);
		if (!text && have && have < WIRE_HEAD_MAX && data[0] == CHUNK_TAG &&
		    !wire_head(data, have, &head, &len))
			text = 1; /* the last line */
		if (!text)
			return true;
		in_skip(in, text);
	}
	return false;
}

bool wire_resync(struct in *in)
{
	size_t have, head, len;
	const uint8_t *data, *next;

	while (in_ready(in, WIRE_HEAD_MAX)) {
		data = in_peek(in, 0, &have);
		if (!have || wire_head(data, have, &head, &len))
			return true;
		next = memchr(data + 1, CHUNK_TAG, have - 1);
		in_skip(in, next ? (uint64_t)(next - data) : have);
	}
	return false;
}

static bool can_read_record(const struct pb_field *field)
{
	struct sample_message sample;
	struct alloc_message alloc;
	struct code_message code;

	switch (field->number) {
	case WIRE_CHUNK_SAMPLE: return wire_get_sample(field->bytes, &sample);
	case WIRE_CHUNK_ALLOC: return wire_get_alloc(field->bytes, &alloc);
	case WIRE_CHUNK_CODE: return wire_get_code(field->bytes, &code);
	default: return true;
	}
}

static bool can_read(const struct wire_chunk *chunk)
{
	struct pb message = { chunk->data, chunk->data + chunk->len };
	struct pb_field field;
	int ret;

	while ((ret = pb_next(&message, &field)) > 0) {
		if ((field.number == WIRE_CHUNK_SYNC && field.wire != PB_FIXED32) ||
		    !can_read_record(&field))
			return false;
	}
	return ret == 0;
}

/* A stack may well contain the bytes of a head. */
static bool has_inner_head(const struct wire_chunk *chunk)
{
	const uint8_t *at = chunk->data + sizeof(sync), *end = chunk->data + chunk->len;
	size_t head, len;

	for (; (at = memmem(at, (size_t)(end - at), sync, sizeof(sync))); at++) {
		size_t place = (size_t)(at - chunk->data);

		for (size_t n = 2; n <= LENGTH + 1 && place >= sizeof(sync) + n; n++) {
			if (wire_head(at - n, (size_t)(end - at) + n, &head, &len) && head == n)
				return true;
		}
	}
	return false;
}

bool wire_is_broken(const struct wire_chunk *chunk)
{
	return has_inner_head(chunk) && !can_read(chunk);
}

// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/pb_out.h"

#include <string.h>

#include "base/pb.h"

#define MAX_VARINT 10

static size_t varint_size(uint64_t value)
{
	size_t size = 1;

	while (value >>= 7)
		size++;
	return size;
}

static char *write_varint(char *at, uint64_t value)
{
	for (; value >= 0x80; value >>= 7)
		*at++ = (char)(value | 0x80);
	*at++ = (char)value;
	return at;
}

static void put(struct buf *buf, uint32_t field, enum pb_wire wire, uint64_t value)
{
	char *start = buf_reserve(buf, 2 * MAX_VARINT);
	char *at = write_varint(start, (uint64_t)field << 3 | wire);

	at = write_varint(at, value);
	*at = '\0';
	buf->len += (size_t)(at - start);
}

void pb_put_uint(struct buf *buf, uint32_t field, uint64_t value)
{
	put(buf, field, PB_VARINT, value);
}

void pb_put_bytes(struct buf *buf, uint32_t field, const void *data, size_t len)
{
	put(buf, field, PB_BYTES, len);
	buf_add(buf, data, len);
}

void pb_put_packed(struct buf *buf, uint32_t field, const uint64_t *values, size_t nr)
{
	size_t start = pb_open(buf, field);
	char *at = buf_reserve(buf, nr * MAX_VARINT);

	for (size_t i = 0; i < nr; i++)
		at = write_varint(at, values[i]);
	*at = '\0';
	buf->len = (size_t)(at - buf->data);
	pb_close(buf, start);
}

void pb_put_text(struct buf *buf, uint32_t field, const char *text)
{
	pb_put_bytes(buf, field, text, strlen(text));
}

/* Most messages are short: leaves room for a length of one byte, and moves longer ones. */
size_t pb_open(struct buf *buf, uint32_t field)
{
	put(buf, field, PB_BYTES, 0);
	return buf->len;
}

void pb_close(struct buf *buf, size_t start)
{
	size_t len = buf->len - start, extra = varint_size(len) - 1;

	if (extra) {
		buf_reserve(buf, extra);
		memmove(buf->data + start + extra, buf->data + start, len);
		buf->len += extra;
		buf->data[buf->len] = '\0';
	}
	write_varint(buf->data + start - 1, len);
}

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

static void put_varint(struct buf *buf, uint64_t value)
{
	char *at = buf_reserve(buf, MAX_VARINT);

	buf->len += (size_t)(write_varint(at, value) - at);
	buf->data[buf->len] = '\0';
}

static void put_key(struct buf *buf, uint32_t field, enum pb_wire wire)
{
	put_varint(buf, (uint64_t)field << 3 | wire);
}

void pb_put_uint(struct buf *buf, uint32_t field, uint64_t value)
{
	put_key(buf, field, PB_VARINT);
	put_varint(buf, value);
}

void pb_put_bytes(struct buf *buf, uint32_t field, const void *data, size_t len)
{
	put_key(buf, field, PB_BYTES);
	put_varint(buf, len);
	buf_add(buf, data, len);
}

void pb_put_text(struct buf *buf, uint32_t field, const char *text)
{
	pb_put_bytes(buf, field, text, strlen(text));
}

/* Most messages are short: leaves room for a length of one byte, and moves longer ones. */
size_t pb_open(struct buf *buf, uint32_t field)
{
	put_key(buf, field, PB_BYTES);
	buf_addc(buf, 0);
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

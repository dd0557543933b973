// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

void buf_release(struct buf *buf)
{
	free(buf->data);
	memset(buf, 0, sizeof(*buf));
}

void buf_clear(struct buf *buf)
{
	buf->len = 0;
	if (buf->data)
		buf->data[0] = '\0';
}

void buf_grow(struct buf *buf, size_t extra)
{
	GROW(buf->data, buf->len + extra + 1, buf->cap);
}

void buf_add(struct buf *buf, const void *data, size_t len)
{
	char *at = buf_reserve(buf, len);

	if (len)
		memcpy(at, data, len);
	buf->len += len;
	buf->data[buf->len] = '\0';
}

void buf_addc(struct buf *buf, char c)
{
	char *at = buf_reserve(buf, 1);

	at[0] = c;
	at[1] = '\0';
	buf->len++;
}

void buf_adds(struct buf *buf, const char *s)
{
	buf_add(buf, s, strlen(s));
}

void buf_addf(struct buf *buf, const char *fmt, ...)
{
	va_list ap;
	int len;

	va_start(ap, fmt);
	len = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (len < 0)
		return;
	buf_reserve(buf, (size_t)len);
	va_start(ap, fmt);
	vsnprintf(buf->data + buf->len, (size_t)len + 1, fmt, ap);
	va_end(ap);
	buf->len += (size_t)len;
}

void buf_addu(struct buf *buf, uint64_t value)
{
	char text[20];
	char *at = text + sizeof(text);

	do {
		*--at = (char)('0' + value % 10);
		value /= 10;
	} while (value);
	buf_add(buf, at, (size_t)(text + sizeof(text) - at));
}

void buf_addx(struct buf *buf, uint64_t value)
{
	char text[18];
	char *at = text + sizeof(text);

	do {
		*--at = "0123456789abcdef"[value & 15];
		value >>= 4;
	} while (value);
	*--at = 'x';
	*--at = '0';
	buf_add(buf, at, (size_t)(text + sizeof(text) - at));
}

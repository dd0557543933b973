/* SPDX-License-Identifier: GPL-2.0-or-later */
/* buf: a growing run of bytes. `data` is always followed by a NUL that `len` does not count. */
#ifndef KSCOPE_BASE_BUF_H
#define KSCOPE_BASE_BUF_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct buf {
	char *data; /* NULL until something is added */
	size_t len, cap;
};

void buf_release(struct buf *buf);
void buf_clear(struct buf *buf);
void buf_grow(struct buf *buf, size_t extra); /* for buf_reserve() */
/* Makes room for `extra` more bytes and returns where they start. The caller updates len. */
static inline char *buf_reserve(struct buf *buf, size_t extra)
{
	if (buf->cap - buf->len <= extra)
		buf_grow(buf, extra);
	return buf->data + buf->len;
}
void buf_add(struct buf *buf, const void *data, size_t len);
/* The same where speed counts; literals get their lengths from the compiler. */
static inline void buf_put(struct buf *buf, const void *data, size_t len)
{
	memcpy(buf_reserve(buf, len), data, len);
	buf->len += len;
	buf->data[buf->len] = '\0';
}
#define BUF_PUT_LITERAL(buf, text) buf_put(buf, text, sizeof(text) - 1)
void buf_addc(struct buf *buf, char c);
void buf_adds(struct buf *buf, const char *s);
void buf_addf(struct buf *buf, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void buf_addu(struct buf *buf, uint64_t value); /* decimal, much faster than buf_addf */
void buf_addx(struct buf *buf, uint64_t value); /* 0x..., likewise */

#endif

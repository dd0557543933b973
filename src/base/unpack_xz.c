// SPDX-License-Identifier: GPL-2.0-or-later
/* xz, and the older lzma that some kernels still use. One library reads both. */
#include "base/unpack.h"

#include <string.h>

/*
 * Six bytes, two flag bytes that name the integrity check, and the CRC of the flags. The six bytes
 * alone are not enough: the code of a decompressor contains them too.
 */
static bool xz_magic(const uint8_t *head, size_t len)
{
	static const char checks[][7] = {
		"\0\0\xff\x12\xd9\x41",
		"\0\1\x69\x22\xde\x36",
		"\0\4\xe6\xd6\xb4\x46",
		"\0\n\xe1\xfb\x0c\xa1",
	};

	if (len < 12 || memcmp(head, "\xfd\x37zXZ\0", 6) != 0)
		return false;
	for (size_t i = 0; i < sizeof(checks) / sizeof(*checks); i++) {
		if (!memcmp(head + 6, checks[i], 6))
			return true;
	}
	return false;
}

/*
 * lzma has no magic number. Its header is a byte of properties, always the same with default
 * settings; the dictionary size, a power of two of at most 128 MB; and the length, all ones if the
 * compressor wrote to a pipe.
 */
static bool lzma_magic(const uint8_t *head, size_t len)
{
	uint32_t dictionary;

	if (len < 13 || head[0] != 0x5d)
		return false;
	dictionary = head[1] | (uint32_t)head[2] << 8 | (uint32_t)head[3] << 16 |
		     (uint32_t)head[4] << 24;
	return dictionary >= 1 << 12 && dictionary <= 1 << 27 && !(dictionary & (dictionary - 1)) &&
	       (!memcmp(head + 5, "\xff\xff\xff\xff\xff\xff\xff\xff", 8) ||
		!memcmp(head + 9, "\0\0\0\0", 4));
}

#ifdef HAVE_LZMA
#include <lzma.h>
#include <stdlib.h>

#include "base/mem.h"

#define MEMORY_MAX ((uint64_t)256 << 20) /* for the dictionary: hostile headers ask for 4 GB */

struct xz {
	struct unpack unpack;
	lzma_stream stream;
	lzma_ret (*start)(lzma_stream *stream);
};

static lzma_ret start_xz(lzma_stream *stream)
{
	return lzma_stream_decoder(stream, MEMORY_MAX, 0);
}

static lzma_ret start_lzma(lzma_stream *stream)
{
	return lzma_alone_decoder(stream, MEMORY_MAX);
}

static struct unpack *open_with(const struct unpack_ops *ops, lzma_ret (*start)(lzma_stream *))
{
	struct xz *xz = xcalloc(1, sizeof(*xz));

	xz->unpack.ops = ops;
	xz->start = start;
	if (start(&xz->stream) != LZMA_OK)
		mem_ran_out();
	return &xz->unpack;
}

static struct unpack *xz_open(void)
{
	return open_with(&unpack_xz, start_xz);
}

static struct unpack *lzma_open(void)
{
	return open_with(&unpack_lzma, start_lzma);
}

static int xz_step(struct unpack *u, const uint8_t *src, size_t *src_len, uint8_t *dst,
		   size_t *dst_len)
{
	struct xz *xz = (struct xz *)u;
	lzma_ret ret;

	xz->stream.next_in = src;
	xz->stream.avail_in = *src_len;
	xz->stream.next_out = dst;
	xz->stream.avail_out = *dst_len;
	ret = lzma_code(&xz->stream, LZMA_RUN);
	*src_len -= xz->stream.avail_in;
	*dst_len -= xz->stream.avail_out;
	if (ret == LZMA_MEM_ERROR)
		mem_ran_out();
	if (ret == LZMA_STREAM_END)
		return xz->start(&xz->stream) == LZMA_OK ? 1 : -1;
	return ret == LZMA_OK || ret == LZMA_BUF_ERROR ? 0 : -1;
}

static void xz_close(struct unpack *u)
{
	lzma_end(&((struct xz *)u)->stream);
	free(u);
}
#else
static struct unpack *xz_open(void)
{
	return NULL;
}
#define lzma_open xz_open
#define xz_step NULL
#define xz_close NULL
#endif

const struct unpack_ops unpack_xz = {
	.name = "xz",
	.magic = xz_magic,
	.open = xz_open,
	.step = xz_step,
	.close = xz_close,
};

const struct unpack_ops unpack_lzma = {
	.name = "lzma",
	.magic = lzma_magic,
	.open = lzma_open,
	.step = xz_step,
	.close = xz_close,
};

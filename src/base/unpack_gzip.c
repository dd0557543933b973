// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/unpack.h"

static bool gzip_magic(const uint8_t *head, size_t len)
{
	return len >= 3 && head[0] == 0x1f && head[1] == 0x8b && head[2] == 8;
}

#ifdef HAVE_ZLIB
#include <stdlib.h>
#include <zlib.h>

#include "base/mem.h"

struct gzip {
	struct unpack unpack;
	z_stream stream;
};

static struct unpack *gzip_open(void)
{
	struct gzip *g = xcalloc(1, sizeof(*g));

	g->unpack.ops = &unpack_gzip;
	if (inflateInit2(&g->stream, 15 + 16) != Z_OK) {
		free(g);
		return NULL;
	}
	return &g->unpack;
}

static int gzip_step(struct unpack *u, const uint8_t *src, size_t *src_len, uint8_t *dst,
		     size_t *dst_len)
{
	struct gzip *g = (struct gzip *)u;
	int ret;

	g->stream.next_in = (uint8_t *)src;
	g->stream.avail_in = (uInt)*src_len;
	g->stream.next_out = dst;
	g->stream.avail_out = (uInt)*dst_len;
	ret = inflate(&g->stream, Z_NO_FLUSH);
	*src_len -= g->stream.avail_in;
	*dst_len -= g->stream.avail_out;
	if (ret == Z_STREAM_END)
		return inflateReset(&g->stream) == Z_OK ? 1 : -1;
	return ret == Z_OK || ret == Z_BUF_ERROR ? 0 : -1;
}

static void gzip_close(struct unpack *u)
{
	inflateEnd(&((struct gzip *)u)->stream);
	free(u);
}
#else
static struct unpack *gzip_open(void)
{
	return NULL;
}
#define gzip_step NULL
#define gzip_close NULL
#endif

const struct unpack_ops unpack_gzip = {
	.name = "gzip",
	.magic = gzip_magic,
	.open = gzip_open,
	.step = gzip_step,
	.close = gzip_close,
};

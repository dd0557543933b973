// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/unpack.h"

#include <string.h>

static bool zstd_magic(const uint8_t *head, size_t len)
{
	return len >= 4 && !memcmp(head, "\x28\xb5\x2f\xfd", 4);
}

#ifdef HAVE_ZSTD
#include <zstd.h>

#include "base/mem.h"
#include <stdlib.h>

struct zstd {
	struct unpack unpack;
	ZSTD_DStream *stream;
};

static struct unpack *zstd_open(void)
{
	struct zstd *z = xcalloc(1, sizeof(*z));

	z->unpack.ops = &unpack_zstd;
	z->stream = ZSTD_createDStream();
	return &z->unpack;
}

static int zstd_step(struct unpack *u, const uint8_t *src, size_t *src_len, uint8_t *dst,
		     size_t *dst_len)
{
	struct zstd *z = (struct zstd *)u;
	ZSTD_inBuffer in = { src, *src_len, 0 };
	ZSTD_outBuffer out = { dst, *dst_len, 0 };
	size_t left = z->stream ? ZSTD_decompressStream(z->stream, &out, &in) : (size_t)-1;

	*src_len = in.pos;
	*dst_len = out.pos;
	if (ZSTD_isError(left))
		return -1;
	return left == 0;
}

static void zstd_close(struct unpack *u)
{
	ZSTD_freeDStream(((struct zstd *)u)->stream);
	free(u);
}
#else
static struct unpack *zstd_open(void)
{
	return NULL;
}
#define zstd_step NULL
#define zstd_close NULL
#endif

const struct unpack_ops unpack_zstd = {
	.name = "zstd",
	.magic = zstd_magic,
	.open = zstd_open,
	.step = zstd_step,
	.close = zstd_close,
};

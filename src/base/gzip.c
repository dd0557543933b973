// SPDX-License-Identifier: GPL-2.0-or-later
/* gzip: the only user of zlib, for base/unpack.h and base/pack.h. */
#include "base/pack.h"

#include <string.h>

#include "base/unpack.h"

static bool gzip_magic(const uint8_t *head, size_t len)
{
	return len >= 3 && head[0] == 0x1f && head[1] == 0x8b && head[2] == 8;
}

#ifdef HAVE_ZLIB
#include <errno.h>
#include <stdlib.h>
#include <zlib.h>

#include "base/fd.h"
#include "base/mem.h"

#define FORMAT (15 + 16) /* the largest window, and a header of gzip, without a time */
#define ROOM 65536
#define LEVEL 5 /* takes half the time of the default, 6, for 1 % more bytes of a profile */
#define MOST ((size_t)1 << 30) /* bytes in one call of zlib */

struct gzip {
	struct unpack unpack;
	z_stream stream;
};

static struct unpack *gzip_open(void)
{
	struct gzip *g = xcalloc(1, sizeof(*g));

	g->unpack.ops = &unpack_gzip;
	if (inflateInit2(&g->stream, FORMAT) != Z_OK)
		mem_ran_out();
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
	if (ret == Z_MEM_ERROR)
		mem_ran_out();
	if (ret == Z_STREAM_END)
		return inflateReset(&g->stream) == Z_OK ? 1 : -1;
	return ret == Z_OK || ret == Z_BUF_ERROR ? 0 : -1;
}

static void gzip_close(struct unpack *u)
{
	inflateEnd(&((struct gzip *)u)->stream);
	free(u);
}

struct gzip_pack {
	struct pack pack;
	z_stream stream;
	uint8_t room[ROOM];
};

static struct pack *pack_open(void)
{
	struct gzip_pack *gz = xcalloc(1, sizeof(*gz));

	gz->pack.ops = &pack_gzip;
	if (deflateInit2(&gz->stream, LEVEL, Z_DEFLATED, FORMAT, MAX_MEM_LEVEL,
			 Z_DEFAULT_STRATEGY) != Z_OK)
		mem_ran_out();
	return &gz->pack;
}

/* Compresses all that the stream has. */
static int drain(struct gzip_pack *gz, int fd, int flush)
{
	do {
		int error;

		gz->stream.next_out = gz->room;
		gz->stream.avail_out = ROOM;
		if (deflate(&gz->stream, flush) == Z_STREAM_ERROR)
			return EIO;
		error = fd_write(fd, gz->room, ROOM - gz->stream.avail_out);
		if (error)
			return error;
	} while (!gz->stream.avail_out);
	return 0;
}

static int pack_write(struct pack *pack, int fd, const void *data, size_t len,
		      enum pack_until until)
{
	struct gzip_pack *gz = (struct gzip_pack *)pack;
	static const int flush[] = {
		[PACK_MORE] = Z_NO_FLUSH, [PACK_SHARE] = Z_SYNC_FLUSH, [PACK_END] = Z_FINISH
	};
	const uint8_t *bytes = data;
	int error = 0;

	for (; len > MOST && !error; bytes += MOST, len -= MOST)
		error = pack_write(pack, fd, bytes, MOST, PACK_MORE);
	gz->stream.next_in = (uint8_t *)bytes;
	gz->stream.avail_in = (uInt)len;
	return error ? error : drain(gz, fd, flush[until]);
}

static void pack_close(struct pack *pack)
{
	deflateEnd(&((struct gzip_pack *)pack)->stream);
	free(pack);
}
#else
static struct unpack *gzip_open(void)
{
	return NULL;
}

#define gzip_step NULL
#define gzip_close NULL
#define pack_open NULL
#define pack_write NULL
#define pack_close NULL
#endif

const struct unpack_ops unpack_gzip = {
	.name = "gzip",
	.magic = gzip_magic,
	.open = gzip_open,
	.step = gzip_step,
	.close = gzip_close,
};

const struct pack_ops pack_gzip = {
	.extension = ".gz",
	.library = "zlib",
	.open = pack_open,
	.write = pack_write,
	.close = pack_close,
};

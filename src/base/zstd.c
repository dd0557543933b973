// SPDX-License-Identifier: GPL-2.0-or-later
/* zstd: the only user of libzstd, for base/unpack.h and base/pack.h. */
#include "base/pack.h"

#include <string.h>

#include "base/unpack.h"

static bool zstd_magic(const uint8_t *head, size_t len)
{
	return len >= 4 && !memcmp(head, "\x28\xb5\x2f\xfd", 4);
}

#ifdef HAVE_ZSTD
#include <errno.h>
#include <stdlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "base/fd.h"
#include "base/mem.h"

#define ROOM 65536

/* Whether a call of the library failed. Does not return if memory ran out. */
static bool failed(size_t ret)
{
	if (ZSTD_getErrorCode(ret) == ZSTD_error_memory_allocation)
		mem_ran_out();
	return ZSTD_isError(ret);
}

struct zstd {
	struct unpack unpack;
	ZSTD_DStream *stream;
};

static struct unpack *zstd_open(void)
{
	struct zstd *z = xcalloc(1, sizeof(*z));

	z->unpack.ops = &unpack_zstd;
	z->stream = ZSTD_createDStream();
	if (!z->stream)
		mem_ran_out();
	return &z->unpack;
}

static int zstd_step(struct unpack *u, const uint8_t *src, size_t *src_len, uint8_t *dst,
		     size_t *dst_len)
{
	struct zstd *z = (struct zstd *)u;
	ZSTD_inBuffer in = { src, *src_len, 0 };
	ZSTD_outBuffer out = { dst, *dst_len, 0 };
	size_t left = ZSTD_decompressStream(z->stream, &out, &in);

	*src_len = in.pos;
	*dst_len = out.pos;
	if (failed(left))
		return -1;
	return left == 0;
}

static void zstd_close(struct unpack *u)
{
	ZSTD_freeDStream(((struct zstd *)u)->stream);
	free(u);
}

struct zstd_pack {
	struct pack pack;
	ZSTD_CCtx *stream;
	uint8_t room[ROOM];
};

/* The default level. With a checksum: a reader then notices damage. */
static struct pack *pack_open(void)
{
	struct zstd_pack *z = xcalloc(1, sizeof(*z));

	z->pack.ops = &pack_zstd;
	z->stream = ZSTD_createCCtx();
	if (!z->stream || failed(ZSTD_CCtx_setParameter(z->stream, ZSTD_c_checksumFlag, 1)))
		mem_ran_out();
	return &z->pack;
}

static int pack_write(struct pack *pack, int fd, const void *data, size_t len,
		      enum pack_until until)
{
	static const ZSTD_EndDirective flush[] = {
		[PACK_MORE] = ZSTD_e_continue, [PACK_SHARE] = ZSTD_e_flush, [PACK_END] = ZSTD_e_end
	};
	struct zstd_pack *z = (struct zstd_pack *)pack;
	ZSTD_inBuffer in = { data, len, 0 };
	size_t left;

	do {
		ZSTD_outBuffer out = { z->room, ROOM, 0 };
		int error;

		left = ZSTD_compressStream2(z->stream, &out, &in, flush[until]);
		error = failed(left) ? EIO : fd_write(fd, z->room, out.pos);
		if (error)
			return error;
	} while (in.pos < in.size || (until != PACK_MORE && left));
	return 0;
}

static void pack_close(struct pack *pack)
{
	ZSTD_freeCCtx(((struct zstd_pack *)pack)->stream);
	free(pack);
}
#else
static struct unpack *zstd_open(void)
{
	return NULL;
}
#define zstd_step NULL
#define zstd_close NULL
#define pack_open NULL
#define pack_write NULL
#define pack_close NULL
#endif

const struct unpack_ops unpack_zstd = {
	.name = "zstd",
	.magic = zstd_magic,
	.open = zstd_open,
	.step = zstd_step,
	.close = zstd_close,
};

const struct pack_ops pack_zstd = {
	.extension = ".zst",
	.library = "libzstd",
	.open = pack_open,
	.write = pack_write,
	.close = pack_close,
};

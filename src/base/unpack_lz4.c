// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * lz4 in the legacy format used for kernels (lz4 -l): blocks of up to 8 MB when decompressed, each
 * preceded by its compressed length. Nothing marks the end.
 */
#include "base/unpack.h"

#include <string.h>

#define WORD 4 /* bytes: the magic number, and each length */

static bool lz4_magic(const uint8_t *head, size_t len)
{
	return len >= WORD && !memcmp(head, "\x02\x21\x4c\x18", WORD);
}

#ifdef HAVE_LZ4
#include <lz4.h>
#include <stdlib.h>

#include "base/mem.h"

#define BLOCK ((size_t)8 << 20)
#define PACKED_MAX ((size_t)LZ4_COMPRESSBOUND(8 << 20))

struct lz4 {
	struct unpack unpack;
	uint8_t *packed, *block;
	bool in_block;	   /* packed collects a block; otherwise a length, or the magic number */
	size_t have, want; /* bytes in packed */
	size_t at, end;	   /* block[at..end) is not returned yet */
	bool begun;
};

static struct unpack *lz4_open(void)
{
	struct lz4 *lz4 = xcalloc(1, sizeof(*lz4));

	lz4->unpack.ops = &unpack_lz4;
	lz4->packed = xmalloc(PACKED_MAX);
	lz4->block = xmalloc(BLOCK);
	lz4->want = WORD;
	return &lz4->unpack;
}

static size_t min(size_t a, size_t b)
{
	return a < b ? a : b;
}

static int take_block(struct lz4 *lz4)
{
	int len = LZ4_decompress_safe((char *)lz4->packed, (char *)lz4->block, (int)lz4->have,
				      (int)BLOCK);

	if (len < 0)
		return -1;
	lz4->at = 0;
	lz4->end = (size_t)len;
	lz4->in_block = false;
	lz4->want = WORD;
	return 0;
}

static int take_word(struct lz4 *lz4)
{
	const uint8_t *p = lz4->packed;
	uint32_t word = p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;

	if (lz4_magic(p, WORD)) { /* also between two streams */
		lz4->begun = true;
		return 0;
	}
	if (!lz4->begun || !word || word > PACKED_MAX)
		return -1;
	lz4->in_block = true;
	lz4->want = word;
	return 0;
}

static int take(struct lz4 *lz4)
{
	int ret = lz4->in_block ? take_block(lz4) : take_word(lz4);

	lz4->have = 0;
	return ret;
}

static int lz4_step(struct unpack *u, const uint8_t *src, size_t *src_len, uint8_t *dst,
		    size_t *dst_len)
{
	struct lz4 *lz4 = (struct lz4 *)u;
	size_t used = 0, made = 0;

	while (made < *dst_len) {
		size_t room = min(*dst_len - made, lz4->end - lz4->at);
		size_t more = min(lz4->want - lz4->have, *src_len - used);

		if (room) {
			memcpy(dst + made, lz4->block + lz4->at, room);
			lz4->at += room;
			made += room;
			continue;
		}
		if (!more)
			break;
		memcpy(lz4->packed + lz4->have, src + used, more);
		lz4->have += more;
		used += more;
		if (lz4->have == lz4->want && take(lz4) < 0)
			return -1;
	}
	*src_len = used;
	*dst_len = made;
	return !lz4->in_block && !lz4->have && lz4->at == lz4->end;
}

static void lz4_close(struct unpack *u)
{
	struct lz4 *lz4 = (struct lz4 *)u;

	free(lz4->packed);
	free(lz4->block);
	free(lz4);
}
#else
static struct unpack *lz4_open(void)
{
	return NULL;
}
#define lz4_step NULL
#define lz4_close NULL
#endif

const struct unpack_ops unpack_lz4 = {
	.name = "lz4",
	.endless = true,
	.magic = lz4_magic,
	.open = lz4_open,
	.step = lz4_step,
	.close = lz4_close,
};

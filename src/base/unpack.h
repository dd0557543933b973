/* SPDX-License-Identifier: GPL-2.0-or-later */
/* unpack: streaming decompression, one interface for zstd, gzip, xz, lzma and lz4. */
#ifndef KSCOPE_BASE_UNPACK_H
#define KSCOPE_BASE_UNPACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct unpack;

struct unpack_ops {
	const char *name;
	bool endless; /* has no end marker: step() returns 1 wherever the stream may end */
	bool (*magic)(const uint8_t *head, size_t len);
	struct unpack *(*open)(void); /* NULL: built without the library */
	/*
	 * Consumes some of src and fills some of dst; sets both lengths to what was used.
	 * 0: continue, 1: a frame ended (another may follow), -1: damaged.
	 */
	int (*step)(struct unpack *u, const uint8_t *src, size_t *src_len, uint8_t *dst,
		    size_t *dst_len);
	void (*close)(struct unpack *u);
};

struct unpack {
	const struct unpack_ops *ops;
};

extern const struct unpack_ops unpack_zstd, unpack_gzip, unpack_xz, unpack_lzma, unpack_lz4;

#define UNPACK_HEAD 16 /* bytes that unpack_probe() needs */

/* The decompressor for these bytes; NULL: not compressed, or unknown. */
const struct unpack_ops *unpack_probe(const uint8_t *head, size_t len);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* unpack: streaming decompression, one face for zstd, gzip, xz, lzma and lz4. */
#ifndef KSCOPE_BASE_UNPACK_H
#define KSCOPE_BASE_UNPACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct unpack;

struct unpack_ops {
	const char *name;
	bool endless; /* only the end of the input says where it ends: every 1 is maybe the last */
	bool (*magic)(const uint8_t *head, size_t len);
	struct unpack *(*open)(void); /* NULL: built without the library */
	/*
	 * Consumes some of src and produces some of dst: both lengths are updated to what was done.
	 * 0: go on, 1: a frame ended (another may follow), -1: damaged.
	 */
	int (*step)(struct unpack *u, const uint8_t *src, size_t *src_len, uint8_t *dst,
		    size_t *dst_len);
	void (*close)(struct unpack *u);
};

struct unpack {
	const struct unpack_ops *ops;
};

extern const struct unpack_ops unpack_zstd, unpack_gzip, unpack_xz, unpack_lzma, unpack_lz4;

#define UNPACK_HEAD 16 /* bytes that tell which it is */

/* Which of them packed these bytes; NULL: none. */
const struct unpack_ops *unpack_probe(const uint8_t *head, size_t len);

#endif

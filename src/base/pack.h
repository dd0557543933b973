/* SPDX-License-Identifier: GPL-2.0-or-later */
/* pack: streaming compression of outputs, one interface for gzip and zstd. */
#ifndef KSCOPE_BASE_PACK_H
#define KSCOPE_BASE_PACK_H

#include <stddef.h>

enum pack_until {
	PACK_MORE,  /* more follows */
	PACK_SHARE, /* likewise, but a reader can already decompress all of this */
	PACK_END,
};

struct pack;

struct pack_ops {
	const char *extension, *library;
	struct pack *(*open)(void); /* NULL, or returns NULL: built without the library */
	/* Compresses to a file descriptor. Returns 0 or an errno. */
	int (*write)(struct pack *pack, int fd, const void *data, size_t len,
		     enum pack_until until);
	void (*close)(struct pack *pack);
};

struct pack {
	const struct pack_ops *ops;
};

extern const struct pack_ops pack_gzip, pack_zstd;

/* By the extension; NULL: not compressed. */
const struct pack_ops *pack_by_name(const char *path);
/* The length of a path without the extension of a compressed file. */
size_t pack_stem(const char *path);

#endif

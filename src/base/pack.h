/* SPDX-License-Identifier: GPL-2.0-or-later */
/* pack: streaming compression with gzip, of outputs whose name ends in .gz. */
#ifndef KSCOPE_BASE_PACK_H
#define KSCOPE_BASE_PACK_H

#include <stddef.h>

#define PACK_EXTENSION ".gz"

struct pack;

enum pack_until {
	PACK_MORE,  /* more follows */
	PACK_SHARE, /* likewise, but a reader can already decompress all of this */
	PACK_END,
};

/* The length of a path without PACK_EXTENSION, if it has that, else of the whole path. */
size_t pack_stem(const char *path);
struct pack *pack_open(void); /* NULL: built without the library */
/* Compresses to a file descriptor. Returns 0 or an errno. */
int pack_write(struct pack *pack, int fd, const void *data, size_t len, enum pack_until until);
void pack_close(struct pack *pack); /* NULL is fine */

#endif

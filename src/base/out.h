/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * out: buffered output that is whole or absent. A regular file is written under no name (or a
 * temporary one) and takes its name in out_commit(); "-" is stdout, and devices and pipes are
 * written as they are. Errors stick: write on, and look once at the result of out_commit().
 */
#ifndef KSCOPE_BASE_OUT_H
#define KSCOPE_BASE_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct out {
	const char *path; /* borrowed: must outlive the out */
	int fd;
	bool named;   /* takes its name in the commit */
	bool spooled; /* a seekable stand-in for stdout or a pipe, copied there in the commit */
	char *target; /* `path` with its symbolic links followed; only if named */
	char *temp;   /* the temporary name, where the file system cannot do without */
	uint8_t *data;
	size_t len;
	uint64_t flushed; /* bytes before data[0] */
	int failed;	  /* errno of the first failure */
};

/* need_seek: out_patch() will be called. */
int out_open(struct out *out, const char *path, bool need_seek, struct err *err);
void out_write(struct out *out, const void *data, size_t len);
void out_flush(struct out *out);
/* The next `len` bytes of the output, OUT_ROOM at most, to be filled in before the next call. */
#define OUT_ROOM ((size_t)256 << 10)
static inline uint8_t *out_room(struct out *out, size_t len)
{
	if (len > OUT_ROOM - out->len)
		out_flush(out);
	out->len += len;
	return out->data + out->len - len;
}
void out_puts(struct out *out, const char *s);
uint64_t out_offset(const struct out *out);
/* Overwrites bytes written before. */
void out_patch(struct out *out, uint64_t offset, const void *data, size_t len);
/* True once writing has failed: a long job may stop early. */
bool out_failed(const struct out *out);
/* Makes the file appear. After -1 nothing of it is left. Either way the out is released. */
int out_commit(struct out *out, struct err *err);
/* Drops what was written. Harmless after out_commit() and on a zeroed out. */
void out_abandon(struct out *out);

#endif

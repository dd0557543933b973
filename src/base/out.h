/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * out: buffered output, complete or absent. A regular file is written without a name (or under a
 * temporary one) and gets its name in out_commit(); "-" is stdout; devices and pipes are written
 * directly. An output whose name ends in .gz or .zst is compressed. Errors stick: keep writing and
 * check only the result of out_commit().
 */
#ifndef KSCOPE_BASE_OUT_H
#define KSCOPE_BASE_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/err.h"

struct pack_ops;

/* The file or folder that an output replaces. The output gets its permissions and, where this user may, its owner. */
struct out_replaced {
	bool there;
	struct stat st;
};

struct out {
	const char *path; /* borrowed: must outlive the out */
	int fd;
	bool named;	 /* a regular file, which gets its name in the commit */
	bool spooled;	 /* a seekable temporary file; the commit copies it to stdout or the pipe */
	bool plain;	 /* a terminal: control characters are replaced */
	char *target;	 /* `path` with its symbolic links followed; NULL for stdout */
	char *temp;	 /* a temporary name, if O_TMPFILE does not work here */
	bool is_private; /* if it replaces nothing, it is for this user alone */
	struct out_replaced replaced;
	struct pack *pack; /* NULL: not compressed */
	uint8_t *data;
	size_t len;
	uint64_t flushed; /* bytes before data[0], uncompressed */
	int failed;	  /* errno of the first failure */
};

/* need_seek: out_patch() will be called; such an output cannot be compressed. */
int out_open(struct out *out, const char *path, bool need_seek, struct err *err);
/* The same, but a new file is for this user alone, as a recording is: it may contain the target's memory. */
int out_open_private(struct out *out, const char *path, bool need_seek, struct err *err);
/* The same, but compressed in this way whatever the name is; NULL: not at all. */
int out_open_packed(struct out *out, const char *path, const struct pack_ops *ops, bool need_seek,
		    struct err *err);
/* A file without a name, which is gone after out_abandon(). For out_file(). */
int out_open_temporary(struct out *out, struct err *err);
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
/* Overwrites bytes that were already written. */
void out_patch(struct out *out, uint64_t offset, const void *data, size_t len);
/* The file's descriptor, for a library that writes the whole output. -1: the output is no file, or compressed. */
int out_file(const struct out *out);
/* Flushes the buffer if somebody may read along: a pipe or a device, but not a file. */
void out_share(struct out *out);
/* True once a write has failed, so that a long job can stop early. */
bool out_failed(const struct out *out);
/* Makes the file appear. On -1 no partial file remains. Always releases the out. */
int out_commit(struct out *out, struct err *err);
/* Discards the output. Harmless after out_commit() and on a zeroed out. */
void out_abandon(struct out *out);

/* For others that create files: */

#define OUT_TRAP 10000 /* like an errno, see out_is_trap() */
/*
 * Whether a file is a trap: in a folder like /tmp, where everybody may create files, it belongs to neither this user
 * nor the folder's owner. It may be a link to a file that its owner may not write. A folder, too: as an output, it
 * would keep its owner.
 */
bool out_is_trap(const struct stat *folder, const struct stat *file, uid_t me);
/*
 * The target of a chain of symbolic links, whether it exists or not. The caller frees it. NULL with errno set: a loop,
 * or a trap (OUT_TRAP).
 */
char *out_follow(const char *path);
/* Gives a file or folder the permissions of what it replaces. Returns 0 or an errno. */
int out_take_place(int fd, const struct out_replaced *replaced);

/* A temporary name beside a file, the nth. The caller frees it. */
char *out_temp_name(const char *target, int nr);
/* Sets err to what errno says of an output, with a hint. Returns -1. */
int out_error(const char *path, int error, struct err *err);

#endif

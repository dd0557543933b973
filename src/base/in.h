/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * in: an input stream to peek at and then skip. A file, a pipe, stdin ("-") and their compressed
 * forms (zstd, gzip, xz, lzma, lz4) look alike. Only a window is kept in memory, whatever the size
 * of the input.
 */
#ifndef KSCOPE_BASE_IN_H
#define KSCOPE_BASE_IN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/unpack.h"

struct in {
	char *path; /* for messages; "<stdin>" */
	int fd;
	uint64_t size;	       /* of the file, 0 if unknown: for progress */
	uint64_t taken;	       /* bytes read from fd so far: for progress */
	uint64_t packed_size;  /* the compressed size, if fd is a decompressed copy, else 0 */
	struct unpack *unpack; /* NULL if the input is not compressed */
	struct packed *packed; /* bytes that were read but not decompressed yet */
	uint8_t *data;	       /* the window: data[at..end) is not skipped yet */
	size_t at, end, cap;
	uint64_t base; /* offset of data[0] in the (decompressed) stream */
	bool eof;
	struct err err; /* a read or decompression error, which also ends the stream */
};

/* The most a peek may ask for: bounds every length read from the input. */
#define IN_MAX_PEEK ((size_t)64 << 20)

int in_open(struct in *in, const char *path, struct err *err);
/* Takes ownership of the descriptor. The path is only for messages. */
int in_open_fd(struct in *in, int fd, const char *path, struct err *err);
/* Of a pipe that is still being written: reads nothing yet, and does not decompress. */
void in_open_live(struct in *in, int fd, const char *path);
/* Reads from a copy of `data` instead of a file. For fuzzing and nested data. */
void in_open_memory(struct in *in, const char *name, const void *data, size_t len);
/* Sets the name for messages. */
void in_rename(struct in *in, const char *name);
void in_close(struct in *in);

/*
 * Returns at least `want` bytes if the stream has them, and any more that are buffered; *have is
 * how many. Fewer than `want` means the stream ends there. Valid until the next in_ call.
 */
const uint8_t *in_peek(struct in *in, size_t want, size_t *have);
/*
 * Whether in_peek() can answer without waiting for a pipe's writer: `want` bytes are at hand, or the
 * stream has ended.
 */
bool in_ready(struct in *in, size_t want);
/* Waits until the pipe's writer has written more, or closed it. */
void in_wait(struct in *in);
/* True if the bytes come from a pipe or a device: the stream may be read only once. */
bool in_streams(const struct in *in);
/* Returns how many bytes were skipped: fewer than n only at the end. */
uint64_t in_skip(struct in *in, uint64_t n);
static inline uint64_t in_offset(const struct in *in)
{
	return in->base + in->at;
}

/*
 * Forward or back. Copies compressed and piped input to an unlinked temporary file first. Compressed data that
 * would fill the disk (see spool_is_bomb()) ends early, with in->err set.
 */
int in_seek(struct in *in, uint64_t offset, struct err *err);
/* The length of the whole (decompressed) stream; may copy it to a file as in_seek() does. */
int in_length(struct in *in, uint64_t *length, struct err *err);
/*
 * Copies `len` bytes from `offset`, after in_length(); the window stays where it is. Returns how many
 * there were: fewer only at the end.
 */
size_t in_copy(struct in *in, uint64_t offset, void *to, size_t len);
/* The size of the input as far as known; of compressed input, the compressed size. */
uint64_t in_given(const struct in *in);
/* A second, independent view of the same bytes, after in_length(). */
int in_clone(struct in *copy, struct in *in, size_t window, struct err *err);

#endif

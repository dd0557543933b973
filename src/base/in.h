/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * in: bytes to look at and then skip. A file, a pipe, stdin ("-") and their packed forms (zstd,
 * gzip, xz, lzma, lz4) look alike. Nothing is kept but a window, so memory does not follow the size
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
	struct unpack *unpack; /* and what was read but not unpacked yet */
	struct packed *packed;
	uint8_t *data; /* the window: data[at..end) is not skipped yet */
	size_t at, end, cap;
	uint64_t base; /* offset of data[0] in the (unpacked) stream */
	bool eof;
	struct err err; /* a read or unpack error; the stream then ends there */
};

/* The longest window a peek may ask for: a bound for every length read from input. */
#define IN_MAX_PEEK ((size_t)64 << 20)

int in_open(struct in *in, const char *path, struct err *err);
/* Reads from memory instead, which must outlive the in. For fuzzing and nested data. */
void in_open_memory(struct in *in, const char *name, const void *data, size_t len);
void in_close(struct in *in);

/*
 * At least `want` bytes if there are as many, and however many more are at hand: *have tells.
 * Fewer than `want` means the stream ends there. The bytes stay until the next in_ call.
 */
const uint8_t *in_peek(struct in *in, size_t want, size_t *have);
/* Returns how much was skipped: less than n only at the end. */
uint64_t in_skip(struct in *in, uint64_t n);
static inline uint64_t in_offset(const struct in *in)
{
	return in->base + in->at;
}

/* Forward and back. Packed and piped input is first copied to an unlinked temporary file. */
int in_seek(struct in *in, uint64_t offset, struct err *err);
/* The length of the whole (unpacked) stream, by the same means. */
int in_length(struct in *in, uint64_t *length, struct err *err);
/*
 * Copies `len` bytes from `offset`, after in_length(); the window stays where it is. Returns how many
 * there were: fewer only at the end.
 */
size_t in_copy(struct in *in, uint64_t offset, void *to, size_t len);
/* A second, independent view of the same bytes, after in_length(). */
int in_clone(struct in *copy, struct in *in, size_t window, struct err *err);

#endif

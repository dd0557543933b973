/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tar: the part of the tar format (POSIX ustar) that kscope's archives use: regular files, with
 * short relative names. Everything else is refused. doc/dependencies.md says why it is not a library.
 */
#ifndef KSCOPE_BASE_TAR_H
#define KSCOPE_BASE_TAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/in.h"
#include "base/out.h"

#define TAR_BLOCK 512
#define TAR_NAME 257 /* the longest name, with its NUL */

struct tar_member {
	char name[TAR_NAME];
	uint64_t size;
	uint64_t at; /* offset of its header in the (decompressed) stream */
};

/* Whether these first bytes of a stream are those of an archive whose first member has this name. */
bool tar_probe(const uint8_t *head, size_t len, const char *first);
/*
 * Reads the next header. Returns 1, after which the contents follow, then tar_padding() bytes; 0 at
 * the end; -1 with err set.
 */
int tar_next(struct in *in, struct tar_member *member, struct err *err);
/* The bytes between the contents of a member of this size and the next header. */
static inline size_t tar_padding(uint64_t size)
{
	return (size_t)(-size % TAR_BLOCK);
}

/* Whether a name is short enough, and does not lead out of the folder it is extracted to. */
bool tar_name_fits(const char *name);
/* Writes a header: owner, time and mode are always the same. The contents and padding follow. */
void tar_put_header(struct out *out, const char *name, uint64_t size);
void tar_put_padding(struct out *out, uint64_t size);
void tar_put_end(struct out *out);

#endif

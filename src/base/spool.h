/* SPDX-License-Identifier: GPL-2.0-or-later */
/* spool: an unlinked temporary file, for bytes that have to be read or written twice. */
#ifndef KSCOPE_BASE_SPOOL_H
#define KSCOPE_BASE_SPOOL_H

#include <stdbool.h>
#include <stdint.h>

/* Compressed data beyond both is a bomb: recordings and binaries never compress that well. */
#define SPOOL_BOMB_SIZE ((uint64_t)256 << 20)
#define SPOOL_BOMB_RATIO 1000

/* $TMPDIR, or /tmp. */
const char *spool_folder(void);
/* A file in spool_folder() that disappears when closed. On error returns -1 and sets errno. */
int spool_file(void);
/* Whether `plain` bytes are too many to spool for `packed` compressed ones. */
bool spool_is_bomb(uint64_t packed, uint64_t plain);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * rows: keeps rows of one size in groups, such as the samples of each thread. Groups can be read one by one, several
 * times. Rows beyond ROWS_KEEP bytes go to a temporary file, so their number does not determine the memory.
 */
#ifndef KSCOPE_BASE_ROWS_H
#define KSCOPE_BASE_ROWS_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define ROWS_KEEP ((size_t)32 << 20)

struct rows {
	size_t size; /* of a row */
	struct rows_group {
		uint8_t *data;
		size_t len, cap; /* bytes in memory, which come after the pieces in the file */
		struct rows_piece {
			uint64_t offset, len;
		} * pieces;
		size_t nr_pieces, cap_pieces;
	} * groups;
	size_t nr_groups, cap_groups;
	size_t kept;   /* bytes in memory */
	uint64_t file; /* bytes in the file */
	int fd;	       /* -1: there is none */
	int failed;    /* errno of the first failure */
};

void rows_init(struct rows *rows, size_t size);
void rows_release(struct rows *rows);
/* Groups are numbers from 0 on, without large holes. Errors stick: check rows_check() at the end. */
void rows_add(struct rows *rows, uint32_t group, const void *row);
/* Returns -1 and sets err if the temporary file failed. */
int rows_check(const struct rows *rows, struct err *err);

struct rows_reader {
	struct rows *rows;
	const struct rows_group *group;
	size_t piece;
	uint64_t offset; /* in the piece */
	const uint8_t *at, *end;
	uint8_t *buffer;
};

/* Reads a group from its first row on. Do not add rows until rows_end(). */
void rows_begin(struct rows_reader *reader, struct rows *rows, uint32_t group);
/* The next row, valid until the next call; NULL: there is none. Aligned as by malloc() if the size of rows is. */
const void *rows_next(struct rows_reader *reader);
void rows_end(struct rows_reader *reader);

#endif

// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/rows.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/spool.h"

#define BUFFER ((size_t)64 << 10)

void rows_init(struct rows *rows, size_t size)
{
	*rows = (struct rows){ .size = size, .fd = -1 };
}

void rows_release(struct rows *rows)
{
	for (size_t i = 0; i < rows->nr_groups; i++) {
		free(rows->groups[i].data);
		free(rows->groups[i].pieces);
	}
	free(rows->groups);
	if (rows->fd >= 0)
		close(rows->fd);
	*rows = (struct rows){ .fd = -1 };
}

static void fail(struct rows *rows, int error)
{
	if (!rows->failed)
		rows->failed = error;
}

/* Moves the rows of a group from memory to the end of the file. */
static void spill_group(struct rows *rows, struct rows_group *group)
{
	int error;

	if (!group->len)
		return;
	error = fd_write(rows->fd, group->data, group->len);
	if (error)
		fail(rows, error);
	GROW(group->pieces, group->nr_pieces + 1, group->cap_pieces);
	group->pieces[group->nr_pieces++] = (struct rows_piece){ rows->file, group->len };
	rows->file += group->len;
	free(group->data);
	group->data = NULL;
	group->len = group->cap = 0;
}

static void spill(struct rows *rows)
{
	if (rows->fd < 0)
		rows->fd = spool_file();
	if (rows->fd < 0)
		fail(rows, errno);
	for (size_t i = 0; i < rows->nr_groups && !rows->failed; i++)
		spill_group(rows, &rows->groups[i]);
	rows->kept = 0;
}

void rows_add(struct rows *rows, uint32_t number, const void *row)
{
	struct rows_group *group;

	if (rows->failed)
		return;
	if (number >= rows->nr_groups) {
		GROW(rows->groups, (size_t)number + 1, rows->cap_groups);
		memset(rows->groups + rows->nr_groups, 0,
		       (number + 1 - rows->nr_groups) * sizeof(*rows->groups));
		rows->nr_groups = (size_t)number + 1;
	}
	group = &rows->groups[number];
	GROW(group->data, group->len + rows->size, group->cap);
	memcpy(group->data + group->len, row, rows->size);
	group->len += rows->size;
	rows->kept += rows->size;
	if (rows->kept >= ROWS_KEEP)
		spill(rows);
}

int rows_check(const struct rows *rows, struct err *err)
{
	if (!rows->failed)
		return 0;
	return err_set(err, ERR_OUTPUT, "cannot use a temporary file in %s: %s%s", spool_folder(),
		       strerror(rows->failed),
		       rows->failed == ENOSPC ? ": set TMPDIR to a folder with more room" : "");
}

void rows_begin(struct rows_reader *reader, struct rows *rows, uint32_t group)
{
	static const struct rows_group none;

	*reader = (struct rows_reader){ .rows = rows,
					.group = group < rows->nr_groups ? &rows->groups[group]
									 : &none };
}

void rows_end(struct rows_reader *reader)
{
	free(reader->buffer);
	*reader = (struct rows_reader){ 0 };
}

static bool read_at(struct rows *rows, uint8_t *to, size_t len, uint64_t offset)
{
	while (len) {
		ssize_t got = pread(rows->fd, to, len, (off_t)offset);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0) {
			fail(rows, got ? errno : EIO);
			return false;
		}
		to += got;
		offset += (uint64_t)got;
		len -= (size_t)got;
	}
	return true;
}

/* Loads the next rows: first the pieces in the file, at last the rows in memory. */
static bool fill(struct rows_reader *reader)
{
	const struct rows_group *group = reader->group;
	struct rows *rows = reader->rows;
	const struct rows_piece *piece;
	uint64_t len;

	if (rows->failed || reader->piece > group->nr_pieces)
		return false;
	if (reader->piece == group->nr_pieces) {
		reader->piece++;
		if (!group->len)
			return false;
		reader->at = group->data;
		reader->end = group->data + group->len;
		return true;
	}
	if (!reader->buffer)
		reader->buffer = xmalloc(BUFFER + rows->size);
	piece = &group->pieces[reader->piece];
	len = BUFFER / rows->size * rows->size;
	if (len > piece->len - reader->offset)
		len = piece->len - reader->offset;
	if (!read_at(rows, reader->buffer, (size_t)len, piece->offset + reader->offset))
		return false;
	reader->at = reader->buffer;
	reader->end = reader->buffer + len;
	reader->offset += len;
	if (reader->offset == piece->len) {
		reader->piece++;
		reader->offset = 0;
	}
	return true;
}

const void *rows_next(struct rows_reader *reader)
{
	const uint8_t *row;

	if (reader->at == reader->end && !fill(reader))
		return NULL;
	row = reader->at;
	reader->at += reader->rows->size;
	return row;
}

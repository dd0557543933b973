/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * database: files of SQLite 3. A database is either written once, or only read. Both work on a descriptor, without the
 * name of a file and without a journal.
 *
 * The same rows in the same order give the same bytes, with the same version of SQLite.
 */
#ifndef KSCOPE_BASE_DATABASE_H
#define KSCOPE_BASE_DATABASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct database;

#define DATABASE_HEAD 16 /* bytes */
/* Whether these bytes, at least DATABASE_HEAD, are the start of an SQLite file. */
bool database_is(const uint8_t *head, size_t len);

struct database_value {
	enum database_type {
		DATABASE_NULL,
		DATABASE_NUMBER,
		DATABASE_REAL,
		DATABASE_TEXT,
		DATABASE_BYTES
	} type;
	size_t len; /* of `text` */
	union {
		int64_t number;
		double real;
		const char *text; /* and bytes; borrowed */
	};
};

/* ---- writing ---- */

/*
 * Makes a database in an empty file that can be read, written and sought. `schema` is SQL. The descriptor stays the
 * caller's. NULL: see err.
 */
struct database *database_create(int fd, const char *schema, struct err *err);
/* A table, for rows of so many values, the first of which is the id. Adding rows in the order of ids is fastest. */
unsigned database_table(struct database *db, const char *name, unsigned nr_columns);
/* Errors stick: check database_failed() or the result of database_finish(). */
void database_add(struct database *db, unsigned table, const struct database_value *values);
/* 0, or an errno. */
int database_failed(const struct database *db);
/* Completes the file. Returns 0 or an errno. */
int database_finish(struct database *db);

/* ---- asking ---- */

/* Opens a database for statements that only read. NULL: see err. */
struct database *database_open(int fd, struct err *err);
/* The value of PRAGMA application_id or user_version; 0 if this is no SQLite file. */
uint32_t database_number(struct database *db, const char *pragma);
/*
 * Compiles the first statement of *sql, and moves *sql behind it. Returns 1, 0 if there is none, or -1. `all` is the
 * user's text, for positions in messages.
 */
int database_ask(struct database *db, const char *all, const char **sql, struct err *err);
size_t database_columns(const struct database *db);
const char *database_column(const struct database *db, size_t nth);
/* The next row of the answer: 1, 0 after the last one, or -1. */
int database_next(struct database *db, struct err *err);
/* Valid until the next row. */
struct database_value database_value(const struct database *db, size_t nth);

void database_close(struct database *db); /* may be NULL */

#endif

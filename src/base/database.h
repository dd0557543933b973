/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * database: files of SQLite 3, by their descriptor: one that is written once, and one that is only asked. Names of
 * files play no role, and there is no journal.
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
/* Whether these bytes, DATABASE_HEAD at least, are the beginning of a file of SQLite. */
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
/* A table, to add rows with as many values, of which the first one is the id. In the order of ids, that is fastest. */
unsigned database_table(struct database *db, const char *name, unsigned nr_columns);
/* Errors stick: check database_failed() or the result of database_finish(). */
void database_add(struct database *db, unsigned table, const struct database_value *values);
/* 0, or an errno. */
int database_failed(const struct database *db);
/* Completes the file. Returns 0 or an errno. */
int database_finish(struct database *db);

/* ---- asking ---- */

/* Only statements that read are allowed. NULL: see err. */
struct database *database_open(int fd, struct err *err);
/* What PRAGMA application_id and user_version say; 0 for a file that is none of SQLite's. */
uint32_t database_number(struct database *db, const char *pragma);
/*
 * Compiles the first statement of *sql, and moves *sql behind it. Returns 1, 0 if there is none, or -1. What the user
 * wrote is `all`: for messages.
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

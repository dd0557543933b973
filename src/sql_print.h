/* SPDX-License-Identifier: GPL-2.0-or-later */
/* sql_print: prints the results of SQL statements, row by row. */
#ifndef KSCOPE_SQL_PRINT_H
#define KSCOPE_SQL_PRINT_H

#include "base/database.h"
#include "base/err.h"

enum sql_format { SQL_TABLE, SQL_CSV, SQL_TSV, SQL_JSON };

/* Whether the columns of the compiled statement have names that the format can distinguish. */
int sql_check(const struct database *db, enum sql_format format, struct err *err);
/* Prints the result of the statement that database_ask() compiled. nth: the number of earlier results. */
int sql_print(struct database *db, enum sql_format format, size_t nth, struct err *err);

#endif

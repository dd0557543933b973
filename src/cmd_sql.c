// SPDX-License-Identifier: GPL-2.0-or-later
/* sql: queries recordings, or a database that the writer `sqlite` wrote, with SQL. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/database.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/spool.h"
#include "base/text.h"
#include "cmd.h"
#include "sql_print.h"
#include "write/sqlite.h"

struct sql_options {
	enum sql_format format;
	bool schema;
};

/* clang-format off: tables are read by the row. */
static const struct option_table sql_table = {
	"Output",
	(const struct option_row[]){
		{ "csv", 0, NULL, "print comma-separated values",
		  OPTION_VALUE(struct sql_options, format, SQL_CSV) },
		{ "tsv", 0, NULL, "print tab-separated values",
		  OPTION_VALUE(struct sql_options, format, SQL_TSV) },
		{ "json", 0, NULL, "print JSON: an array for each statement",
		  OPTION_VALUE(struct sql_options, format, SQL_JSON) },
		{ "schema", 0, NULL, "print the tables and views, as without a statement",
		  OPTION_FLAG(struct sql_options, schema) },
		{ 0 },
	},
};
/* clang-format on */

/* ---- the words ---- */

static bool is_input(const char *word)
{
	return !strcmp(word, "-") || !access(word, F_OK);
}

/* The last word, unless it is an input; NULL: there is none. */
static const char *statement_of(const struct args *args)
{
	const char *last = args->inputs[args->nr_inputs - 1];

	return args->nr_inputs > 1 && !is_input(last) ? last : NULL;
}

static int check(const struct args *args, struct err *err)
{
	const struct sql_options *asked = args->state;

	if (asked->schema && statement_of(args))
		return err_set(err, ERR_USAGE, "--schema does not go together with a statement");
	return 0;
}

/* ---- databases as inputs ---- */

/* Copies a database that may be compressed, because SQLite reads any part of it at any time. */
static int copy_database(struct in *in, struct err *err)
{
	int fd = spool_file(), error = fd < 0 ? errno : 0;
	const uint8_t *data;
	size_t have;
	uint64_t done = 0;

	while (!error && (data = in_peek(in, 1, &have), have)) {
		done += have;
		error = spool_is_bomb(in_given(in), done) ? EFBIG : fd_write(fd, data, have);
		in_skip(in, have);
	}
	if (error || in->err.code) {
		if (in->err.code)
			*err = in->err;
		else
			err_set(err, ERR_OUTPUT, "cannot write a temporary file in %s: %s",
				spool_folder(), strerror(error));
		if (fd >= 0)
			close(fd);
		return -1;
	}
	return fd;
}

static bool starts_as_database(struct in *in)
{
	size_t have;
	const uint8_t *head = in_peek(in, DATABASE_HEAD, &have);

	return database_is(head, have);
}

/* The descriptor of a database. -1: the file is none (*is_database is false), or see err. */
static int open_database(const char *path, bool *is_database, struct err *err)
{
	struct in in = { 0 };
	struct stat st;
	int fd = -1;

	*is_database = false;
	if (stat(path, &st) || !S_ISREG(st.st_mode)) /* a pipe can be read only once */
		return -1;
	if (in_open(&in, path, err) < 0)
		return -1;
	*is_database = starts_as_database(&in);
	if (*is_database) {
		fd = in.unpack ? copy_database(&in, err) : open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0 && !err->code)
			err_set(err, ERR_INPUT, "%s: %s", path, strerror(errno));
	}
	in_close(&in);
	return fd;
}

static void warn_of_options(const struct args *args)
{
	for (size_t i = 0; i < args->given.nr; i++) {
		if (!args->given.all[i].acted)
			log_warn("--%s has no effect on a database", args->given.all[i].row->name);
	}
}

static int check_database(struct database *db, const char *path, struct err *err)
{
	uint32_t version = database_number(db, "user_version");

	if (database_number(db, "application_id") != SQLITE_APPLICATION)
		return err_set(err, ERR_INPUT,
			       "%s: kscope did not write this database, or it is damaged", path);
	if (version != SQLITE_SCHEMA)
		log_warn("%s: the schema has version %u, and this kscope knows version %u", path,
			 version, SQLITE_SCHEMA);
	return 0;
}

/* ---- questions ---- */

static int ask_all(struct database *db, const char *statements, enum sql_format format, bool print,
		   struct err *err)
{
	const char *at = statements;
	int ret;

	for (size_t nth = 0; (ret = database_ask(db, statements, &at, err)) > 0; nth++) {
		if (sql_check(db, format, err) < 0 ||
		    (print && sql_print(db, format, nth, err) < 0))
			return -1;
	}
	return ret;
}

static int query(int fd, const char *path, const char *statements, const struct sql_options *asked,
		 struct err *err)
{
	struct database *db = database_open(fd, err);
	int ret;

	if (!db)
		return -1;
	ret = path ? check_database(db, path, err) : 0;
	if (ret == 0)
		ret = ask_all(db, statements, asked->format, true, err);
	database_close(db);
	return ret;
}

/* Compiles the statements, so that a mistake in them does not cost the time of a conversion. */
static int try_statements(const char *statements, enum sql_format format, struct err *err)
{
	struct database *db;
	int fd = spool_file(), ret = -1;

	if (fd < 0)
		return err_set(err, ERR_OUTPUT, "cannot write a temporary file in %s: %s",
			       spool_folder(), strerror(errno));
	db = database_create(fd, sqlite_schema, err);
	if (db && database_finish(db))
		err_set(err, ERR_OUTPUT, "cannot write a temporary file in %s: %s", spool_folder(),
			strerror(database_failed(db)));
	database_close(db);
	db = err->code ? NULL : database_open(fd, err);
	if (db)
		ret = ask_all(db, statements, format, false, err);
	database_close(db);
	close(fd);
	return ret;
}

/* ---- recordings ---- */

static int ask_recording(struct args *args, const char *statements, struct err *err)
{
	const struct sql_options *asked = args->state;
	struct out out = { 0 };
	struct job job;
	int code;

	if (try_statements(statements, asked->format, err) < 0 || out_open_temporary(&out, err) < 0)
		return err->code;
	args_job(args, &job);
	code = convert_into(&job, &write_sqlite, &out);
	if (code <= ERR_PARTIAL && query(out.fd, NULL, statements, asked, err) < 0)
		code = err->code;
	out_abandon(&out);
	return code;
}

/* ---- the verb ---- */

#define ASK_SCHEMA "SELECT sql || ';' AS \"-- schema\" FROM sqlite_master WHERE sql IS NOT NULL"

static int print_schema(int fd, const char *path, struct err *err)
{
	struct database *db = database_open(fd, err);
	const char *at = ASK_SCHEMA;
	struct buf text = { 0 };
	int ret;

	if (!db)
		return -1;
	ret = check_database(db, path, err);
	if (ret == 0)
		ret = database_ask(db, ASK_SCHEMA, &at, err);
	while (ret > 0 && (ret = database_next(db, err)) > 0) {
		struct database_value value = database_value(db, 0);

		text_add_lines(&text, value.text, value.type == DATABASE_TEXT ? value.len : 0);
		buf_adds(&text, "\n\n");
	}
	if (ret == 0 && text.len)
		fwrite(text.data, 1, text.len - 1, stdout);
	buf_release(&text);
	database_close(db);
	return ret;
}

static int run(struct args *args)
{
	const char *statements = statement_of(args), *path = args->inputs[0];
	struct err err = { 0 };
	bool is_database = false;
	int fd = -1, code = 0;

	args->nr_inputs -= statements != NULL;
	for (size_t i = 0; i < args->nr_inputs && !is_database && !err.code; i++)
		fd = open_database(args->inputs[i], &is_database, &err);
	if (is_database && args->nr_inputs > 1)
		err_set(&err, ERR_USAGE, "a database has to be the only input");
	else if (is_database)
		warn_of_options(args);
	if (err.code)
		code = err.code;
	else if (is_database && statements)
		query(fd, path, statements, args->state, &err);
	else if (is_database)
		print_schema(fd, path, &err);
	else if (statements)
		code = ask_recording(args, statements, &err);
	else if (!is_input(path))
		err_set(&err, ERR_INPUT, "%s: %s", path, strerror(ENOENT));
	else
		fputs(sqlite_schema, stdout);
	if (err.code)
		log_error("%s", err.msg);
	if (fd >= 0)
		close(fd);
	return err.code ? (int)err.code : code;
}

const struct command cmd_sql = {
	.name = "sql",
	.usage = "sql INPUT... ['SELECT ...'] [OPTIONS]",
	.about = "Query recordings with SQL. Without a statement, print the tables and views.",
	.examples = "  kscope sql perf.data --schema\n"
		    "  kscope sql perf.data 'SELECT * FROM function_totals ORDER BY self_weight "
		    "DESC LIMIT 9'\n"
		    "  kscope sql perf.data 'SELECT cpu, sum(samples) FROM samples GROUP BY cpu' "
		    "--csv\n"
		    "  kscope convert perf.data -o run.db && kscope sql run.db 'SELECT * FROM "
		    "lost' --json\n",
	.options = OPTION_USES({ &sql_table, 0 }),
	.state_size = sizeof(struct sql_options),
	.reads = true,
	.writers = (const struct writer_ops *const[]){ &write_sqlite, NULL },
	.check = check,
	.run = run,
};

// SPDX-License-Identifier: GPL-2.0-or-later
/* database: the only user of libsqlite3. */
#include "base/database.h"

#include <string.h>

bool database_is(const uint8_t *head, size_t len)
{
	return len >= DATABASE_HEAD && !memcmp(head, "SQLite format 3", DATABASE_HEAD);
}

#ifdef HAVE_SQLITE3
#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/spool.h"

#define MAX_TABLES 20
#define LONGEST (128 << 20) /* bytes of a value that a statement may make */
#define MEMORY (1 << 30)    /* bytes that the library may use to answer */

struct table {
	sqlite3_stmt *insert;
	unsigned nr_columns;
};

struct database {
	int fd;
	sqlite3_vfs vfs, *system;
	sqlite3 *sqlite;
	int failed; /* errno of the first failure */
	char name[40];
	struct table tables[MAX_TABLES];
	unsigned nr_tables;
	sqlite3_stmt *statement; /* of the reader */
};

/* ---- files: the descriptor, and temporary files ---- */

struct file {
	sqlite3_file base;
	struct database *db;
	int fd;
	bool is_temporary;
};

static int fail(struct database *db, int error)
{
	if (!db->failed)
		db->failed = error;
	return error == ENOSPC ? SQLITE_FULL : SQLITE_IOERR;
}

static int file_close(sqlite3_file *base)
{
	struct file *file = (struct file *)base;

	if (file->is_temporary)
		close(file->fd);
	return SQLITE_OK;
}

static int file_read(sqlite3_file *base, void *to, int len, sqlite3_int64 offset)
{
	struct file *file = (struct file *)base;
	size_t done = 0, all = (size_t)len;

	while (done < all) {
		ssize_t got =
			pread(file->fd, (char *)to + done, all - done, (off_t)offset + (off_t)done);

		if (got < 0 && errno != EINTR) {
			fail(file->db, errno);
			return SQLITE_IOERR_READ;
		}
		if (!got)
			break;
		done += got > 0 ? (size_t)got : 0;
	}
	memset((char *)to + done, 0, all - done);
	return done < all ? SQLITE_IOERR_SHORT_READ : SQLITE_OK;
}

static int file_write(sqlite3_file *base, const void *data, int len, sqlite3_int64 offset)
{
	struct file *file = (struct file *)base;
	size_t done = 0, all = (size_t)len;

	while (done < all) {
		ssize_t did = pwrite(file->fd, (const char *)data + done, all - done,
				     (off_t)offset + (off_t)done);

		if (did < 0 && errno != EINTR)
			return fail(file->db, errno);
		done += did > 0 ? (size_t)did : 0;
	}
	return SQLITE_OK;
}

static int file_truncate(sqlite3_file *base, sqlite3_int64 size)
{
	struct file *file = (struct file *)base;

	return ftruncate(file->fd, (off_t)size) ? fail(file->db, errno) : SQLITE_OK;
}

static int file_size(sqlite3_file *base, sqlite3_int64 *size)
{
	struct file *file = (struct file *)base;
	struct stat st;

	if (fstat(file->fd, &st))
		return fail(file->db, errno);
	*size = st.st_size;
	return SQLITE_OK;
}

/* No syncs or locks: either no other process knows the file yet, or kscope only reads it. */
static int file_sync(sqlite3_file *base, int flags)
{
	(void)base, (void)flags;
	return SQLITE_OK;
}

static int file_lock(sqlite3_file *base, int kind)
{
	(void)base, (void)kind;
	return SQLITE_OK;
}

static int file_is_locked(sqlite3_file *base, int *answer)
{
	(void)base;
	*answer = 0;
	return SQLITE_OK;
}

static int file_control(sqlite3_file *base, int op, void *arg)
{
	(void)base, (void)op, (void)arg;
	return SQLITE_NOTFOUND;
}

static int file_sector(sqlite3_file *base)
{
	(void)base;
	return 4096;
}

static int file_traits(sqlite3_file *base)
{
	(void)base;
	return 0;
}

static const sqlite3_io_methods file_methods = {
	.iVersion = 1,
	.xClose = file_close,
	.xRead = file_read,
	.xWrite = file_write,
	.xTruncate = file_truncate,
	.xSync = file_sync,
	.xFileSize = file_size,
	.xLock = file_lock,
	.xUnlock = file_lock,
	.xCheckReservedLock = file_is_locked,
	.xFileControl = file_control,
	.xSectorSize = file_sector,
	.xDeviceCharacteristics = file_traits,
};

static int vfs_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *base, int flags, int *out)
{
	struct database *db = vfs->pAppData;
	struct file *file = (struct file *)base;
	bool is_main = flags & SQLITE_OPEN_MAIN_DB;

	*file = (struct file){ .db = db, .fd = db->fd, .is_temporary = !is_main };
	if (!is_main && name) /* a journal: there is none */
		return SQLITE_CANTOPEN;
	if (!is_main)
		file->fd = spool_file();
	if (file->fd < 0) {
		fail(db, errno);
		return SQLITE_CANTOPEN;
	}
	file->base.pMethods = &file_methods;
	if (out)
		*out = flags;
	return SQLITE_OK;
}

static int vfs_delete(sqlite3_vfs *vfs, const char *name, int sync)
{
	(void)vfs, (void)name, (void)sync;
	return SQLITE_OK;
}

static int vfs_access(sqlite3_vfs *vfs, const char *name, int flags, int *answer)
{
	(void)vfs, (void)name, (void)flags;
	*answer = 0;
	return SQLITE_OK;
}

static int vfs_full_name(sqlite3_vfs *vfs, const char *name, int len, char *out)
{
	(void)vfs;
	snprintf(out, (size_t)len, "%s", name);
	return SQLITE_OK;
}

static sqlite3_vfs *system_of(const sqlite3_vfs *vfs)
{
	return ((struct database *)vfs->pAppData)->system;
}

static int vfs_randomness(sqlite3_vfs *vfs, int len, char *out)
{
	return system_of(vfs)->xRandomness(system_of(vfs), len, out);
}

static int vfs_sleep(sqlite3_vfs *vfs, int us)
{
	return system_of(vfs)->xSleep(system_of(vfs), us);
}

static int vfs_time(sqlite3_vfs *vfs, double *time)
{
	return system_of(vfs)->xCurrentTime(system_of(vfs), time);
}

static int vfs_error(sqlite3_vfs *vfs, int len, char *out)
{
	(void)vfs, (void)len, (void)out;
	return 0;
}

static sqlite3_vfs vfs_of(struct database *db)
{
	return (sqlite3_vfs){
		.iVersion = 1,
		.szOsFile = sizeof(struct file),
		.mxPathname = 100,
		.zName = db->name,
		.pAppData = db,
		.xOpen = vfs_open,
		.xDelete = vfs_delete,
		.xAccess = vfs_access,
		.xFullPathname = vfs_full_name,
		.xRandomness = vfs_randomness,
		.xSleep = vfs_sleep,
		.xCurrentTime = vfs_time,
		.xGetLastError = vfs_error,
	};
}

/* ---- opening and closing ---- */

static struct database *open_file(int fd, int flags, struct err *err)
{
	struct database *db = xcalloc(1, sizeof(*db));

	db->fd = fd;
	db->system = sqlite3_vfs_find(NULL);
	snprintf(db->name, sizeof(db->name), "kscope-%p", (void *)db);
	db->vfs = vfs_of(db);
	sqlite3_vfs_register(&db->vfs, 0);
	switch (sqlite3_open_v2("database", &db->sqlite, flags | SQLITE_OPEN_NOMUTEX, db->name)) {
	case SQLITE_OK: return db;
	case SQLITE_NOMEM: mem_ran_out();
	default:
		err_set(err, ERR_INPUT, "cannot open the database: %s", sqlite3_errmsg(db->sqlite));
		database_close(db);
		return NULL;
	}
}

void database_close(struct database *db)
{
	if (!db)
		return;
	for (unsigned i = 0; i < db->nr_tables; i++)
		sqlite3_finalize(db->tables[i].insert);
	sqlite3_finalize(db->statement);
	sqlite3_close(db->sqlite);
	sqlite3_vfs_unregister(&db->vfs);
	free(db);
}

/* ---- writing ---- */

/* Whether a call of the library failed. Does not return if memory ran out. */
static bool failed(struct database *db, int ret)
{
	if (ret == SQLITE_OK || ret == SQLITE_ROW || ret == SQLITE_DONE)
		return false;
	if (ret == SQLITE_NOMEM)
		mem_ran_out();
	fail(db, ret == SQLITE_FULL ? ENOSPC : ret == SQLITE_TOOBIG ? EFBIG : EIO);
	return true;
}

/* Fixed, because the defaults depend on how the library was built. */
#define SETTINGS                                                      \
	"PRAGMA page_size = 4096; PRAGMA encoding = 'UTF-8'; "        \
	"PRAGMA auto_vacuum = NONE; PRAGMA journal_mode = OFF; "      \
	"PRAGMA synchronous = OFF; PRAGMA locking_mode = EXCLUSIVE; " \
	"PRAGMA cache_size = -8000; PRAGMA temp_store = FILE; "       \
	"PRAGMA foreign_keys = OFF; PRAGMA secure_delete = ON; BEGIN;"

struct database *database_create(int fd, const char *schema, struct err *err)
{
	struct database *db = open_file(fd, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, err);

	if (!db)
		return NULL;
	if (!failed(db, sqlite3_exec(db->sqlite, SETTINGS, NULL, NULL, NULL)))
		failed(db, sqlite3_exec(db->sqlite, schema, NULL, NULL, NULL));
	return db;
}

unsigned database_table(struct database *db, const char *name, unsigned nr_columns)
{
	struct table *table = &db->tables[db->nr_tables];
	char sql[200];
	size_t len = (size_t)snprintf(sql, sizeof(sql), "INSERT INTO %s VALUES(?", name);

	for (unsigned i = 1; i < nr_columns; i++)
		len += (size_t)snprintf(sql + len, sizeof(sql) - len, ",?");
	snprintf(sql + len, sizeof(sql) - len, ")");
	table->nr_columns = nr_columns;
	if (!db->failed)
		failed(db, sqlite3_prepare_v3(db->sqlite, sql, -1, SQLITE_PREPARE_PERSISTENT,
					      &table->insert, NULL));
	return db->nr_tables++;
}

static int bind(sqlite3_stmt *insert, int at, const struct database_value *value)
{
	switch (value->type) {
	case DATABASE_NUMBER: return sqlite3_bind_int64(insert, at, value->number);
	case DATABASE_REAL: return sqlite3_bind_double(insert, at, value->real);
	case DATABASE_TEXT:
		return sqlite3_bind_text64(insert, at, value->text, value->len, SQLITE_STATIC,
					   SQLITE_UTF8);
	case DATABASE_BYTES:
		return sqlite3_bind_blob64(insert, at, value->text, value->len, SQLITE_STATIC);
	default: return sqlite3_bind_null(insert, at);
	}
}

void database_add(struct database *db, unsigned table, const struct database_value *values)
{
	sqlite3_stmt *insert = db->tables[table].insert;

	if (db->failed)
		return;
	for (unsigned i = 0; i < db->tables[table].nr_columns; i++)
		failed(db, bind(insert, (int)i + 1, &values[i]));
	if (!failed(db, sqlite3_step(insert)))
		sqlite3_reset(insert);
}

int database_failed(const struct database *db)
{
	return db->failed;
}

int database_finish(struct database *db)
{
	if (!db->failed)
		failed(db, sqlite3_exec(db->sqlite, "COMMIT", NULL, NULL, NULL));
	return db->failed;
}

/* ---- asking ---- */

/* The message for an error in the SQL, or in the database that it reads. */
static int wrong(struct database *db, int ret, const char *all, const char *sql, struct err *err)
{
	const char *why = sqlite3_errmsg(db->sqlite);
	int offset = -1;

#if SQLITE_VERSION_NUMBER >= 3038000
	offset = sqlite3_error_offset(db->sqlite);
#endif
	switch (ret & 0xff) {
	case SQLITE_NOMEM: mem_ran_out();
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB: return err_set(err, ERR_INPUT, "the database is damaged: %s", why);
	case SQLITE_CANTOPEN: /* only a temporary file is opened while it runs */
		return err_set(err, ERR_OUTPUT, "a temporary file in %s: %s", spool_folder(),
			       db->failed ? strerror(db->failed) : why);
	case SQLITE_IOERR:
	case SQLITE_FULL:
		return err_set(err, ERR_OUTPUT, "the database: %s",
			       db->failed ? strerror(db->failed) : why);
	case SQLITE_AUTH:
	case SQLITE_READONLY:
		return err_set(err, ERR_USAGE, "SQL: statements may only read the database: %s",
			       why);
	default: break;
	}
	if (offset < 0)
		return err_set(err, ERR_USAGE, "SQL: %s", why);
	return err_set(err, ERR_USAGE, "SQL, byte %zu: %s",
		       (size_t)(sql - all) + (size_t)offset + 1, why);
}

static bool is_one_of(const char *name, const char *const *names)
{
	while (*names && sqlite3_stricmp(name, *names) != 0)
		names++;
	return *names;
}

/* Decides what statements may do, also those in views of the file. */
static int authorize(void *arg, int action, const char *one, const char *two, const char *name,
		     const char *in)
{
	static const char *const pragmas[] = {
		"application_id",   "user_version",	 "integrity_check",
		"quick_check",	    "table_info",	 "table_list",
		"foreign_key_list", "foreign_key_check", "page_count",
		"page_size",	    "table_xinfo",	 "index_list",
		"schema_version",   "encoding",		 NULL
	};
	static const char *const functions[] = { "load_extension", "readfile",	     "writefile",
						 "edit",	   "fts3_tokenizer", NULL };
	static const char *const numbers[] = { "application_id", "user_version", "page_size",
					       "schema_version", "encoding",	 NULL };

	(void)arg, (void)name, (void)in;
	switch (action) {
	case SQLITE_SELECT:
	case SQLITE_READ:
	case SQLITE_RECURSIVE: return SQLITE_OK;
	case SQLITE_FUNCTION: return is_one_of(two, functions) ? SQLITE_DENY : SQLITE_OK;
	case SQLITE_PRAGMA: /* with a value, some would set it */
		return is_one_of(one, pragmas) && !(two && is_one_of(one, numbers)) ? SQLITE_OK
										    : SQLITE_DENY;
	default: return SQLITE_DENY;
	}
}

#define READ_VERSION 19 /* its place in the file */

/* Another program may have switched the file to a write-ahead log, which needs memory that is shared by name. */
static bool has_log(int fd)
{
	uint8_t version = 0;

	return pread(fd, &version, 1, READ_VERSION) == 1 && version == 2;
}

struct database *database_open(int fd, struct err *err)
{
	struct database *db;

	if (has_log(fd)) {
		err_set(err, ERR_INPUT,
			"the database has a write-ahead log, which kscope does not read: run "
			"PRAGMA journal_mode = DELETE in the program that wrote it");
		return NULL;
	}
	db = open_file(fd, SQLITE_OPEN_READONLY, err);
	if (!db)
		return NULL;
	sqlite3_exec(db->sqlite,
		     "PRAGMA cache_size = -64000; PRAGMA temp_store = FILE; "
		     "PRAGMA query_only = ON; PRAGMA cell_size_check = ON;",
		     NULL, NULL, NULL);
	sqlite3_db_config(db->sqlite, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	sqlite3_db_config(db->sqlite, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
	/* Allow strings in double quotes, because the shell uses the single quotes. */
	sqlite3_db_config(db->sqlite, SQLITE_DBCONFIG_DQS_DML, 1, NULL);
	sqlite3_limit(db->sqlite, SQLITE_LIMIT_ATTACHED, 0);
	sqlite3_limit(db->sqlite, SQLITE_LIMIT_LENGTH, LONGEST);
	sqlite3_hard_heap_limit64(MEMORY); /* views of the file may ask for more */
	sqlite3_set_authorizer(db->sqlite, authorize, NULL);
	return db;
}

uint32_t database_number(struct database *db, const char *pragma)
{
	struct err err = { 0 };
	char sql[80];
	const char *at = sql;
	uint32_t number = 0;

	snprintf(sql, sizeof(sql), "PRAGMA %s", pragma);
	if (database_ask(db, sql, &at, &err) > 0 && database_next(db, &err) > 0)
		number = (uint32_t)sqlite3_column_int64(db->statement, 0);
	return number;
}

int database_ask(struct database *db, const char *all, const char **sql, struct err *err)
{
	const char *at = *sql;

	sqlite3_finalize(db->statement);
	db->statement = NULL;
	while (*at && !db->statement) { /* several may be empty */
		int ret = sqlite3_prepare_v2(db->sqlite, at, -1, &db->statement, sql);

		if (ret != SQLITE_OK)
			return wrong(db, ret, all, at, err);
		at = *sql;
	}
	return db->statement != NULL;
}

size_t database_columns(const struct database *db)
{
	return (size_t)sqlite3_column_count(db->statement);
}

const char *database_column(const struct database *db, size_t nth)
{
	const char *name = sqlite3_column_name(db->statement, (int)nth);

	if (!name)
		mem_ran_out();
	return name;
}

int database_next(struct database *db, struct err *err)
{
	int ret = sqlite3_step(db->statement);

	if (ret == SQLITE_ROW)
		return 1;
	return ret == SQLITE_DONE ? 0 : wrong(db, ret, NULL, NULL, err);
}

struct database_value database_value(const struct database *db, size_t nth)
{
	sqlite3_stmt *at = db->statement;
	int column = (int)nth;

	switch (sqlite3_column_type(at, column)) {
	case SQLITE_INTEGER:
		return (struct database_value){ .type = DATABASE_NUMBER,
						.number = sqlite3_column_int64(at, column) };
	case SQLITE_FLOAT:
		return (struct database_value){ .type = DATABASE_REAL,
						.real = sqlite3_column_double(at, column) };
	case SQLITE_TEXT:
		return (struct database_value){ .type = DATABASE_TEXT,
						.text = (const char *)sqlite3_column_text(at,
											  column),
						.len = (size_t)sqlite3_column_bytes(at, column) };
	case SQLITE_BLOB:
		return (struct database_value){ .type = DATABASE_BYTES,
						.text = sqlite3_column_blob(at, column),
						.len = (size_t)sqlite3_column_bytes(at, column) };
	default: return (struct database_value){ .type = DATABASE_NULL };
	}
}
#else
#define WITHOUT "this kscope was built without libsqlite3"

struct database *database_create(int fd, const char *schema, struct err *err)
{
	(void)fd, (void)schema;
	err_set(err, ERR_OUTPUT, WITHOUT);
	return NULL;
}

unsigned database_table(struct database *db, const char *name, unsigned nr_columns)
{
	(void)db, (void)name, (void)nr_columns;
	return 0;
}

void database_add(struct database *db, unsigned table, const struct database_value *values)
{
	(void)db, (void)table, (void)values;
}

int database_failed(const struct database *db)
{
	(void)db;
	return 0;
}

int database_finish(struct database *db)
{
	(void)db;
	return 0;
}

struct database *database_open(int fd, struct err *err)
{
	(void)fd;
	err_set(err, ERR_INPUT, WITHOUT);
	return NULL;
}

uint32_t database_number(struct database *db, const char *pragma)
{
	(void)db, (void)pragma;
	return 0;
}

int database_ask(struct database *db, const char *all, const char **sql, struct err *err)
{
	(void)db, (void)all, (void)sql;
	return err_set(err, ERR_INPUT, WITHOUT);
}

size_t database_columns(const struct database *db)
{
	(void)db;
	return 0;
}

const char *database_column(const struct database *db, size_t nth)
{
	(void)db, (void)nth;
	return "";
}

int database_next(struct database *db, struct err *err)
{
	(void)db;
	return err_set(err, ERR_INPUT, WITHOUT);
}

struct database_value database_value(const struct database *db, size_t nth)
{
	(void)db, (void)nth;
	return (struct database_value){ .type = DATABASE_NULL };
}

void database_close(struct database *db)
{
	(void)db;
}
#endif

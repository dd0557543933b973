/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * store: where a run finds its files. A NULL store is this machine. Otherwise it is
 *
 * - a list: this machine's files, and a list of the ones that the run used, from which
 *   `kscope archive` makes an archive; or
 * - an archive: files under the paths that they had where it was made. store->next is the archive of
 *   a further input.
 *
 * An archive is a tar file. Its first member, STORE_MANIFEST, is text; the strings in it are quoted
 * as in the dump format:
 *
 *	kscope-archive 1
 *	input "perf.data" perfdata		a recording, and its format
 *	option kernel "vmlinux"			an option that its readers need
 *	file MEMBER "/usr/bin/app"		a file, and its path without symbolic links
 *	name "/bin/app"				another name of that file
 *	build-id abcdef				the build ID of a binary that the file has symbols of
 *	debug "/usr/lib/libapp.so"		it is the debug file of that file
 *
 * Members are copied to temporary files that have no names, so nothing remains of them, and no name
 * in an archive is ever used as a path.
 */
#ifndef KSCOPE_BASE_STORE_H
#define KSCOPE_BASE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/in.h"
#include "base/mem.h"

#define STORE_MANIFEST "kscope-archive.txt"

struct store_file {
	const char *path;   /* where it is, or was: absolute, without symbolic links */
	const char *member; /* its name in the archive */
	/* What finds it, in the order of the manifest. */
	struct store_key {
		enum store_key_kind {
			STORE_NAME,
			STORE_BUILD_ID, /* in hexadecimal */
			STORE_DEBUG,	/* the path of the file whose debug file it is */
		} kind;
		const char *text;
	} * keys;
	size_t nr, cap;
	int fd; /* of an archive: the contents are here, or -1: missing */
	uint64_t offset, size;
};

struct store_input {
	const char *path, *format;
};

struct store_option {
	const char *name, *value;
};

struct store {
	struct store *next;
	const char *archive; /* its path, for messages; NULL: a list */
	struct store_file *files;
	size_t nr, cap;
	struct store_input *inputs;
	size_t nr_inputs, cap_inputs;
	struct store_option *options;
	size_t nr_options, cap_options;
	struct hash by_key;    /* index in files, + 1 */
	struct hash by_member; /* likewise */
	struct arena arena;
	int spool; /* of an archive: the contents of small files, one after the other */
	uint64_t spooled;
};

/* ---- finding files: store may be NULL ---- */

/*
 * The path of a file without symbolic links, which identifies it. An archive is asked first, then
 * this machine. NULL: there is no such file. The caller frees it.
 */
char *store_real(const struct store *store, const char *path);
/* The same by another key, and only in an archive. The result belongs to the store. */
const char *store_find(const struct store *store, enum store_key_kind kind, const char *text);
/* Opens the file at a path of store_real() for reading. -1: see errno. */
int store_open(const struct store *store, const char *path);
/* Where a file comes from, for people: "ARCHIVE:MEMBER", or the path itself. The caller frees it. */
char *store_place(const struct store *store, const char *path);

/* ---- files that belong to an input: an archive is not left ---- */

bool store_has(const struct store *store, const char *path);
/* Like in_open(). */
int store_in(struct store *store, struct in *in, const char *path, struct err *err);
/* Like pread(). -1 if there is no such file. *size, which may be NULL, becomes the size of the file. */
ssize_t store_read(struct store *store, const char *path, void *to, size_t len, uint64_t offset,
		   uint64_t *size);

/* ---- lists ---- */

struct store *store_new(void);
/* The run used a file; this finds it. Harmless unless the store is a list. */
void store_use(struct store *store, const char *path, enum store_key_kind kind, const char *text);
/* Names a file in the archive. False: the name does not fit into a tar file, or is taken. */
bool store_set_member(struct store *store, size_t file, const char *name);
void store_free(struct store *store); /* and those after it */
/* The manifest of a list whose files all have a member. */
void store_write_manifest(const struct store *store, struct buf *to);

/* ---- archives ---- */

/* Whether the input is an archive. Looks at no more bytes than that takes: it may still be being written. */
bool store_probe(struct in *in);
/* Reads an archive. NULL: see err. */
struct store *store_read_archive(struct in *in, struct err *err);

#endif

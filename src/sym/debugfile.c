// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Finds the DWARF of a stripped file in gdb's order: by build ID, then by the name in
 * .gnu_debuglink. A file counts only if it matches: the same build ID, or the link's checksum. A
 * debug file may have a link itself; a loop ends with a warning.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/store.h"
#include "sym/internal.h"

#define SYSTEM_FOLDER "/usr/lib/debug"
#define LINKS_MAX 8

/* zlib's CRC-32, not worth a library. */
static void crc_table(uint32_t table[256])
{
	for (uint32_t i = 0; i < 256; i++) {
		uint32_t c = i;

		for (int bit = 0; bit < 8; bit++)
			c = c & 1 ? 0xedb88320u ^ c >> 1 : c >> 1;
		table[i] = c;
	}
}

static bool crc_of_file(int fd, uint32_t *crc)
{
	uint8_t *block = xmalloc(1 << 16);
	uint32_t table[256], c = UINT32_MAX;
	off_t at = 0;
	ssize_t len;

	crc_table(table);
	while ((len = pread(fd, block, 1 << 16, at)) > 0) {
		for (ssize_t i = 0; i < len; i++)
			c = table[(c ^ block[i]) & 0xff] ^ c >> 8;
		at += len;
	}
	free(block);
	*crc = ~c;
	return len == 0;
}

static bool same_build_id(const struct object *a, const struct object *b)
{
	return a->build_id_len && a->build_id_len == b->build_id_len &&
	       !memcmp(a->build_id, b->build_id, a->build_id_len);
}

static bool is_right(const struct object *from, const struct object *to)
{
	uint32_t crc;

	if (from->build_id_len && to->build_id_len) {
		if (same_build_id(from, to))
			return true;
		log_warn("%s: not the debug file of %s: build ID differs", to->path, from->path);
		return false;
	}
	if (from->debuglink && crc_of_file(to->fd, &crc) && crc == from->debuglink_crc)
		return true;
	log_warn("%s: not the debug file of %s: checksum differs", to->path, from->path);
	return false;
}

struct hunt {
	const struct object *chain[LINKS_MAX + 1]; /* the files followed so far */
	size_t nr;
	const struct sym_search *where;
	bool circle;
	struct buf path;
};

static bool seen(struct hunt *hunt, const struct object *obj)
{
	for (size_t i = 0; i < hunt->nr; i++) {
		if (hunt->chain[i]->dev == obj->dev && hunt->chain[i]->ino == obj->ino)
			return true;
	}
	return false;
}

/* For an archive. */
static void use(const struct hunt *hunt, const struct object *from, const struct object *obj)
{
	char *real = realpath(obj->path, NULL);

	if (real)
		store_use(hunt->where->store, real, STORE_DEBUG, from->path);
	free(real);
}

/* Opens hunt->path if it is the debug file of the chain's last file. */
static struct object *try_path(struct hunt *hunt)
{
	const struct object *from = hunt->chain[hunt->nr - 1];
	struct err err = { 0 };
	struct object *obj;
	int fd;

	if (!store_find(hunt->where->store, STORE_NAME, hunt->path.data) &&
	    access(hunt->path.data, F_OK) != 0)
		return NULL;
	fd = open_regular(hunt->path.data, hunt->where->store, &err);
	obj = fd < 0 ? NULL : object_open(hunt->path.data, fd, &err);
	if (!obj) {
		log_warn("debug file of %s: %s", from->path, err.msg);
		return NULL;
	}
	if (seen(hunt, obj)) {
		hunt->circle = true;
	} else if (is_right(from, obj)) {
		log_note("%s: debug file %s", from->path, obj->path);
		use(hunt, from, obj);
		return obj;
	}
	object_close(obj);
	return NULL;
}

static void start_path(struct hunt *hunt, const char *root, const char *folder)
{
	buf_clear(&hunt->path);
	buf_adds(&hunt->path, root);
	buf_adds(&hunt->path, folder);
}

/* root/folder/.build-id/ab/cdef.debug */
static struct object *try_build_id(struct hunt *hunt, const char *root, const char *folder)
{
	const struct object *from = hunt->chain[hunt->nr - 1];

	if (from->build_id_len < 2)
		return NULL;
	start_path(hunt, root, folder);
	buf_adds(&hunt->path, "/.build-id/");
	for (size_t i = 0; i < from->build_id_len; i++)
		buf_addf(&hunt->path, i ? "%02x" : "%02x/", from->build_id[i]);
	buf_adds(&hunt->path, ".debug");
	return try_path(hunt);
}

/* root/folder/below/LINK */
static struct object *try_link(struct hunt *hunt, const char *root, const char *folder,
			       const char *below)
{
	const char *name = hunt->chain[hunt->nr - 1]->debuglink;

	start_path(hunt, root, folder);
	buf_adds(&hunt->path, below);
	buf_addc(&hunt->path, '/');
	buf_adds(&hunt->path, name);
	return try_path(hunt);
}

static struct object *by_build_id(struct hunt *hunt)
{
	const struct sym_search *where = hunt->where;
	struct object *obj = NULL;

	if (where->folder)
		obj = try_build_id(hunt, where->folder, "");
	if (!obj && where->symfs)
		obj = try_build_id(hunt, where->symfs, SYSTEM_FOLDER);
	return obj ? obj : try_build_id(hunt, "", SYSTEM_FOLDER);
}

/* The folder of a file, absolute if possible. The caller frees it. */
static char *folder_of(const char *path)
{
	char *real = realpath(path, NULL);
	char *folder = real ? real : xstrdup(path);
	char *slash = strrchr(folder, '/');

	if (slash)
		*slash = '\0';
	else
		strcpy(folder, ".");
	return folder;
}

/* The path of the folder inside symfs. */
static const char *inside(const char *symfs, const char *folder)
{
	size_t len = strlen(symfs);

	return !strncmp(folder, symfs, len) ? folder + len : folder;
}

static struct object *by_link(struct hunt *hunt)
{
	const struct sym_search *where = hunt->where;
	const struct object *from = hunt->chain[hunt->nr - 1];
	struct object *obj;
	char *own;

	/* A link is a bare file name; a path could point anywhere. */
	if (!from->debuglink || !from->debuglink[0] || strchr(from->debuglink, '/'))
		return NULL;
	own = folder_of(from->path);
	obj = try_link(hunt, own, "", "");
	if (!obj)
		obj = try_link(hunt, own, "/.debug", "");
	if (!obj && where->folder)
		obj = try_link(hunt, where->folder, "", "");
	if (!obj && where->symfs)
		obj = try_link(hunt, where->symfs, SYSTEM_FOLDER, inside(where->symfs, own));
	if (!obj && own[0] == '/')
		obj = try_link(hunt, "", SYSTEM_FOLDER, own);
	free(own);
	return obj;
}

static struct object *by_archive(struct hunt *hunt)
{
	const struct object *from = hunt->chain[hunt->nr - 1];
	const char *path = store_find(hunt->where->store, STORE_DEBUG, from->path);

	if (!path)
		return NULL;
	start_path(hunt, path, "");
	return try_path(hunt);
}

/* The next file of the chain, or NULL. */
static struct object *follow(struct hunt *hunt)
{
	struct object *obj = by_archive(hunt);

	if (!obj)
		obj = by_build_id(hunt);
	return obj ? obj : by_link(hunt);
}

struct object *debug_file_find(const struct object *obj, const struct sym_search *where)
{
	struct hunt hunt = { .where = where };
	struct object *found = NULL;

	hunt.chain[hunt.nr++] = obj;
	while (hunt.nr <= LINKS_MAX && (found = follow(&hunt)) && !found->has_dwarf) {
		hunt.chain[hunt.nr++] = found;
		found = NULL;
	}
	if (!found && (hunt.circle || hunt.nr > LINKS_MAX))
		log_warn("%s: debug links form a loop or a long chain; not using a debug file",
			 obj->path);
	/* Without DWARF, a file on the way may at least have the symbol table. */
	for (size_t i = hunt.nr; i-- > 1;) {
		struct object *way = (struct object *)hunt.chain[i];

		if (!found && way->has_symtab)
			found = way;
		else
			object_close(way);
	}
	buf_release(&hunt.path);
	return found;
}

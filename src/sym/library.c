// SPDX-License-Identifier: GPL-2.0-or-later
#include "sym/library.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/store.h"

static struct symfile *open_file(const struct library *library, const char *path)
{
	struct err err = { 0 };
	struct symfile *symfile = symfile_open(path, library->where, &err);

	if (!symfile)
		log_warn("%s", err.msg);
	return symfile;
}

struct symfile *library_try(struct library *library, const char *path)
{
	const struct store *store = library->where ? library->where->store : NULL;
	char *real = store_real(store, path);
	struct hash_key key;
	uint32_t *place;

	if (!real)
		real = xstrdup(path);
	key = (struct hash_key){ hash_bytes(real, strlen(real)), strlen(real) };
	place = hash_at(&library->by_path, key);
	if (*place) {
		free(real);
		return library->files[*place - 1].symfile;
	}
	if (store_find(store, STORE_NAME, path))
		path = real;
	GROW(library->files, library->nr + 1, library->cap);
	library->files[library->nr++] =
		(struct library_file){ .path = real, .symfile = open_file(library, path) };
	*place = (uint32_t)library->nr;
	return library->files[library->nr - 1].symfile;
}

struct symfile *library_open(struct library *library, const char *path)
{
	struct symfile *symfile = library_try(library, path);
	struct store *store = library->where ? library->where->store : NULL;
	char *real = store && symfile ? store_real(store, symfile_path(symfile)) : NULL;

	if (real)
		store_use(store, real, STORE_NAME, path);
	free(real);
	return symfile;
}

void library_release(struct library *library)
{
	for (size_t i = 0; i < library->nr; i++) {
		symfile_close(library->files[i].symfile);
		free(library->files[i].path);
	}
	free(library->files);
	hash_release(&library->by_path);
	memset(library, 0, sizeof(*library));
}

// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/store.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/spool.h"
#include "base/store_parts.h"
#include "base/tar.h"

#define BLOCK ((size_t)128 << 10)

struct hash_key store_key_of(enum store_key_kind kind, const char *text)
{
	size_t len = strlen(text);

	return (struct hash_key){ hash_bytes(text, len), (uint64_t)len << 2 | kind };
}

static struct store_file *find(const struct store *store, enum store_key_kind kind,
			       const char *text)
{
	uint32_t index = hash_get(&store->by_key, store_key_of(kind, text));

	return index ? &store->files[index - 1] : NULL;
}

/* In this archive or those after it. */
static const struct store_file *find_all(const struct store *store, enum store_key_kind kind,
					 const char *text)
{
	const struct store_file *file = NULL;

	for (; store && store->archive && !file; store = store->next)
		file = find(store, kind, text);
	return file;
}

/* ---- finding files ---- */

char *store_real(const struct store *store, const char *path)
{
	const struct store_file *file = find_all(store, STORE_NAME, path);

	return file ? xstrdup(file->path) : realpath(path, NULL);
}

const char *store_find(const struct store *store, enum store_key_kind kind, const char *text)
{
	const struct store_file *file = find_all(store, kind, text);

	return file ? file->path : NULL;
}

static int reopen(int fd)
{
	char link[32];

	/* A dup would share the file position; a new open does not. */
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	return open(link, O_RDONLY | O_CLOEXEC);
}

static ssize_t read_at(int fd, void *to, size_t len, uint64_t offset)
{
	size_t done = 0;

	while (done < len) {
		ssize_t got = pread(fd, (char *)to + done, len - done, (off_t)(offset + done));

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -1;
		if (got == 0)
			break;
		done += (size_t)got;
	}
	return (ssize_t)done;
}

static int copy_part(int from, uint64_t offset, uint64_t len, int to)
{
	uint8_t *block = xmalloc(BLOCK);
	int error = 0;

	while (len && !error) {
		ssize_t got = read_at(from, block, len < BLOCK ? (size_t)len : BLOCK, offset);

		if (got <= 0)
			error = got < 0 ? errno : EIO;
		else
			error = fd_write(to, block, (size_t)got);
		if (error)
			break;
		offset += (uint64_t)got;
		len -= (uint64_t)got;
	}
	free(block);
	return error;
}

/* A large file has a temporary file of its own, a small one is a part of one. */
static int open_member(const struct store *store, const struct store_file *file)
{
	int fd, error;

	if (file->fd != store->spool)
		return reopen(file->fd);
	fd = spool_file();
	if (fd < 0)
		return -1;
	error = copy_part(file->fd, file->offset, file->size, fd);
	if (error || lseek(fd, 0, SEEK_SET) < 0) {
		close(fd);
		errno = error ? error : errno;
		return -1;
	}
	return fd;
}

int store_open(const struct store *store, const char *path)
{
	for (; store && store->archive; store = store->next) {
		const struct store_file *file = find(store, STORE_NAME, path);

		if (file)
			return open_member(store, file);
	}
	return open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
}

char *store_place(const struct store *store, const char *path)
{
	for (; store && store->archive; store = store->next) {
		const struct store_file *file = find(store, STORE_NAME, path);

		if (file)
			return xasprintf("%s:%s", store->archive, file->member);
	}
	return xstrdup(path);
}

/* ---- files that belong to an input ---- */

bool store_has(const struct store *store, const char *path)
{
	if (store && store->archive)
		return find(store, STORE_NAME, path);
	return access(path, F_OK) == 0;
}

static void use_path(struct store *store, const char *path)
{
	char *real = store && !store->archive ? realpath(path, NULL) : NULL;

	if (real)
		store_use(store, real, STORE_NAME, path);
	free(real);
}

int store_in(struct store *store, struct in *in, const char *path, struct err *err)
{
	const struct store_file *file;
	int fd;

	if (!store || !store->archive) {
		int ret = in_open(in, path, err);

		if (ret == 0)
			use_path(store, path);
		return ret;
	}
	file = find(store, STORE_NAME, path);
	fd = file ? open_member(store, file) : -1;
	if (fd < 0)
		return err_set(err, ERR_INPUT, "%s: cannot open %s: %s", store->archive, path,
			       file ? strerror(errno) : "not in the archive");
	return in_open_fd(in, fd, path, err);
}

ssize_t store_read(struct store *store, const char *path, void *to, size_t len, uint64_t offset,
		   uint64_t *size)
{
	const struct store_file *file;
	struct stat st;
	ssize_t got;
	int fd;

	if (store && store->archive) {
		file = find(store, STORE_NAME, path);
		if (!file)
			return -1;
		if (size)
			*size = file->size;
		if (offset >= file->size)
			return 0;
		if (len > file->size - offset)
			len = (size_t)(file->size - offset);
		return read_at(file->fd, to, len, file->offset + offset);
	}
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return -1;
	if (size)
		*size = fstat(fd, &st) == 0 && st.st_size > 0 ? (uint64_t)st.st_size : 0;
	got = read_at(fd, to, len, offset);
	close(fd);
	use_path(store, path);
	return got;
}

/* ---- lists ---- */

struct store_file *store_add_file(struct store *store, const char *path)
{
	GROW(store->files, store->nr + 1, store->cap);
	store->files[store->nr] = (struct store_file){
		.path = arena_strndup(&store->arena, path, strlen(path)),
		.fd = -1,
	};
	return &store->files[store->nr++];
}

/* The first file of a key keeps it; a file's own path is a key that wins over all. */
void store_add_key(struct store *store, size_t index, enum store_key_kind kind, const char *text)
{
	struct store_file *file = &store->files[index];
	uint32_t *slot = hash_at(&store->by_key, store_key_of(kind, text));

	if (*slot && strcmp(file->path, text) != 0)
		return;
	*slot = (uint32_t)index + 1;
	if (kind == STORE_NAME && !strcmp(file->path, text))
		return;
	GROW(file->keys, file->nr + 1, file->cap);
	file->keys[file->nr++] =
		(struct store_key){ kind, arena_strndup(&store->arena, text, strlen(text)) };
}

struct store *store_new(void)
{
	struct store *store = xcalloc(1, sizeof(*store));

	store->spool = -1;
	return store;
}

/* Threads that decode a trace look for debug files, too. */
static pthread_mutex_t use_lock = PTHREAD_MUTEX_INITIALIZER;

void store_use(struct store *store, const char *path, enum store_key_kind kind, const char *text)
{
	struct store_file *file;

	if (!store || store->archive)
		return;
	pthread_mutex_lock(&use_lock);
	file = find(store, STORE_NAME, path);
	/* If another file has this path as a name, it loses it. */
	if (!file || strcmp(file->path, path) != 0) {
		file = store_add_file(store, path);
		store_add_key(store, store->nr - 1, STORE_NAME, path);
	}
	store_add_key(store, (size_t)(file - store->files), kind, text);
	pthread_mutex_unlock(&use_lock);
}

bool store_set_member(struct store *store, size_t file, const char *name)
{
	uint32_t *slot;

	if (!tar_name_fits(name) || !strcmp(name, STORE_MANIFEST))
		return false;
	slot = hash_at(&store->by_member, store_key_of(STORE_NAME, name));
	if (*slot)
		return false;
	*slot = (uint32_t)file + 1;
	store->files[file].member = arena_strndup(&store->arena, name, strlen(name));
	return true;
}

void store_free(struct store *store)
{
	while (store) {
		struct store *next = store->next;

		for (size_t i = 0; i < store->nr; i++) {
			if (store->files[i].fd >= 0 && store->files[i].fd != store->spool)
				close(store->files[i].fd);
			free(store->files[i].keys);
		}
		if (store->spool >= 0)
			close(store->spool);
		free(store->files);
		free(store->inputs);
		free(store->options);
		hash_release(&store->by_key);
		hash_release(&store->by_member);
		arena_release(&store->arena);
		free(store);
		store = next;
	}
}

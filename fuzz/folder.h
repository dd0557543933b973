/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * folder: an input that is several files, in a folder in memory: for each file, a line with its name, a line with its
 * size, and its content. In a name, ':' stands for '/'.
 */
#ifndef KSCOPE_FUZZ_FOLDER_H
#define KSCOPE_FUZZ_FOLDER_H

#include <ftw.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"

#define FOLDER_FILES 8
#define FOLDER_NAME 100

struct fuzz_folder {
	char path[64];
	char *files[FOLDER_FILES];
	size_t nr;
};

/* The next line, as a word; false: there is none. */
static bool take_word(const uint8_t **data, size_t *size, char word[FOLDER_NAME])
{
	const uint8_t *end = *size ? memchr(*data, '\n', *size) : NULL;
	size_t len = end ? (size_t)(end - *data) : 0;

	if (!end || len >= FOLDER_NAME)
		return false;
	memcpy(word, *data, len);
	word[len] = '\0';
	*data += len + 1;
	*size -= len + 1;
	return true;
}

static void make_folders(char *path, size_t from)
{
	for (char *slash = path + from; (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		mkdir(path, 0700);
		*slash = '/';
	}
}

static void add_file(struct fuzz_folder *folder, char *name, const uint8_t *data, size_t len)
{
	char *path;
	FILE *file;

	for (char *at = name; *at; at++)
		*at = *at == '/' ? '_' : *at == ':' ? '/' : *at;
	if (strstr(name, "..") || folder->nr == FOLDER_FILES)
		return;
	path = xasprintf("%s/%s", folder->path, name);
	make_folders(path, strlen(folder->path) + 1);
	file = fopen(path, "wb");
	if (!file) {
		free(path);
		return;
	}
	fwrite(data, 1, len, file);
	fclose(file);
	folder->files[folder->nr++] = path;
}

static void open_folder(struct fuzz_folder *folder, const uint8_t *data, size_t size)
{
	char name[FOLDER_NAME], text[FOLDER_NAME];

	*folder = (struct fuzz_folder){ 0 };
	snprintf(folder->path, sizeof(folder->path), "/dev/shm/kscope-fuzz-%ld", (long)getpid());
	if (mkdir(folder->path, 0700) < 0)
		abort();

	while (take_word(&data, &size, name) && take_word(&data, &size, text)) {
		size_t len = strtoul(text, NULL, 10);

		len = len < size ? len : size;
		add_file(folder, name, data, len);
		data += len;
		size -= len;
	}
}

static int remove_entry(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)st, (void)kind, (void)at;
	return remove(path);
}

static void close_folder(struct fuzz_folder *folder)
{
	for (size_t i = 0; i < folder->nr; i++)
		free(folder->files[i]);
	if (nftw(folder->path, remove_entry, 10, FTW_DEPTH | FTW_PHYS) != 0)
		abort();
}

#endif

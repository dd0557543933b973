// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/leftover.h"
#include "base/mem.h"
#include "base/out.h"

#define MAX_NAMES 100

static void release(struct folder *folder)
{
	if (folder->fd >= 0)
		close(folder->fd);
	if (folder->temp)
		leftover_forget(folder->temp);
	free(folder->temp);
	free(folder->target);
	memset(folder, 0, sizeof(*folder));
	folder->fd = -1;
}

/* Without the slashes at its end. */
static char *trimmed(const char *path)
{
	size_t len = strlen(path);

	while (len > 1 && path[len - 1] == '/')
		len--;
	return xstrndup(path, len);
}

/* NULL: see out_follow(). */
static char *find_target(const char *path)
{
	char *name = trimmed(path), *target = out_follow(name);
	char *whole = target ? realpath(target, NULL) : NULL;

	free(name);
	if (!whole)
		return target;
	free(target);
	return whole;
}

/* Calls each() for every file of a folder until it returns false. False: it did, or errno is set. */
static bool for_each_file(int fd, bool (*each)(int fd, const char *name))
{
	int copy = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = copy < 0 ? NULL : fdopendir(copy);
	struct dirent *entry;
	bool good = dir;

	if (!dir && copy >= 0)
		close(copy);
	while (good && (entry = readdir(dir))) {
		if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, ".."))
			good = each(fd, entry->d_name);
	}
	if (dir)
		closedir(dir);
	return good;
}

static bool is_file(int fd, const char *name)
{
	struct stat st;

	return !fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) && !S_ISDIR(st.st_mode);
}

static bool is_nothing(int fd, const char *name)
{
	(void)fd;
	(void)name;
	return false;
}

static bool has_mark(int folder, const struct folder_mark *mark)
{
	int fd = openat(folder, mark->file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	size_t want = strlen(mark->magic);
	char head[16];
	bool good = fd >= 0 && read(fd, head, want) == (ssize_t)want &&
		    !memcmp(head, mark->magic, want);

	if (fd >= 0)
		close(fd);
	return good;
}

/* Whether what has the name of the output may be replaced, or nothing has it. */
static int check_target(struct folder *folder, const struct folder_mark *mark, struct err *err)
{
	bool good;
	int fd;

	if (stat(folder->target, &folder->replaced.st))
		return errno == ENOENT ? 0 : out_error(folder->path, errno, err);
	folder->replaced.there = true;
	if (!S_ISDIR(folder->replaced.st.st_mode))
		return err_set(err, ERR_OUTPUT, "%s: not a folder: use another name for the output",
			       folder->path);
	fd = open(folder->target, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return out_error(folder->path, errno, err);
	good = for_each_file(fd, is_nothing) || (has_mark(fd, mark) && for_each_file(fd, is_file));
	close(fd);
	if (!good)
		return err_set(err, ERR_OUTPUT,
			       "%s: this folder has other files: kscope replaces only a folder of "
			       "the same format",
			       folder->path);
	return 0;
}

static int make_temp(struct folder *folder)
{
	for (int nr = 0; nr < MAX_NAMES; nr++) {
		folder->temp = out_temp_name(folder->target, nr);
		if (!mkdir(folder->temp, folder->replaced.there ? 0700 : 0777)) {
			leftover_add(folder->temp);
			folder->fd = open(folder->temp, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
			return folder->fd < 0 ? -1 : 0;
		}
		free(folder->temp);
		folder->temp = NULL;
		if (errno != EEXIST)
			break;
	}
	return -1;
}

int folder_open(struct folder *folder, const char *path, const struct folder_mark *mark,
		struct err *err)
{
	memset(folder, 0, sizeof(*folder));
	folder->path = path;
	folder->fd = -1;
	folder->target = find_target(path);
	if (!folder->target) {
		out_error(path, errno, err);
		release(folder);
		return -1;
	}
	if (check_target(folder, mark, err) < 0) {
		release(folder);
		return -1;
	}
	if (make_temp(folder) < 0) {
		out_error(path, errno, err);
		folder_abandon(folder);
		return -1;
	}
	return 0;
}

void folder_append(struct folder *folder, const char *name, const void *data, size_t len)
{
	int fd, error;

	if (folder->failed)
		return;
	fd = openat(folder->fd, name, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
	if (fd < 0) {
		folder->failed = errno;
		return;
	}
	error = fd_write(fd, data, len);
	/* Network file systems may report a full disk only here. */
	if (close(fd) && !error)
		error = errno;
	folder->failed = error;
}

int folder_read(struct folder *folder, const char *name)
{
	int fd = folder->failed ? -1 : openat(folder->fd, name, O_RDONLY | O_CLOEXEC);

	if (fd < 0 && !folder->failed)
		folder->failed = errno;
	return fd;
}

void folder_rename(struct folder *folder, const char *from, const char *to)
{
	if (!folder->failed && renameat(folder->fd, from, folder->fd, to))
		folder->failed = errno;
}

/* Puts the new folder in the place of the old one, and removes that. */
static int replace(struct folder *folder)
{
	/* An empty folder may be replaced at once, and a name that is free. */
	if (!rename(folder->temp, folder->target))
		return 0;
	if (errno != ENOTEMPTY && errno != EEXIST)
		return errno;
	if (renameat2(AT_FDCWD, folder->temp, AT_FDCWD, folder->target, RENAME_EXCHANGE))
		return errno;
	leftover_remove_folder(folder->temp);
	return 0;
}

int folder_commit(struct folder *folder, struct err *err)
{
	int error = folder->failed;

	if (!error)
		error = out_take_place(folder->fd, &folder->replaced);
	if (!error)
		error = replace(folder);
	if (error) {
		out_error(folder->path, error, err);
		folder_abandon(folder);
		return -1;
	}
	release(folder);
	return 0;
}

void folder_abandon(struct folder *folder)
{
	if (folder->temp)
		leftover_remove_folder(folder->temp);
	if (folder->path)
		release(folder);
}

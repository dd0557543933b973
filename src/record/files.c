// SPDX-License-Identifier: GPL-2.0-or-later
#include "record/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/leftover.h"
#include "base/mem.h"
#include "base/spool.h"
#include "base/text.h"
#include "record/control.h"

#define PLUGIN "kscope-qemu.so"
#define MAX_NAMES 100

char *files_plugin(struct err *err)
{
	static const char *const places[] = { PLUGIN, "../lib/kscope/" PLUGIN };
	const char *set = getenv("KSCOPE_PLUGIN");
	char self[4096], *folder;
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (set && *set) {
		if (access(set, R_OK) == 0)
			return files_absolute(set);
		err_set(err, ERR_INPUT, "%s (from KSCOPE_PLUGIN): %s", set, strerror(errno));
		return NULL;
	}
	self[len > 0 ? len : 0] = '\0';
	folder = text_folder(self);
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		char *path = xasprintf("%s%s", folder, places[i]);

		if (access(path, R_OK) == 0) {
			free(folder);
			return path;
		}
		free(path);
	}
	err_set(err, ERR_INPUT,
		"cannot find the QEMU plugin: neither %s%s nor %s%s exists; build it with make, or "
		"set KSCOPE_PLUGIN=FILE",
		folder, places[0], folder, places[1]);
	free(folder);
	return NULL;
}

char *files_absolute(const char *path)
{
	char *here, *whole;

	if (*path == '/')
		return xstrdup(path);
	here = getcwd(NULL, 0);
	whole = xasprintf("%s/%s", here ? here : "", path);
	free(here);
	return whole;
}

static int cannot_write(const char *path, struct err *err)
{
	return err_set(err, ERR_OUTPUT, "%s: cannot write: %s", path, strerror(errno));
}

/* Renames a file to a free name. Not all file systems know RENAME_NOREPLACE. */
static bool rename_to_free(const char *from, const char *to)
{
	if (!renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE))
		return true;
	if (errno != EINVAL && errno != ENOSYS)
		return false;
	if (access(to, F_OK) == 0) {
		errno = EEXIST;
		return false;
	}
	return rename(from, to) == 0;
}

/* Returns the new name; NULL with errno set. */
static char *set_aside(const char *path)
{
	for (int nr = 1; nr <= MAX_NAMES; nr++) {
		char *name = nr > 1 ? xasprintf("%s.old%d", path, nr) : xasprintf("%s.old", path);

		if (rename_to_free(path, name))
			return name;
		free(name);
		if (errno != EEXIST)
			break;
	}
	return NULL;
}

static int check_named(struct record_files *files, const char *raw, struct err *err)
{
	char *folder = text_folder(files->raw);
	int ret = access(folder, W_OK | X_OK);

	free(folder);
	files->replaced.there = stat(files->raw, &files->replaced.st) == 0;
	if (files->replaced.there && !S_ISREG(files->replaced.st.st_mode))
		return err_set(err, ERR_OUTPUT, "%s: the raw stream needs a regular file", raw);
	if (ret < 0 || (files->replaced.there && access(files->raw, W_OK) < 0))
		return cannot_write(raw, err);
	return 0;
}

/* Also for the plugin: QEMU may run as another user (sudo), whose file kscope could not read. */
static int create_named(struct record_files *files, const char *raw, struct err *err)
{
	int fd;

	if (files->replaced.there) {
		files->old = set_aside(files->raw);
		if (!files->old)
			return cannot_write(raw, err);
	}
	fd = open(files->raw, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd >= 0) {
		close(fd);
		return 0;
	}
	cannot_write(raw, err);
	if (files->old)
		rename(files->old, files->raw);
	free(files->old);
	files->old = NULL;
	return -1;
}

/* The plugin writes directly to the file, so an existing one has another name until it succeeds. */
static int use_named(struct record_files *files, const char *raw, struct err *err)
{
	char *target = out_follow(raw);

	if (!target)
		return out_error(raw, errno, err);
	files->raw = files_absolute(target);
	free(target);
	files->raw_stays = true;
	if (check_named(files, raw, err) == 0 && create_named(files, raw, err) == 0)
		return 0;
	free(files->raw); /* it is not ours: do not remove it */
	files->raw = NULL;
	return -1;
}

/*
 * Next to the output, where there is room for a large file, unless there is none or it is a device. It survives a
 * signal or crash that ends kscope: kscope convert can read it.
 */
static int use_temporary(struct record_files *files, const char *output, struct err *err)
{
	struct stat st;
	char *whole = files_absolute(output ? output : "recording"), *folder = text_folder(whole);
	int fd;

	if (!output || !strcmp(output, "-") || (stat(output, &st) == 0 && !S_ISREG(st.st_mode))) {
		free(folder);
		folder = xasprintf("%s/", spool_folder());
	}
	files->raw = xasprintf("%s.%.200s-XXXXXX.kscope", folder, text_last_part(whole));
	free(whole);
	free(folder);
	fd = mkstemps(files->raw, 7);
	if (fd < 0) {
		free(files->raw);
		files->raw = NULL;
		return cannot_write(output ? output : spool_folder(), err);
	}
	close(fd);
	return 0;
}

static int make_folder(struct record_files *files, struct err *err)
{
	files->folder = xstrdup("/tmp/kscope-XXXXXX");
	if (!mkdtemp(files->folder)) {
		free(files->folder);
		files->folder = NULL;
		return err_set(err, ERR_OUTPUT,
			       "/tmp: cannot create a directory for the socket: %s",
			       strerror(errno));
	}
	leftover_add(files->folder);
	files->control = xasprintf("%s/control", files->folder);
	return 0;
}

static bool is_socket(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0 && S_ISSOCK(st.st_mode);
}

/* Removes a stale socket; one that accepts a connection is in use. */
static int use_socket(struct record_files *files, const char *path, struct err *err)
{
	struct control other = { .fd = -1 };
	struct err unused = { 0 };
	char *whole = files_absolute(path);

	if (control_path_fits(whole, err) < 0) {
		free(whole);
		return -1;
	}
	if (is_socket(whole) && control_connect(&other, whole, 1, &unused) < 0)
		unlink(whole);
	control_close(&other);
	if (access(whole, F_OK) == 0) {
		free(whole);
		return err_set(err, ERR_USAGE, "--control %s: already exists", path);
	}
	files->control = whole;
	return 0;
}

int files_prepare(struct record_files *files, const char *raw, const char *output, struct err *err)
{
	return raw ? use_named(files, raw, err) : use_temporary(files, output, err);
}

int files_prepare_socket(struct record_files *files, const char *control, struct err *err)
{
	return control ? use_socket(files, control, err) : make_folder(files, err);
}

int files_create_raw(const struct record_files *files, struct err *err)
{
	int fd = open(files->raw, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	return fd < 0 ? cannot_write(files->raw, err) : fd;
}

uint64_t files_written(const struct record_files *files)
{
	struct stat st;

	return stat(files->raw, &st) < 0 ? 0 : (uint64_t)st.st_size;
}

void files_restore(struct record_files *files)
{
	files->raw_stays = false;
}

void files_keep(struct record_files *files)
{
	int fd;

	if (!files->old || !files_written(files))
		return;
	fd = open(files->raw, O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd >= 0) {
		out_take_place(fd, &files->replaced);
		close(fd);
	}
	unlink(files->old);
	free(files->old);
	files->old = NULL;
}

void files_release(struct record_files *files)
{
	if (files->raw && !(files->raw_stays && files_written(files)))
		unlink(files->raw);
	files_keep(files);
	if (files->old)
		rename(files->old, files->raw);
	free(files->old);
	if (files->control && is_socket(files->control))
		unlink(files->control);
	if (files->folder) {
		rmdir(files->folder);
		leftover_forget(files->folder);
	}
	free(files->plugin);
	free(files->raw);
	free(files->control);
	free(files->folder);
	memset(files, 0, sizeof(*files));
}

// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/out.h"

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
#include "base/pack.h"
#include "base/spool.h"
#include "base/text.h"

#define BUFFER OUT_ROOM
#define MAX_LINKS 40 /* as many symbolic links as the kernel follows */
#define MAX_NAMES 100

static const char *hint(int error)
{
	switch (error) {
	case ENOSPC:
	case EDQUOT: return " (free some space, or name a file on another disk)";
	case EACCES:
	case EPERM: return " (the file and its directory must both be writable)";
	case ENOENT:
	case ENOTDIR: return " (the directory must exist)";
	case EISDIR: return " (name a file inside it)";
	case EROFS: return " (name a file on a writable disk)";
	case EFBIG: return " (see ulimit -f)";
	case OUT_TRAP:
		return ", in a folder where everybody may create files (use another name, or "
		       "another folder)";
	case EPIPE: return " (the reader closed the pipe)";
	default: return "";
	}
}

int out_error(const char *path, int error, struct err *err)
{
	return err_set(err, ERR_OUTPUT, "%s: cannot write: %s%s",
		       strcmp(path, "-") ? path : "standard output",
		       error == OUT_TRAP ? "another user created it" : strerror(error),
		       hint(error));
}

static void release(struct out *out)
{
	if (out->fd >= 0 && out->fd != STDOUT_FILENO)
		close(out->fd);
	if (out->pack)
		out->pack->ops->close(out->pack);
	if (out->temp)
		leftover_forget(out->temp);
	free(out->temp);
	free(out->target);
	free(out->data);
	memset(out, 0, sizeof(*out));
}

bool out_is_trap(const struct stat *folder, const struct stat *file, uid_t me)
{
	bool shared = (folder->st_mode & S_ISVTX) && (folder->st_mode & S_IWOTH);
	bool dangerous = S_ISLNK(file->st_mode) || S_ISREG(file->st_mode) ||
			 S_ISFIFO(file->st_mode) || S_ISDIR(file->st_mode);

	return shared && dangerous && file->st_uid != me && file->st_uid != folder->st_uid;
}

/* The check of the kernel's fs.protected_symlinks and its like, even where they are off. */
static bool is_trap(const char *path, bool is_last)
{
	char *name = text_folder(path);
	struct stat folder, file;
	bool trap = !lstat(path, &file) && (is_last || S_ISLNK(file.st_mode)) &&
		    !stat(*name ? name : ".", &folder) && out_is_trap(&folder, &file, geteuid());

	free(name);
	return trap;
}

/* Also checks links in the path of the folder, which the kernel would follow. */
static bool has_trap(const char *path)
{
	bool trap = is_trap(path, true);

	for (const char *slash = strchr(path, '/'); slash && !trap;
	     slash = strchr(slash + 1, '/')) {
		char *part = xstrndup(path, (size_t)(slash - path));

		trap = *part && is_trap(part, false);
		free(part);
	}
	return trap;
}

char *out_follow(const char *path)
{
	char *at = xstrdup(path);
	char link[4096];
	int error = ELOOP;

	for (int hops = 0; hops < MAX_LINKS; hops++) {
		ssize_t len = readlink(at, link, sizeof(link) - 1);
		char *folder, *next;

		if (has_trap(at)) {
			error = OUT_TRAP;
			break;
		}
		if (len < 0)
			return at;
		link[len] = '\0';
		folder = text_folder(at);
		next = link[0] == '/' ? xstrdup(link) : xasprintf("%s%s", folder, link);
		free(folder);
		free(at);
		at = next;
	}
	free(at);
	errno = error;
	return NULL;
}

int out_take_place(int fd, const struct out_replaced *replaced)
{
	const struct stat *st = &replaced->st;
	mode_t mode = st->st_mode & 0777;

	if (!replaced->there)
		return 0;
	/* Only root may keep the owner. Another group must not get what was for the group of the old file. */
	if (fchown(fd, st->st_uid, st->st_gid) && fchown(fd, (uid_t)-1, st->st_gid))
		mode &= ~070u | (mode & 07) << 3;
	return fchmod(fd, mode) ? errno : 0;
}

char *out_temp_name(const char *target, int nr)
{
	char *folder = text_folder(target);
	char *name = xasprintf("%s.kscope-%ld-%d.tmp", folder, (long)getpid(), nr);

	free(folder);
	return name;
}

/* Needs /proc: linkat() names the file later by its path there. */
static int open_nameless(const char *target, mode_t mode)
{
	char *folder = text_folder(target);
	int fd = open(*folder ? folder : ".", O_TMPFILE | O_RDWR | O_CLOEXEC, mode);
	char proc[40];

	free(folder);
	if (fd < 0)
		return -1;
	snprintf(proc, sizeof(proc), "/proc/self/fd/%d", fd);
	if (access(proc, F_OK)) {
		close(fd);
		return -1;
	}
	return fd;
}

static int open_temp(struct out *out, mode_t mode)
{
	for (int nr = 0; nr < MAX_NAMES; nr++) {
		char *name = out_temp_name(out->target, nr);
		int fd = open(name, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, mode);

		if (fd >= 0) {
			leftover_add(name);
			out->temp = name;
			return fd;
		}
		free(name);
		if (errno != EEXIST)
			break;
	}
	return -1;
}

static int open_named(struct out *out)
{
	mode_t mode = out->is_private || out->replaced.there ? 0600 : 0666;

	/* The rename would replace even a write-protected file. */
	if (access(out->target, W_OK) && errno != ENOENT)
		return -1;
	out->named = true;
	out->fd = open_nameless(out->target, mode);
	if (out->fd < 0)
		out->fd = open_temp(out, mode);
	return out->fd;
}

static bool is_stdout(const char *path)
{
	return !strcmp(path, "-") || !strcmp(path, "/dev/stdout");
}

static int open_stream(struct out *out)
{
	return is_stdout(out->path) ? STDOUT_FILENO
				    : open(out->path, O_WRONLY | O_NOCTTY | O_CLOEXEC);
}

static int open_any(struct out *out, bool need_seek)
{
	const struct stat *st = &out->replaced.st;

	if (!is_stdout(out->path)) {
		out->target = out_follow(out->path);
		if (!out->target)
			return -1;
		out->replaced.there = !stat(out->path, &out->replaced.st);
		if (!out->replaced.there || S_ISREG(st->st_mode))
			return open_named(out);
		if (S_ISDIR(st->st_mode)) {
			errno = EISDIR;
			return -1;
		}
	}
	out->spooled = need_seek;
	out->fd = need_seek ? spool_file() : open_stream(out);
	return out->fd;
}

static int open_pack(struct out *out, const struct pack_ops *ops, bool need_seek, struct err *err)
{
	if (need_seek)
		return err_set(err, ERR_USAGE,
			       "%s: kscope cannot compress this format: use a name without %s",
			       out->path, ops->extension);
	out->pack = ops->open ? ops->open() : NULL;
	return out->pack ? 0
			 : err_set(err, ERR_OUTPUT,
				   "%s: this kscope was built without %s: use a name without %s",
				   out->path, ops->library, ops->extension);
}

static int open_as(struct out *out, const struct pack_ops *ops, bool need_seek, struct err *err)
{
	out->fd = -1;
	if (ops && open_pack(out, ops, need_seek, err) < 0)
		return -1;
	if (open_any(out, need_seek) < 0) {
		out_error(out->path, errno, err);
		release(out);
		return -1;
	}
	out->data = xmalloc(BUFFER);
	return 0;
}

int out_open(struct out *out, const char *path, bool need_seek, struct err *err)
{
	*out = (struct out){ .path = path };
	return open_as(out, pack_by_name(path), need_seek, err);
}

int out_open_private(struct out *out, const char *path, bool need_seek, struct err *err)
{
	return out_open_packed(out, path, pack_by_name(path), need_seek, err);
}

int out_open_packed(struct out *out, const char *path, const struct pack_ops *ops, bool need_seek,
		    struct err *err)
{
	*out = (struct out){ .path = path, .is_private = true };
	return open_as(out, ops, need_seek, err);
}

int out_open_temporary(struct out *out, struct err *err)
{
	*out = (struct out){ .path = spool_folder(), .named = true, .fd = spool_file() };
	if (out->fd < 0)
		return err_set(err, ERR_OUTPUT, "cannot create a temporary file in %s: %s",
			       out->path, strerror(errno));
	out->data = xmalloc(BUFFER);
	return 0;
}

static int write_plain(int fd, const void *data, size_t len)
{
	struct buf text = { 0 };
	int error;

	text_add_lines(&text, data, len);
	error = fd_write(fd, text.data, text.len);
	buf_release(&text);
	return error;
}

static void write_out(struct out *out, const void *data, size_t len, enum pack_until until)
{
	if (!out->failed)
		out->failed = out->pack
				      ? out->pack->ops->write(out->pack, out->fd, data, len, until)
			      : out->plain ? write_plain(out->fd, data, len)
					   : fd_write(out->fd, data, len);
	out->flushed += len;
}

static void flush_until(struct out *out, enum pack_until until)
{
	write_out(out, out->data, out->len, until);
	out->len = 0;
}

void out_flush(struct out *out)
{
	flush_until(out, PACK_MORE);
}

void out_write(struct out *out, const void *data, size_t len)
{
	if (len > BUFFER - out->len)
		out_flush(out);
	if (len < BUFFER) {
		if (len)
			memcpy(out->data + out->len, data, len);
		out->len += len;
		return;
	}
	write_out(out, data, len, PACK_MORE);
}

void out_puts(struct out *out, const char *s)
{
	out_write(out, s, strlen(s));
}

uint64_t out_offset(const struct out *out)
{
	return out->flushed + out->len;
}

void out_patch(struct out *out, uint64_t offset, const void *data, size_t len)
{
	const uint8_t *bytes = data;

	if (offset < out->flushed)
		out_flush(out);
	if (offset >= out->flushed) {
		memcpy(out->data + (offset - out->flushed), bytes, len);
		return;
	}
	while (len && !out->failed) {
		ssize_t did = pwrite(out->fd, bytes, len, (off_t)offset);

		if (did < 0 && errno != EINTR)
			out->failed = errno;
		if (did <= 0)
			continue;
		bytes += did;
		offset += (uint64_t)did;
		len -= (size_t)did;
	}
}

void out_share(struct out *out)
{
	if (!out->named && !out->spooled)
		flush_until(out, PACK_SHARE);
}

int out_file(const struct out *out)
{
	return out->named && !out->pack ? out->fd : -1;
}

bool out_failed(const struct out *out)
{
	return out->failed != 0;
}

/* The commit functions below return 0 or an errno. */

static int copy_all(int from, int to, uint8_t *buffer)
{
	uint64_t offset = 0;

	for (;;) {
		ssize_t got = pread(from, buffer, BUFFER, (off_t)offset);
		int error;

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return got < 0 ? errno : 0;
		error = fd_write(to, buffer, (size_t)got);
		if (error)
			return error;
		offset += (uint64_t)got;
	}
}

static int commit_spool(struct out *out)
{
	int error, to = open_stream(out);

	if (to < 0)
		return errno;
	error = copy_all(out->fd, to, out->data);
	if (to != STDOUT_FILENO && close(to) && !error)
		error = errno;
	return error;
}

/*
 * Links the file directly if the name is free. linkat() never replaces a file, so otherwise link
 * it under a temporary name and rename that.
 */
static int name_nameless(struct out *out)
{
	char proc[40];

	snprintf(proc, sizeof(proc), "/proc/self/fd/%d", out->fd);
	if (!linkat(AT_FDCWD, proc, AT_FDCWD, out->target, AT_SYMLINK_FOLLOW))
		return 0;
	for (int nr = 0; errno == EEXIST && nr < MAX_NAMES; nr++) {
		free(out->temp);
		out->temp = out_temp_name(out->target, nr);
		if (!linkat(AT_FDCWD, proc, AT_FDCWD, out->temp, AT_SYMLINK_FOLLOW))
			return rename(out->temp, out->target) ? errno : 0;
	}
	free(out->temp);
	out->temp = NULL; /* the name is not ours: do not unlink it */
	return errno;
}

static int commit_named(struct out *out)
{
	int fd = out->fd, error = out_take_place(fd, &out->replaced);

	if (error)
		return error;
	if (!out->temp)
		return name_nameless(out);
	/* Network file systems may report a full disk only here. */
	out->fd = -1;
	if (close(fd))
		return errno;
	return rename(out->temp, out->target) ? errno : 0;
}

static int commit_stream(struct out *out)
{
	int fd = out->fd;

	if (fd == STDOUT_FILENO)
		return 0;
	out->fd = -1;
	return close(fd) ? errno : 0;
}

int out_commit(struct out *out, struct err *err)
{
	int error;

	flush_until(out, PACK_END);
	error = out->failed;
	if (!error)
		error = out->named     ? commit_named(out)
			: out->spooled ? commit_spool(out)
				       : commit_stream(out);
	if (error) {
		out_error(out->path, error, err);
		out_abandon(out);
		return -1;
	}
	release(out);
	return 0;
}

void out_abandon(struct out *out)
{
	if (!out->data)
		return;
	if (out->temp)
		unlink(out->temp);
	release(out);
}

// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/in.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/spool.h"

#define WINDOW ((size_t)128 << 10)
#define PACKED WINDOW

/* Compressed bytes that were read but not yet decompressed. */
struct packed {
	uint8_t data[PACKED];
	size_t at, end;
	bool ended; /* at a frame's end: fine to stop here */
};

static size_t read_fd(struct in *in, uint8_t *to, size_t len)
{
	ssize_t got;

	if (in->fd < 0)
		return 0;
	do {
		got = read(in->fd, to, len);
	} while (got < 0 && errno == EINTR);
	if (got < 0) {
		err_at(&in->err, ERR_INPUT, in->path, in->base + in->end, "read failed: %s",
		       strerror(errno));
		return 0;
	}
	in->taken += (uint64_t)got;
	return (size_t)got;
}

static size_t read_packed(struct in *in, uint8_t *to, size_t len)
{
	const struct unpack_ops *ops = in->unpack->ops;
	struct packed *packed = in->packed;
	size_t src, dst;

	do {
		int ret;

		if (packed->at == packed->end) {
			packed->at = 0;
			packed->end = read_fd(in, packed->data, PACKED);
		}
		src = packed->end - packed->at;
		dst = len;
		/* Even at end of file: the decompressor may still hold output. */
		ret = ops->step(in->unpack, packed->data + packed->at, &src, to, &dst);
		if (ret < 0) {
			err_at(&in->err, ERR_INPUT, in->path,
			       in->taken - (packed->end - packed->at), "the %s stream is damaged",
			       ops->name);
			return 0;
		}
		packed->at += src;
		if (src || dst)
			packed->ended = ret == 1;
	} while (!dst && src);
	if (!dst && !packed->ended)
		err_at(&in->err, ERR_INPUT, in->path, in->taken, "the %s stream is cut short",
		       ops->name);
	return dst;
}

static void make_room(struct in *in, size_t want)
{
	size_t have = in->end - in->at;

	if (in->at + want <= in->cap)
		return;
	if (want > in->cap) {
		/* More than that: otherwise, each such peek would move all bytes of the last one. */
		size_t cap = grown_capacity(in->cap, want + want / 4);
		uint8_t *data = xmalloc(cap);

		memcpy(data, in->data + in->at, have);
		free(in->data);
		in->data = data;
		in->cap = cap;
	} else if (have) {
		memmove(in->data, in->data + in->at, have);
	}
	in->base += in->at;
	in->at = 0;
	in->end = have;
}

/* Reads once; `want` is what the caller hopes to have in the window in the end. */
static void read_more(struct in *in, size_t want)
{
	size_t got;

	make_room(in, want);
	got = in->unpack ? read_packed(in, in->data + in->end, in->cap - in->end)
			 : read_fd(in, in->data + in->end, in->cap - in->end);
	if (!got)
		in->eof = true;
	in->end += got;
}

/* Files are always readable, and so is a pipe that has ended. */
static bool can_read(const struct in *in, int timeout)
{
	struct pollfd fd = { .fd = in->fd, .events = POLLIN };

	return in->fd < 0 || (in->packed && in->packed->at < in->packed->end) ||
	       poll(&fd, 1, timeout) != 0;
}

bool in_ready(struct in *in, size_t want)
{
	if (want > IN_MAX_PEEK)
		want = IN_MAX_PEEK;
	while (in->end - in->at < want && !in->eof) {
		if (!can_read(in, 0))
			return false;
		read_more(in, want);
	}
	return true;
}

void in_wait(struct in *in)
{
	can_read(in, -1);
}

const uint8_t *in_peek(struct in *in, size_t want, size_t *have)
{
	if (want > IN_MAX_PEEK)
		want = IN_MAX_PEEK;
	while (in->end - in->at < want && !in->eof)
		read_more(in, want);
	*have = in->end - in->at;
	return in->data + in->at;
}

/* Seeks over bytes of a file that need not be read, but not beyond its end. Returns how many. */
static uint64_t seek_ahead(struct in *in, uint64_t n)
{
	uint64_t at = in_offset(in), left = in->size > at ? in->size - at : 0;

	if (in->unpack || in->fd < 0 || n <= in->cap || left <= in->cap)
		return 0;
	if (n > left)
		n = left;
	if (lseek(in->fd, (off_t)(at + n), SEEK_SET) < 0)
		return 0;
	in->taken += at + n - in->base - in->end;
	in->base = at + n;
	in->at = in->end = 0;
	return n;
}

uint64_t in_skip(struct in *in, uint64_t n)
{
	uint64_t done = seek_ahead(in, n);

	while (done < n) {
		size_t have = in->end - in->at;

		if (!have) {
			in_peek(in, 1, &have);
			if (!have)
				break;
		}
		if (have > n - done)
			have = (size_t)(n - done);
		in->at += have;
		done += have;
	}
	return done;
}

static int start_unpacking(struct in *in, struct err *err)
{
	size_t have;
	const uint8_t *head = in_peek(in, UNPACK_HEAD, &have);
	const struct unpack_ops *ops = unpack_probe(head, have);

	if (!ops)
		return 0;
	in->unpack = ops->open();
	if (!in->unpack)
		return err_set(err, ERR_INPUT,
			       "%s: compressed with %s, but kscope was built without it", in->path,
			       ops->name);
	/* The first peek read compressed bytes. They fit: the window is not larger than PACKED. */
	in->packed = xmalloc(sizeof(*in->packed));
	memcpy(in->packed->data, head, have);
	in->packed->at = 0;
	in->packed->end = have;
	in->packed->ended = false;
	in->at = in->end = 0;
	in->eof = false;
	return 0;
}

/* Some editors write one at the start of a text file; no binary format begins with it. */
static void skip_byte_order_mark(struct in *in)
{
	size_t have;
	const uint8_t *head = in_peek(in, 3, &have);

	if (have >= 3 && !memcmp(head, "\xef\xbb\xbf", 3))
		in_skip(in, 3);
}

static void init(struct in *in, const char *path, int fd, size_t window)
{
	memset(in, 0, sizeof(*in));
	in->path = xstrdup(path);
	in->fd = fd;
	in->cap = window;
	in->data = xmalloc(window);
}

int in_open_fd(struct in *in, int fd, const char *path, struct err *err)
{
	struct stat st = { 0 };

	memset(in, 0, sizeof(*in));
	in->fd = -1;
	if (!fstat(fd, &st) && S_ISDIR(st.st_mode)) {
		close(fd);
		return err_set(err, ERR_INPUT, "%s: is a directory", path);
	}
	init(in, path, fd, WINDOW);
	if (S_ISREG(st.st_mode))
		in->size = (uint64_t)st.st_size;
	if (start_unpacking(in, err) < 0) {
		in_close(in);
		return -1;
	}
	skip_byte_order_mark(in);
	return 0;
}

void in_open_live(struct in *in, int fd, const char *path)
{
	init(in, path, fd, WINDOW);
}

int in_open(struct in *in, const char *path, struct err *err)
{
	bool is_stdin = !strcmp(path, "-");
	int fd = is_stdin ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC);

	memset(in, 0, sizeof(*in));
	in->fd = -1;
	if (fd < 0)
		return err_set(err, ERR_INPUT, "%s: cannot open: %s", path, strerror(errno));
	return in_open_fd(in, fd, is_stdin ? "<stdin>" : path, err);
}

void in_open_memory(struct in *in, const char *name, const void *data, size_t len)
{
	init(in, name, -1, len ? len : 1);
	if (len)
		memcpy(in->data, data, len);
	in->end = len;
	in->size = len;
	in->eof = true;
}

void in_rename(struct in *in, const char *name)
{
	free(in->path);
	in->path = xstrdup(name);
}

void in_close(struct in *in)
{
	if (in->unpack)
		in->unpack->ops->close(in->unpack);
	if (in->fd >= 0)
		close(in->fd);
	free(in->packed);
	free(in->data);
	free(in->path);
	memset(in, 0, sizeof(*in));
	in->fd = -1;
}

static bool seekable(const struct in *in)
{
	return !in->unpack && in->fd >= 0 && lseek(in->fd, 0, SEEK_CUR) >= 0;
}

bool in_streams(const struct in *in)
{
	return in->fd >= 0 && lseek(in->fd, 0, SEEK_CUR) < 0;
}

uint64_t in_given(const struct in *in)
{
	if (in->packed_size)
		return in->packed_size;
	return in->size ? in->size : in->taken;
}

/* Whether a compressed stream would fill the disk. */
static bool is_bomb(struct in *in)
{
	if (!in->unpack || !spool_is_bomb(in_given(in), in_offset(in)))
		return false;
	err_at(&in->err, ERR_INPUT, in->path, in_offset(in),
	       "the decompressed data is more than %d times as large as the file: ignoring the "
	       "rest; to read all, decompress the file first",
	       SPOOL_BOMB_RATIO);
	return true;
}

/* Copies the rest of the stream to a temporary file; skipped bytes are not needed again. */
static int spool(struct in *in, struct err *err)
{
	uint64_t start = in_offset(in);
	int fd = spool_file();
	size_t have;

	if (fd < 0 || lseek(fd, (off_t)start, SEEK_SET) < 0)
		goto fail;
	for (;;) {
		const uint8_t *data = in_peek(in, 1, &have);

		if (!have || is_bomb(in))
			break;
		errno = fd_write(fd, data, have);
		if (errno)
			goto fail;
		in_skip(in, have);
	}
	if (in->unpack) {
		in->unpack->ops->close(in->unpack);
		in->packed_size = in_given(in);
	}
	in->unpack = NULL;
	if (in->fd >= 0)
		close(in->fd);
	in->fd = fd;
	in->size = in_offset(in);
	return in_seek(in, start, err);
fail:
	if (fd >= 0)
		close(fd);
	return err_set(err, ERR_INPUT, "%s: cannot copy to a temporary file: %s (set TMPDIR?)",
		       in->path, strerror(errno));
}

int in_seek(struct in *in, uint64_t offset, struct err *err)
{
	if (offset >= in->base && offset <= in->base + in->end) {
		in->at = (size_t)(offset - in->base);
		return 0;
	}
	if (in->fd < 0) { /* memory: cannot seek past the end */
		in->at = in->end;
		return 0;
	}
	if (!seekable(in) && spool(in, err) < 0)
		return -1;
	if (lseek(in->fd, (off_t)offset, SEEK_SET) < 0)
		return err_set(err, ERR_INPUT, "%s: cannot seek: %s", in->path, strerror(errno));
	in->base = offset;
	in->at = in->end = 0;
	in->eof = false;
	return 0;
}

int in_length(struct in *in, uint64_t *length, struct err *err)
{
	struct stat st;

	if (in->fd < 0) {
		*length = in->base + in->end;
		return 0;
	}
	if (!seekable(in) && spool(in, err) < 0)
		return -1;
	if (fstat(in->fd, &st) < 0)
		return err_set(err, ERR_INPUT, "%s: %s", in->path, strerror(errno));
	*length = (uint64_t)st.st_size;
	return 0;
}

static size_t copy_memory(const struct in *in, uint64_t offset, void *to, size_t len)
{
	if (offset >= in->end)
		return 0;
	if (len > in->end - offset)
		len = (size_t)(in->end - offset);
	memcpy(to, in->data + offset, len);
	return len;
}

size_t in_copy(struct in *in, uint64_t offset, void *to, size_t len)
{
	size_t done = 0;

	if (in->fd < 0)
		return copy_memory(in, offset, to, len);
	while (done < len) {
		ssize_t got =
			pread(in->fd, (uint8_t *)to + done, len - done, (off_t)(offset + done));

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			err_at(&in->err, ERR_INPUT, in->path, offset + done, "read failed: %s",
			       strerror(errno));
		if (got <= 0)
			break;
		done += (size_t)got;
	}
	return done;
}

int in_clone(struct in *copy, struct in *in, size_t window, struct err *err)
{
	char link[32];
	int fd;

	if (in->fd < 0) {
		in_open_memory(copy, in->path, in->data, in->end);
		return 0;
	}
	/* A dup would share the file position; a new open does not. */
	snprintf(link, sizeof(link), "/proc/self/fd/%d", in->fd);
	fd = open(link, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return err_set(err, ERR_INPUT, "%s: cannot reopen: %s", in->path, strerror(errno));
	init(copy, in->path, fd, window);
	return 0;
}

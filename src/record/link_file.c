// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * link_file: a file that another program is writing, a FIFO, or stdin. The end of a file is not the end of the data: more may
 * follow, as for tail -f. A file that was truncated or replaced is a link that broke; it begins again.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "record/link.h"

struct file {
	bool is_stdin;
	bool is_regular; /* poll() says that it is always readable */
	bool begun;	 /* a FIFO had a writer */
	uint64_t offset;
};

static int file_parse(struct link *link, struct err *err)
{
	struct file *file = xcalloc(1, sizeof(*file));

	link->priv = file;
	file->is_stdin = !strcmp(link->address, "-");
	return *link->address ? 0 : err_set(err, ERR_USAGE, "expected the path of a file");
}

static int file_open(struct link *link, struct err *err)
{
	struct file *file = link->priv;
	struct stat st;

	link->fd = file->is_stdin ? dup(STDIN_FILENO)
				  : open(link->address, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (link->fd < 0 || fstat(link->fd, &st) < 0)
		return err_set(err, ERR_INPUT, "%s: cannot open: %s", link->address,
			       strerror(errno));
	if (S_ISDIR(st.st_mode))
		return err_set(err, ERR_INPUT, "%s: is a directory", link->address);
	file->is_regular = S_ISREG(st.st_mode);
	file->begun = file->is_stdin;
	file->offset = 0;
	/* A FIFO without a writer is always at its end. */
	link->polls = file->is_regular || !file->begun;
	return 0;
}

/* Another file has this name now, or this one is shorter than what was read. */
static bool has_changed(const struct link *link)
{
	const struct file *file = link->priv;
	struct stat here, there;

	if (fstat(link->fd, &here) < 0 || (uint64_t)here.st_size < file->offset)
		return true;
	return !file->is_stdin && stat(link->address, &there) == 0 &&
	       (here.st_ino != there.st_ino || here.st_dev != there.st_dev);
}

static ssize_t read_regular(struct link *link, void *data, size_t len)
{
	struct file *file = link->priv;
	ssize_t got = file->is_stdin ? read(link->fd, data, len)
				     : pread(link->fd, data, len, (off_t)file->offset);

	if (got > 0)
		file->offset += (uint64_t)got;
	if (got != 0 || file->is_stdin)
		return got;
	errno = has_changed(link) ? ESTALE : EAGAIN;
	return -1;
}

/* Standard input may be shared with other programs, so it stays blocking. */
static bool nothing_to_read(const struct link *link)
{
	struct pollfd fd = { .fd = link->fd, .events = POLLIN };

	return poll(&fd, 1, 0) == 0;
}

static ssize_t file_read(struct link *link, void *data, size_t len)
{
	struct file *file = link->priv;
	ssize_t got;

	if (file->is_regular)
		return read_regular(link, data, len);
	if (file->is_stdin && nothing_to_read(link)) {
		errno = EAGAIN;
		return -1;
	}
	got = read(link->fd, data, len);
	if (got != 0) {
		file->begun = true;
		link->polls = false;
	} else if (!file->begun) {
		errno = EAGAIN;
		return -1;
	}
	return got;
}

static void file_release(struct link *link)
{
	free(link->priv);
}

const struct link_ops link_file = {
	.name = "file",
	.example = "trace.bin",
	.one_way = true,
	.advice = "is a program writing to it?",
	.parse = file_parse,
	.open = file_open,
	.read = file_read,
	.release = file_release,
};

// SPDX-License-Identifier: GPL-2.0-or-later
#include "record/relay.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include "base/fd.h"

#define CHUNK 65536

void relay_init(struct relay *relay, const char *text)
{
	*relay = (struct relay){ .text = text, .from = -1, .into = -1 };
}

/* Hands on what is written as it is: the terminal behind it does what terminals do. */
static int open_pty(struct relay *relay)
{
	struct termios modes;
	struct winsize size;
	const char *name;

	relay->from = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (relay->from < 0 || grantpt(relay->from) || unlockpt(relay->from))
		return -1;
	name = ptsname(relay->from);
	relay->into = name ? open(name, O_RDWR | O_NOCTTY | O_CLOEXEC) : -1;
	if (relay->into < 0 || tcgetattr(relay->into, &modes))
		return -1;
	cfmakeraw(&modes);
	tcsetattr(relay->into, TCSANOW, &modes);
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0)
		ioctl(relay->into, TIOCSWINSZ, &size);
	return 0;
}

static int open_pipe(struct relay *relay)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -1;
	relay->from = ends[0];
	relay->into = ends[1];
	return 0;
}

int relay_open(struct relay *relay, struct err *err)
{
	int ret = isatty(STDOUT_FILENO) ? open_pty(relay) : -1;

	if (ret < 0) {
		const char *text = relay->text;

		relay_release(relay);
		relay_init(relay, text);
		ret = open_pipe(relay);
	}
	if (ret < 0)
		return err_set(err, ERR_INPUT, "no pipe for the guest's output: %s",
			       strerror(errno));
	fcntl(relay->from, F_SETFL, O_NONBLOCK);
	return 0;
}

void relay_follow(struct relay *relay, const char *file, bool appends)
{
	struct stat st;

	relay->file = file;
	if (stat(file, &st) || !S_ISREG(st.st_mode))
		return;
	if (appends || truncate(file, 0))
		relay->offset = (uint64_t)st.st_size;
}

void relay_close_into(struct relay *relay)
{
	if (relay->into >= 0)
		close(relay->into);
	relay->into = -1;
}

static void watch(struct relay *relay, const char *data, size_t len)
{
	size_t text = strlen(relay->text), keep;

	buf_add(&relay->seen, data, len);
	if (memmem(relay->seen.data, relay->seen.len, relay->text, text))
		relay->found = true;
	keep = relay->seen.len < text ? relay->seen.len : text - 1;
	memmove(relay->seen.data, relay->seen.data + relay->seen.len - keep, keep);
	relay->seen.len = keep;
}

static void move_pipe(struct relay *relay)
{
	char data[CHUNK];
	ssize_t got;

	while ((got = read(relay->from, data, sizeof(data))) > 0) {
		watch(relay, data, (size_t)got);
		/* QEMU may have made our own output one that does not wait. */
		if (fd_write(STDOUT_FILENO, data, (size_t)got))
			break;
	}
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	/* The end (EIO of a pty). A guest that still writes learns that nobody reads. */
	close(relay->from);
	relay->from = -1;
}

static void move_file(struct relay *relay)
{
	char data[CHUNK];
	ssize_t got;
	int fd = open(relay->file, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

	if (fd < 0)
		return; /* QEMU has not made it yet */
	while ((got = pread(fd, data, sizeof(data), (off_t)relay->offset)) > 0) {
		watch(relay, data, (size_t)got);
		relay->offset += (uint64_t)got;
	}
	close(fd);
}

void relay_move(struct relay *relay)
{
	if (relay->from >= 0)
		move_pipe(relay);
	if (relay->file)
		move_file(relay);
}

void relay_release(struct relay *relay)
{
	relay_close_into(relay);
	if (relay->from >= 0)
		close(relay->from);
	relay->from = -1;
	buf_release(&relay->seen);
}

// SPDX-License-Identifier: GPL-2.0-or-later
#include "record/relay.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#define CHUNK 65536
#define HELD_MOST ((size_t)1 << 20) /* buffered output of a guest that is ending */

void relay_init(struct relay *relay, const char *text)
{
	*relay = (struct relay){ .needle.text = text, .from = -1, .into = -1 };
}

/* In raw mode: the real terminal does the output processing. */
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
		const char *text = relay->needle.text;

		relay_release(relay);
		relay_init(relay, text);
		ret = open_pipe(relay);
	}
	if (ret < 0)
		return err_set(err, ERR_INPUT, "cannot create a pipe for the guest's output: %s",
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

/* Other processes may share our standard output: make it non-blocking only for this write. */
static ssize_t write_now(const struct buf *held)
{
	int flags = fcntl(STDOUT_FILENO, F_GETFL), error;
	ssize_t did;

	fcntl(STDOUT_FILENO, F_SETFL, flags | O_NONBLOCK);
	did = write(STDOUT_FILENO, held->data, held->len);
	error = errno;
	fcntl(STDOUT_FILENO, F_SETFL, flags);
	errno = error;
	return did;
}

/* Writes as much as possible without blocking. False: the reader is gone. */
static bool pass_on(struct buf *held)
{
	while (held->len) {
		ssize_t did = write_now(held);

		if (did > 0) {
			held->len -= (size_t)did;
			memmove(held->data, held->data + did, held->len);
		} else if (did < 0 && errno == EAGAIN) {
			return true;
		} else if (did < 0 && errno != EINTR) {
			held->len = 0;
			return false;
		}
	}
	return true;
}

/* A guest whose output nobody reads blocks, as it would without us. An ending one must not. */
static bool wants_more(const struct relay *relay)
{
	return relay->from >= 0 && relay->held.len < (relay->ends ? HELD_MOST : 1);
}

static void move_pipe(struct relay *relay)
{
	char data[CHUNK];
	bool wanted = pass_on(&relay->held);
	ssize_t got = 1;

	while (wanted && got > 0 && wants_more(relay)) {
		got = read(relay->from, data, sizeof(data));
		if (got <= 0)
			break;
		needle_feed(&relay->needle, data, (size_t)got);
		buf_add(&relay->held, data, (size_t)got);
		wanted = pass_on(&relay->held);
	}
	if (wanted && (got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR))))
		return;
	/* The end (EIO on a pty), or our reader is gone: a guest that still writes must fail. */
	if (relay->from >= 0)
		close(relay->from);
	relay->from = -1;
}

static void move_file(struct relay *relay)
{
	char data[CHUNK];
	ssize_t got;
	int fd = open(relay->file, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

	if (fd < 0)
		return; /* QEMU has not created it yet */
	while ((got = pread(fd, data, sizeof(data), (off_t)relay->offset)) > 0) {
		needle_feed(&relay->needle, data, (size_t)got);
		relay->offset += (uint64_t)got;
	}
	close(fd);
}

void relay_poll(const struct relay *relay, struct pollfd fds[2])
{
	fds[0] = (struct pollfd){ .fd = wants_more(relay) ? relay->from : -1, .events = POLLIN };
	fds[1] = (struct pollfd){ .fd = relay->held.len ? STDOUT_FILENO : -1, .events = POLLOUT };
}

void relay_move(struct relay *relay)
{
	if (relay->from >= 0 || relay->held.len)
		move_pipe(relay);
	if (relay->file)
		move_file(relay);
}

void relay_finish(struct relay *relay, int patience_ms)
{
	struct pollfd fds[2];

	relay->ends = true;
	for (relay_move(relay); relay->held.len; relay_move(relay)) {
		relay_poll(relay, fds);
		if (poll(&fds[1], 1, patience_ms) <= 0)
			return;
	}
}

void relay_release(struct relay *relay)
{
	buf_release(&relay->held);
	relay_close_into(relay);
	if (relay->from >= 0)
		close(relay->from);
	relay->from = -1;
	needle_release(&relay->needle);
}

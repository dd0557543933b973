// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * link_serial: a serial line, 8 data bits, no parity, no flow control, at any speed that the device can do: termios2
 * takes a number, where termios(3) knows only a few.
 */
#include <asm/termbits.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/text.h"
#include "record/link.h"

#define DEFAULT_BAUD 115200

struct serial {
	char *device;
	uint64_t baud;
	struct termios2 before; /* its settings, to restore */
};

/* DEVICE[,BAUD] */
static int serial_parse(struct link *link, struct err *err)
{
	const char *comma = strrchr(link->address, ',');
	size_t len = comma ? (size_t)(comma - link->address) : strlen(link->address);
	struct serial *serial = xcalloc(1, sizeof(*serial));

	link->priv = serial;
	serial->device = xasprintf("%.*s", (int)len, link->address);
	serial->baud = DEFAULT_BAUD;
	if (!len || (comma && (!text_u64(comma + 1, strlen(comma + 1), &serial->baud) ||
			       serial->baud < 50 || serial->baud > 100000000)))
		return err_set(err, ERR_USAGE, "'%s': expected DEVICE[,BAUD], such as %s",
			       link->address, link->ops->example);
	return 0;
}

static int cannot(const struct serial *serial, const char *what, struct err *err)
{
	return err_set(err, ERR_INPUT, "%s: %s: %s%s", serial->device, what, strerror(errno),
		       errno == EACCES	? " (are you in the group dialout?)"
		       : errno == EBUSY ? " (another program is using it)"
					: "");
}

/* As cfmakeraw(3) does, with the speed as a number. */
static void make_raw(struct termios2 *modes, uint64_t baud)
{
	modes->c_iflag = IGNBRK;
	modes->c_oflag = 0;
	modes->c_lflag = 0;
	modes->c_cflag = BOTHER | BOTHER << IBSHIFT | CS8 | CREAD | CLOCAL;
	modes->c_ispeed = modes->c_ospeed = (speed_t)baud;
	modes->c_cc[VMIN] = 1;
	modes->c_cc[VTIME] = 0;
}

static int serial_open(struct link *link, struct err *err)
{
	struct serial *serial = link->priv;
	struct termios2 modes;
	int fd = open(serial->device, O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);

	if (fd < 0)
		return cannot(serial, "cannot open", err);
	if (ioctl(fd, TCGETS2, &modes) < 0) {
		close(fd);
		return err_set(err, ERR_INPUT, "%s: not a serial line%s", serial->device,
			       errno == ENOTTY ? "; for a file or a pipe use kscope record file"
					       : "");
	}
	serial->before = modes;
	make_raw(&modes, serial->baud);
	if (ioctl(fd, TIOCEXCL) < 0 || ioctl(fd, TCSETS2, &modes) < 0) {
		cannot(serial, "cannot configure the line", err);
		close(fd);
		return -1;
	}
	link->fd = fd;
	return 0;
}

static void serial_close(struct link *link)
{
	struct serial *serial = link->priv;

	ioctl(link->fd, TCSETS2, &serial->before);
	ioctl(link->fd, TIOCNXCL);
}

static void serial_release(struct link *link)
{
	struct serial *serial = link->priv;

	free(serial->device);
	free(serial);
}

const struct link_ops link_serial = {
	.name = "serial",
	.example = "/dev/ttyUSB0,115200",
	.advice = "is it the right device and speed?",
	.parse = serial_parse,
	.open = serial_open,
	.close = serial_close,
	.release = serial_release,
};

// SPDX-License-Identifier: GPL-2.0-or-later
/* gdb_unix: a UNIX socket as a link: `qemu -gdb unix:PATH,server=on,wait=off`. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "record/gdb_parts.h"

static int unix_parse(struct link *link, struct err *err)
{
	struct sockaddr_un to;

	if (strlen(link->address) >= sizeof(to.sun_path))
		return err_set(err, ERR_USAGE, "%s: the path of a socket has at most %zu bytes",
			       link->address, sizeof(to.sun_path) - 1);
	return 0;
}

static int unix_open(struct link *link, struct err *err)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };

	strncpy(to.sun_path, link->address, sizeof(to.sun_path) - 1);
	link->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (link->fd >= 0 && link_connect(link, (struct sockaddr *)&to, sizeof(to)) == 0)
		return 0;
	if (errno == EAGAIN) /* the socket's queue of connections is full */
		return err_set(err, ERR_INPUT, GDB_NO_ANSWER, link->address);
	return err_set(err, ERR_INPUT, "%s: cannot connect: %s", link->address, strerror(errno));
}

const struct link_ops gdb_link_unix = {
	.name = "gdb",
	.example = "/run/qemu/gdb.sock",
	.parse = unix_parse,
	.open = unix_open,
};

// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/fd.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

int fd_write(int fd, const void *data, size_t len)
{
	const char *at = data;

	while (len) {
		ssize_t did = write(fd, at, len);

		if (did > 0) {
			at += did;
			len -= (size_t)did;
		} else if (did < 0 && errno == EAGAIN) {
			struct pollfd wait = { .fd = fd, .events = POLLOUT };

			poll(&wait, 1, -1);
		} else if (did < 0 && errno != EINTR) {
			return errno;
		}
	}
	return 0;
}

// SPDX-License-Identifier: GPL-2.0-or-later
#include "record/link.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PATIENCE 2000 /* ms, for a target that does not take a command */

int link_init(struct link *link, const struct link_ops *ops, const char *address, struct err *err)
{
	*link = (struct link){ .ops = ops, .address = address, .fd = -1 };
	return ops->parse(link, err);
}

int link_open(struct link *link, struct err *err)
{
	link_close(link);
	link->why[0] = '\0';
	link->orderly = false;
	if (link->ops->open(link, err) < 0) {
		link_close(link);
		return -1;
	}
	link->is_open = !link->ops->progress;
	return 0;
}

int link_connect(struct link *link, const struct sockaddr *to, socklen_t len)
{
	if (link->before_connect && link->before_connect(link) < 0)
		return -1;
	return connect(link->fd, to, len);
}

void link_wait(const struct link *link, struct pollfd *fd)
{
	/* A connection is made when its socket can be written; a listening socket can be read. */
	short events = link->is_open || link->ops == &link_listen ? POLLIN : POLLOUT;

	*fd = (struct pollfd){ .fd = link->polls ? -1 : link->fd, .events = events };
}

int link_progress(struct link *link, struct err *err)
{
	int ret = link->is_open ? 1 : link->ops->progress(link, err);

	link->is_open = ret > 0;
	if (ret < 0)
		link_close(link);
	return ret;
}

static int ended(struct link *link, const char *why, bool orderly)
{
	snprintf(link->why, sizeof(link->why), "%s", why);
	link->orderly = orderly;
	return -1;
}

ssize_t link_read(struct link *link, void *data, size_t len)
{
	ssize_t got;

	do {
		got = link->ops->read ? link->ops->read(link, data, len)
				      : read(link->fd, data, len);
	} while (got < 0 && errno == EINTR);
	if (got > 0 || (got < 0 && errno == EAGAIN))
		return got > 0 ? got : 0;
	if (got < 0)
		return ended(link, strerror(errno), false);
	return ended(link, "the target closed the connection", true);
}

bool link_write(struct link *link, const void *data, size_t len)
{
	const char *at = data;

	if (link->ops->one_way)
		return true;
	while (len) {
		ssize_t did = write(link->fd, at, len);
		struct pollfd fd = { .fd = link->fd, .events = POLLOUT };

		if (did > 0) {
			at += did;
			len -= (size_t)did;
		} else if (did < 0 && errno != EAGAIN && errno != EINTR) {
			return ended(link, strerror(errno), false) == 0;
		} else if (poll(&fd, 1, PATIENCE) == 0) {
			return ended(link, "the target does not read commands", false) == 0;
		}
	}
	return true;
}

void link_close(struct link *link)
{
	if (link->fd >= 0 && link->ops->close)
		link->ops->close(link);
	if (link->fd >= 0)
		close(link->fd);
	link->fd = -1;
	link->is_open = false;
}

void link_release(struct link *link)
{
	link_close(link);
	if (link->ops && link->ops->release && link->priv)
		link->ops->release(link);
	link->priv = NULL;
}

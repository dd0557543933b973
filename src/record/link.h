/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * link: a line to a target: a TCP connection that kscope or the target makes, a serial line, or a file that another
 * program writes. It never blocks. A link that broke can be opened again.
 */
#ifndef KSCOPE_RECORD_LINK_H
#define KSCOPE_RECORD_LINK_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "base/err.h"

struct link;

struct link_ops {
	const char *name;    /* as in `kscope record NAME` */
	const char *example; /* of an address */
	bool one_way;	     /* nobody hears commands, and an orderly end is the end of the data */
	/* Parses link->address. Returns -1 and sets err (ERR_USAGE). */
	int (*parse)(struct link *link, struct err *err);
	/* Starts to open it. Returns -1 and sets err if that fails at once. */
	int (*open)(struct link *link, struct err *err);
	/* After poll(): 1: it is open, 0: not yet, -1: err is set. NULL: open() opens it. */
	int (*progress)(struct link *link, struct err *err);
	/* Like read(2); NULL: read(2). */
	ssize_t (*read)(struct link *link, void *data, size_t len);
	/* Why it may be that nothing comes, or that it cannot be opened; NULL: no advice. */
	const char *advice;
	void (*close)(struct link *link); /* before its fd is closed; NULL: nothing to do */
	void (*release)(struct link *link);
};

/* In the order of the help. */
extern const struct link_ops link_tcp, link_listen, link_serial, link_file;

struct link {
	const struct link_ops *ops;
	const char *address; /* borrowed */
	int fd;		     /* -1: closed */
	bool is_open;	     /* it can be read; else it is being opened */
	bool polls;	     /* its fd does not say when there is more: look again after a while */
	char why[120];	     /* why it ended, or cannot be opened */
	bool orderly;	     /* the other side closed it; else it broke */
	void *priv;	     /* of the ops */
	/* Called with a socket in fd, before it connects. Returns -1 and sets errno. NULL: nothing to do. */
	int (*before_connect)(struct link *link);
	void *owner; /* for before_connect */
};

int link_init(struct link *link, const struct link_ops *ops, const char *address, struct err *err);
int link_open(struct link *link, struct err *err);
/* For ops: connects the socket in fd. Like connect(2). */
int link_connect(struct link *link, const struct sockaddr *to, socklen_t len);
/* What to wait for. fd -1: nothing, call again after a while. */
void link_wait(const struct link *link, struct pollfd *fd);
/* While it is being opened: 1: it is open, 0: not yet, -1: err is set, and it is closed. */
int link_progress(struct link *link, struct err *err);
/* Bytes; 0: none at the moment; -1: it has ended: see why and orderly. */
ssize_t link_read(struct link *link, void *data, size_t len);
/* Sends all of a short text. False: it has ended. */
bool link_write(struct link *link, const void *data, size_t len);
void link_close(struct link *link);
void link_release(struct link *link);

#endif

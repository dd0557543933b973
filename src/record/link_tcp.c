// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * link_tcp: connections of TCP: to a target that listens, or from one that connects. Keepalive probes find out that
 * a target is gone, even if it only ever sends.
 */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"
#include "record/link.h"

#define PROBE_AFTER 10 /* seconds of silence */
#define PROBE_EVERY 3  /* seconds */
#define PROBES 4       /* without an answer: the target is gone */

struct tcp {
	char *host, *port;     /* host NULL: every address of this machine */
	struct addrinfo *all;  /* of the host */
	struct addrinfo *next; /* to try */
	int listening;	       /* -1: not yet */
};

/* HOST:PORT, [HOST]:PORT; of a server also PORT alone. */
static int parse(struct link *link, bool server, struct err *err)
{
	const char *text = link->address, *colon = strrchr(text, ':');
	const char *port = colon ? colon + 1 : text, *host = text;
	size_t len = colon ? (size_t)(colon - text) : 0;
	bool brackets = len > 1 && host[0] == '[' && host[len - 1] == ']';
	struct tcp *tcp;

	if (brackets) {
		host++;
		len -= 2;
	}
	if (!*port || (!server && !len) || strspn(port, "0123456789") != strlen(port) ||
	    strlen(port) > 5 || atoi(port) < 1 || atoi(port) > 65535 ||
	    (!brackets && memchr(host, ':', len)))
		return err_set(err, ERR_USAGE, "'%s': expected %s, such as %s", text,
			       server ? "[ADDRESS:]PORT" : "HOST:PORT", link->ops->example);
	link->priv = tcp = xcalloc(1, sizeof(*tcp));
	tcp->listening = -1;
	tcp->host = len ? xasprintf("%.*s", (int)len, host) : NULL;
	tcp->port = xstrdup(port);
	return 0;
}

static int resolve(struct link *link, int flags, struct err *err)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = flags };
	struct tcp *tcp = link->priv;
	int ret;

	if (tcp->all)
		freeaddrinfo(tcp->all);
	tcp->all = NULL;
	ret = getaddrinfo(tcp->host, tcp->port, &hints, &tcp->all);
	tcp->next = tcp->all;
	if (ret)
		return err_set(err, ERR_INPUT, "%s: %s", link->address,
			       ret == EAI_SYSTEM ? strerror(errno) : gai_strerror(ret));
	return 0;
}

/* Nagle's algorithm would join two commands to one packet; some targets read only the first. */
static void tune(int fd)
{
	static const struct {
		int level, name, value;
	} options[] = {
		{ IPPROTO_TCP, TCP_NODELAY, 1 },
		{ SOL_SOCKET, SO_KEEPALIVE, 1 },
		{ IPPROTO_TCP, TCP_KEEPIDLE, PROBE_AFTER },
		{ IPPROTO_TCP, TCP_KEEPINTVL, PROBE_EVERY },
		{ IPPROTO_TCP, TCP_KEEPCNT, PROBES },
	};

	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
		setsockopt(fd, options[i].level, options[i].name, &options[i].value, sizeof(int));
}

static int new_socket(const struct addrinfo *to)
{
	return socket(to->ai_family, to->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK,
		      to->ai_protocol);
}

/* ---- kscope connects ---- */

static int tcp_parse(struct link *link, struct err *err)
{
	return parse(link, false, err);
}

/* Starts to connect to the next address of the host. Keeps the error of the last one. */
static int try_next(struct link *link, int error, struct err *err)
{
	struct tcp *tcp = link->priv;

	for (; tcp->next; tcp->next = tcp->next->ai_next) {
		const struct addrinfo *to = tcp->next;

		if (link->fd >= 0)
			close(link->fd);
		link->fd = new_socket(to);
		if (link->fd >= 0 && (link_connect(link, to->ai_addr, to->ai_addrlen) == 0 ||
				      errno == EINPROGRESS)) {
			tcp->next = tcp->next->ai_next;
			return 0;
		}
		error = errno;
	}
	return err_set(err, ERR_INPUT, "%s: cannot connect: %s (%s)", link->address,
		       strerror(error), link->ops->advice);
}

static int tcp_open(struct link *link, struct err *err)
{
	return resolve(link, 0, err) < 0 ? -1 : try_next(link, 0, err);
}

static int tcp_progress(struct link *link, struct err *err)
{
	struct pollfd fd = { .fd = link->fd, .events = POLLOUT };
	socklen_t len = sizeof(int);
	int error = 0;

	if (poll(&fd, 1, 0) <= 0)
		return 0;
	getsockopt(link->fd, SOL_SOCKET, SO_ERROR, &error, &len);
	if (error)
		return try_next(link, error, err);
	tune(link->fd);
	return 1;
}

static void tcp_release(struct link *link)
{
	struct tcp *tcp = link->priv;

	if (tcp->all)
		freeaddrinfo(tcp->all);
	if (tcp->listening >= 0)
		close(tcp->listening);
	free(tcp->host);
	free(tcp->port);
	free(tcp);
}

const struct link_ops link_tcp = {
	.name = "tcp",
	.example = "board:1236",
	.advice = "is the target up and listening on this port?",
	.parse = tcp_parse,
	.open = tcp_open,
	.progress = tcp_progress,
	.release = tcp_release,
};

/* ---- the target connects ---- */

static int listen_parse(struct link *link, struct err *err)
{
	return parse(link, true, err);
}

/* Returns the socket, or -1 with errno set. */
static int listen_at(const struct addrinfo *to)
{
	int yes = 1, no = 0, error, fd = new_socket(to);

	if (fd < 0)
		return -1;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
	if (to->ai_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no));
	if (bind(fd, to->ai_addr, to->ai_addrlen) == 0 && listen(fd, 1) == 0)
		return fd;
	error = errno;
	close(fd);
	errno = error;
	return -1;
}

static int start_listening(struct link *link, struct err *err)
{
	/* An IPv6 socket takes connections of both kinds. */
	static const int families[] = { AF_INET6, AF_INET };
	struct tcp *tcp = link->priv;

	if (resolve(link, AI_PASSIVE, err) < 0)
		return -1;
	for (size_t i = 0; i < 2; i++) {
		for (const struct addrinfo *to = tcp->all; to; to = to->ai_next) {
			if (tcp->listening < 0 && to->ai_family == families[i])
				tcp->listening = listen_at(to);
		}
	}
	if (tcp->listening < 0)
		return err_set(err, ERR_INPUT, "%s: cannot listen: %s", link->address,
			       strerror(errno));
	return 0;
}

/* The socket stays open for the next connection; the link has a copy of it until the target connects. */
static int listen_open(struct link *link, struct err *err)
{
	struct tcp *tcp = link->priv;

	if (tcp->listening < 0 && start_listening(link, err) < 0)
		return -1;
	link->fd = dup(tcp->listening);
	return link->fd < 0 ? err_set(err, ERR_INPUT, "%s: cannot listen: %s", link->address,
				      strerror(errno))
			    : 0;
}

static int listen_progress(struct link *link, struct err *err)
{
	struct tcp *tcp = link->priv;
	int fd = accept4(tcp->listening, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0 && (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED))
		return 0;
	if (fd < 0)
		return err_set(err, ERR_INPUT, "port %s: cannot accept a connection: %s", tcp->port,
			       strerror(errno));
	close(link->fd);
	link->fd = fd;
	tune(fd);
	return 1;
}

const struct link_ops link_listen = {
	.name = "listen",
	.example = "1236",
	.advice = "does the target know this machine's address and port?",
	.parse = listen_parse,
	.open = listen_open,
	.progress = listen_progress,
	.release = tcp_release,
};

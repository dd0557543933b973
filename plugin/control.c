// SPDX-License-Identifier: GPL-2.0-or-later
/* See control.h. */
#include "control.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "api.h"
#include "args.h"
#include "sample.h"
#include "stream.h"

#define CLIENTS_MAX 8
#define LINE_MAX_SIZE 256

struct client {
	int fd;
	size_t have;
	char line[LINE_MAX_SIZE];
};

static struct {
	int listener, wake;
	pthread_t thread;
	bool has_thread;
	_Atomic bool stopping;
	struct client clients[CLIENTS_MAX];
	size_t n;
} control = { .listener = -1, .wake = -1 };

static void answer(const char *line, char *reply, size_t size)
{
	struct stream_totals totals;

	if (!strcmp(line, "start") || !strcmp(line, "stop")) {
		sample_set_running(!strcmp(line, "start"));
		snprintf(reply, size, "ok\n");
	} else if (!strcmp(line, "flush")) {
		snprintf(reply, size, "%s\n",
			 stream_flush() ? "ok" : "error cannot write the recording");
	} else if (!strcmp(line, "status")) {
		stream_count(&totals);
		snprintf(reply, size,
			 "ok running=%d cpus=%u samples=%" PRIu64 " allocs=%" PRIu64
			 " branches=%" PRIu64 " dropped=%" PRIu64 " bytes=%" PRIu64 " time=%" PRIu64
			 " instructions=%" PRIu64 "\n",
			 sample_running(), totals.cpus, totals.samples, totals.allocs,
			 totals.branches, totals.dropped, totals.bytes, sample_round(),
			 args.trace ? totals.instructions : sample_instructions());
	} else {
		snprintf(reply, size, "error expected start, stop, flush or status\n");
	}
}

/* Answers all complete lines. False: the client has closed, does not read, or sent too long a line. */
static bool serve(struct client *client)
{
	ssize_t got = read(client->fd, client->line + client->have,
			   sizeof(client->line) - 1 - client->have);
	char reply[512], *end;

	if (got <= 0)
		return got < 0 && (errno == EINTR || errno == EAGAIN);
	client->have += (size_t)got;
	client->line[client->have] = 0;
	while ((end = memchr(client->line, '\n', client->have))) {
		*end = 0;
		if (end > client->line && end[-1] == '\r')
			end[-1] = 0;
		answer(client->line, reply, sizeof(reply));
		/* A client that does not read must not block the exit of QEMU. */
		if (send(client->fd, reply, strlen(reply), MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
			return false;
		client->have -= (size_t)(end + 1 - client->line);
		memmove(client->line, end + 1, client->have);
	}
	return client->have < sizeof(client->line) - 1;
}

static void serve_all(const struct pollfd *fds)
{
	for (size_t i = control.n; i--;) {
		if (!fds[i].revents || serve(&control.clients[i]))
			continue;
		close(control.clients[i].fd);
		control.clients[i] = control.clients[--control.n];
	}
}

static void greet(void)
{
	int fd = api_above_standard(accept4(control.listener, NULL, NULL, SOCK_CLOEXEC));

	if (fd < 0)
		return;
	if (control.n == CLIENTS_MAX) {
		close(fd);
		return;
	}
	control.clients[control.n++] = (struct client){ .fd = fd };
}

static void *control_main(void *unused)
{
	struct pollfd fds[CLIENTS_MAX + 2];

	(void)unused;
	while (!atomic_load(&control.stopping)) {
		size_t n = control.n;

		for (size_t i = 0; i < n; i++)
			fds[i] = (struct pollfd){ control.clients[i].fd, POLLIN, 0 };
		fds[n] = (struct pollfd){ control.listener, POLLIN, 0 };
		fds[n + 1] = (struct pollfd){ control.wake, POLLIN, 0 };
		if (poll(fds, n + 2, -1) < 0 && errno != EINTR)
			break;
		serve_all(fds);
		if (fds[n].revents)
			greet();
	}
	return NULL;
}

static int listen_at(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct stat st;

	if (strlen(path) >= sizeof(address.sun_path)) {
		api_say("control=%s: the path of a socket can have at most %zu characters", path,
			sizeof(address.sun_path) - 1);
		return -1;
	}
	strcpy(address.sun_path, path);
	if (!lstat(path, &st) && S_ISSOCK(st.st_mode))
		unlink(path); /* left by an earlier run */
	control.listener = api_above_standard(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
	/* bind() gives the file the mode of the socket, so nobody else can connect at any time. */
	if (control.listener < 0 || fchmod(control.listener, 0600) ||
	    bind(control.listener, (struct sockaddr *)&address, sizeof(address)) ||
	    listen(control.listener, CLIENTS_MAX)) {
		api_say("control=%s: %s", path, strerror(errno));
		return -1;
	}
	return 0;
}

static void in_child(void)
{
	control.has_thread = false;
}

int control_open(void)
{
	int result;

	if (!args.control)
		return 0;
	if (listen_at(args.control))
		return -1;
	control.wake = api_above_standard(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	pthread_atfork(NULL, NULL, in_child);
	result = api_thread(&control.thread, control_main);
	control.has_thread = !result;
	if (result)
		api_say("control=%s: cannot start a thread: %s", args.control, strerror(result));
	return result ? -1 : 0;
}

void control_close(void)
{
	uint64_t one = 1;

	if (!control.has_thread)
		return;
	atomic_store(&control.stopping, true);
	if (write(control.wake, &one, sizeof(one)) == sizeof(one))
		pthread_join(control.thread, NULL);
	control.has_thread = false;
	close(control.listener);
	unlink(args.control);
}

// SPDX-License-Identifier: GPL-2.0-or-later
#include "record/control.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/text.h"

int control_path_fits(const char *path, struct err *err)
{
	struct sockaddr_un address;

	if (strlen(path) < sizeof(address.sun_path))
		return 0;
	return err_set(err, ERR_USAGE, "%s: too long for a socket path (at most %zu bytes)", path,
		       sizeof(address.sun_path) - 1);
}

static const char *hint(int error)
{
	switch (error) {
	case ENOENT: return " (was the guest started with --control, and is it still running?)";
	case ECONNREFUSED: return " (the guest has ended)";
	case EACCES: return " (the guest belongs to another user)";
	default: return "";
	}
}

static void find_peer(struct control *control)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	if (getsockopt(control->fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0)
		control->peer = peer.pid;
}

int control_connect(struct control *control, const char *path, unsigned patience, struct err *err)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct timeval wait = { .tv_sec = patience };

	if (control_path_fits(path, err) < 0)
		return -1;
	memcpy(address.sun_path, path, strlen(path) + 1);
	control->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (control->fd < 0)
		return err_set(err, ERR_INPUT, "cannot create a socket: %s", strerror(errno));
	setsockopt(control->fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
	setsockopt(control->fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait));
	if (connect(control->fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
		int error = errno;

		control_close(control);
		return err_set(err, ERR_INPUT, "%s: %s%s", path, strerror(error), hint(error));
	}
	find_peer(control);
	return 0;
}

static int send_line(const struct control *control, const char *command, struct err *err)
{
	char line[CONTROL_LINE];
	int len = snprintf(line, sizeof(line), "%s\n", command);

	if (len < 0 || (size_t)len >= sizeof(line))
		return err_set(err, ERR_USAGE, "command too long: %s", command);
	if (send(control->fd, line, (size_t)len, MSG_NOSIGNAL) != len)
		return err_set(err, ERR_INPUT, "cannot send to the guest: %s", strerror(errno));
	return 0;
}

static int receive_line(const struct control *control, char *line, struct err *err)
{
	size_t len = 0;

	while (len < CONTROL_LINE - 1) {
		ssize_t got = recv(control->fd, line + len, 1, 0);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return err_set(err, ERR_INPUT, "no answer: %s",
				       errno == EAGAIN ? "the guest is stuck or paused"
						       : strerror(errno));
		if (got == 0)
			return err_set(err, ERR_INPUT, "no answer: the guest has ended");
		if (line[len] == '\n')
			break;
		len++;
	}
	line[len] = '\0';
	return 0;
}

int control_ask(struct control *control, const char *command, char *reply, struct err *err)
{
	char line[CONTROL_LINE];
	struct buf plain = { 0 };
	int ret;

	if (send_line(control, command, err) < 0 || receive_line(control, line, err) < 0)
		return -1;
	if (!strcmp(line, "ok") || !strncmp(line, "ok ", 3)) {
		strcpy(reply, line[2] ? line + 3 : "");
		return 0;
	}
	if (!strncmp(line, "error ", 6))
		ret = err_set(err, ERR_INPUT, "%s: %s", command, text_plain(&plain, line + 6));
	else
		ret = err_set(err, ERR_INPUT, "%s: unexpected answer: %s", command,
			      text_plain(&plain, line));
	buf_release(&plain);
	return ret;
}

void control_parse(const char *reply, struct control_status *status)
{
	const struct {
		const char *name;
		uint64_t *value;
	} words[] = {
		{ "cpus=", &status->cpus },	  { "samples=", &status->samples },
		{ "allocs=", &status->allocs },	  { "branches=", &status->branches },
		{ "dropped=", &status->dropped }, { "bytes=", &status->bytes },
		{ "time=", &status->time },	  { "instructions=", &status->instructions },
	};

	memset(status, 0, sizeof(*status));
	while (*reply) {
		size_t len = strcspn(reply, " ");

		status->running |= len == 9 && !memcmp(reply, "running=1", 9);
		for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
			size_t name = strlen(words[i].name);

			if (len > name && !memcmp(reply, words[i].name, name))
				text_u64(reply + name, len - name, words[i].value);
		}
		reply += len;
		reply += strspn(reply, " ");
	}
}

void control_close(struct control *control)
{
	if (control->fd >= 0)
		close(control->fd);
	control->fd = -1;
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* control: sends commands to the plugin in a running QEMU over its socket, one line each way. */
#ifndef KSCOPE_RECORD_CONTROL_H
#define KSCOPE_RECORD_CONTROL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

#define CONTROL_LINE 512

struct control {
	int fd;	    /* -1: not connected */
	pid_t peer; /* QEMU itself; 0: unknown */
};

struct control_status {
	bool running;
	uint64_t cpus, samples, allocs, branches, dropped, bytes, time, instructions;
};

/* Fails if the path is too long for a socket address (about a hundred bytes). */
int control_path_fits(const char *path, struct err *err);
/* patience: seconds to wait for an answer. */
int control_connect(struct control *control, const char *path, unsigned patience, struct err *err);
/* Stores what follows `ok` in reply, which has room for CONTROL_LINE bytes. */
int control_ask(struct control *control, const char *command, char *reply, struct err *err);
/* Ignores unknown words. */
void control_parse(const char *reply, struct control_status *status);
void control_close(struct control *control);

#endif

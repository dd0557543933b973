/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * netconn: a session with a board that runs the seL4 profiler, by commands that the user types while samples arrive:
 * CONNECT, START, STOP, EXIT. What the board sends goes to a raw stream.
 */
#ifndef KSCOPE_RECORD_NETCONN_H
#define KSCOPE_RECORD_NETCONN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "record/files.h"

struct netconn {
	const char *address; /* HOST:PORT */
	const char *output;  /* the raw stream is beside it */
	/*
	 * Adds the number of samples to *samples, and returns how many bytes it has dealt with. The rest may be part of a
	 * sample. all: no more bytes will come.
	 */
	size_t (*count)(const uint8_t *data, size_t len, bool all, uint64_t *samples);

	/* Results. */
	struct record_files
		files;	 /* with the raw stream, if `bytes` is not 0; the caller releases it */
	uint64_t bytes;	 /* in the raw stream */
	uint64_t breaks; /* how often the link broke */
	bool failed;	 /* a command did */
};

/*
 * Returns when the user exits or a signal ends the session. -1: err is set: the address is wrong, or the raw stream
 * cannot be written.
 */
int netconn_run(struct netconn *netconn, struct err *err);

#endif

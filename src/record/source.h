/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * source: something to record: a guest in QEMU, a board at the end of a link, a target behind a gdb stub. A
 * source is one file, or several with its name, that defines its ops. record/session drives every source in the same
 * loop, and takes care of signals, the duration and the status line.
 */
#ifndef KSCOPE_RECORD_SOURCE_H
#define KSCOPE_RECORD_SOURCE_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

#define SOURCE_FDS 4
#define SECOND 1000000000ULL

/* The raw stream: the bytes as they came, in a file that is readable at any time. */
struct raw {
	const char *path; /* for messages; borrowed */
	int fd;
	uint64_t bytes; /* written */
	struct err err; /* of the first write that failed */
};

enum source_state { SOURCE_GOES_ON, SOURCE_ENDED, SOURCE_FAILED = -1 };

struct source {
	const struct source_ops *ops;
	void *priv;	    /* belongs to the source */
	struct raw *raw;    /* gets its bytes; NULL: the source writes its file itself */
	const char *until;  /* end when the target prints this; NULL: no such text */
	bool found;	    /* it printed it */
	bool live;	    /* the status line is shown: state() will be called */
	uint64_t breaks;    /* how often the link broke; each may have lost data */
	bool partial;	    /* something else is missing; the source has explained it */
	struct err err;	    /* of SOURCE_FAILED */
};

struct source_ops {
	/* Begins. May take seconds, but returns -1 with err set when one of `signals` is readable. */
	int (*open)(struct source *s, int signals);
	/*
	 * Fills in what to wait for, at most SOURCE_FDS, and returns how many. Lowers *until (ns, source_now()) if
	 * step() has to be called by then in any case. May be NULL: step() is called every 100 ms.
	 */
	size_t (*wait)(struct source *s, struct pollfd *fds, uint64_t *until);
	/* Called when one of them is ready, at *until, after a signal, or for another reason. Must not block for long. */
	enum source_state (*step)(struct source *s);
	/*
	 * The recording has to end: asks the target to stop. step() goes on to be called until it returns
	 * SOURCE_ENDED, so that the rest can arrive. hurry: the user is impatient; do not wait for the rest.
	 */
	void (*stop)(struct source *s, bool hurry);
	/* Appends to the status line: ", 4 threads, stopped 3 % of the time". May be NULL. */
	void (*state)(struct source *s, struct buf *text);
	/* Always called after a successful open(), and after a failed one. Must leave the target running. */
	void (*close)(struct source *s);
};

uint64_t source_now(void); /* ns, monotonic */
/* Appends to the raw stream. False: the disk is full, say; raw->err is set, and the recording has to end. */
bool raw_write(struct raw *raw, const void *data, size_t len);

#endif

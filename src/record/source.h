/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * source: something to record: a guest in QEMU, a board at the end of a link, a target behind a gdb stub. A
 * source is one file, or several with its name, that defines its ops. record/session drives every source in the same
 * loop, and takes care of signals, the duration and the status line.
 */
#ifndef KSCOPE_RECORD_SOURCE_H
#define KSCOPE_RECORD_SOURCE_H

#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/signalfd.h>

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

struct record_source {
	const struct source_ops *ops;
	void *priv;	   /* belongs to the source */
	struct raw *raw;   /* gets its bytes; NULL: the source writes its file itself */
	const char *until; /* end when the target prints this; NULL: no such text */
	bool found;	   /* it printed it */
	uint64_t began;	   /* when it began to deliver, for the duration; 0: not yet */
	bool shown;   /* a status line is on the screen: source_warn() and source_say() clear it */
	bool trouble; /* the link is down: the user should notice */
	bool counts;  /* state() says how many samples there are */
	uint64_t breaks; /* how often the link broke; each may have lost data */
	bool partial;	 /* something else is missing; the source has explained it */
	sigset_t mask;	 /* of signals, for child processes */
	struct err err;	 /* of SOURCE_FAILED */
};

struct source_ops {
	/* Begins, without waiting for long. Returns -1 with err set. */
	int (*open)(struct record_source *s);
	/*
	 * Fills in what to wait for, at most SOURCE_FDS, and returns how many. Lowers *until (ns, source_now()) if
	 * step() has to be called by then in any case.
	 */
	size_t (*wait)(struct record_source *s, struct pollfd *fds, uint64_t *until);
	/* Called when one of them is ready, at *until, after a signal, or for another reason. Must not block for long. */
	enum source_state (*step)(struct record_source *s);
	/*
	 * The recording has to end: asks the target to stop. step() goes on to be called until it returns
	 * SOURCE_ENDED, so that the rest can arrive. hurry: the user is impatient; do not wait for the rest.
	 */
	void (*stop)(struct record_source *s, bool hurry);
	/*
	 * A signal that would end the recording; true: the source has dealt with it. May be NULL.
	 */
	bool (*signal)(struct record_source *s, const struct signalfd_siginfo *info);
	/* Adds to the status line: "4 threads, stopped 3 % of the time". May be NULL. */
	void (*state)(struct record_source *s, struct buf *text);
	/* Always called after a successful open(), and after a failed one. Must leave the target running. */
	void (*close)(struct record_source *s);
};

uint64_t source_now(void);			     /* ns, monotonic */
void source_earlier(uint64_t *time, uint64_t other); /* lowers *time to `other` */
/* Messages while the source is open. */
void source_say(struct record_source *s, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void source_warn(struct record_source *s, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* Appends to the raw stream. False: the disk is full, say; raw->err is set, and the recording has to end. */
bool raw_write(struct raw *raw, const void *data, size_t len);

#endif

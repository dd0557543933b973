/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * viewer: a process that reads the raw stream of a recording while it grows, for the status line or for `kscope top`. It
 * is a process of its own, so that nothing it does can delay or end the recording. The recorder copies the raw stream
 * to it through a pipe, as far as the pipe has room.
 */
#ifndef KSCOPE_VIEWER_H
#define KSCOPE_VIEWER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "convert.h"
#include "record/session.h"
#include "top_screen.h"

struct glance;

struct viewer {
	struct watcher watcher; /* for the session */
	const char *raw;	/* path of the raw stream; borrowed */
	bool top;		/* it shows `kscope top`; else it makes the status line */
	bool counted;		/* the status line has the number of samples already */
	int raw_fd, pipe;	/* -1: not open */
	uint64_t sent;
	pid_t child;
	struct screen_modes modes; /* of the terminal before it had it */
	struct glance *glance;
	uint64_t seen_samples, seen_at; /* for samples per second */
	double rate;
};

/*
 * Starts it. like: a job without inputs (args_job()). title: of `kscope top`, NULL: for the status line. Call it before
 * the session, so that the viewer does not inherit what the source opens.
 */
int viewer_start(struct viewer *viewer, const struct job *like, const char *raw, const char *title,
		 struct err *err);
/*
 * The recording has ended. The view of `kscope top` gets the rest of it, and stays until the user closes it; leave: it
 * does not.
 */
void viewer_end(struct viewer *viewer, bool leave);

#endif

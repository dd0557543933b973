/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * session: one recording, from the start of its source to the end: on its own, after the duration, when the target
 * prints the --until text, when the disk is full, or when the user interrupts it.
 */
#ifndef KSCOPE_RECORD_SESSION_H
#define KSCOPE_RECORD_SESSION_H

#include "record/source.h"

enum session_reason {
	SESSION_ENDED,	     /* by itself */
	SESSION_TIME_IS_UP,
	SESSION_FOUND,	     /* the --until text */
	SESSION_INTERRUPTED, /* by a signal */
	SESSION_NO_ROOM,     /* the raw stream could not be written */
};

/* Somebody who watches the recording; see src/viewer.h. All may be called at any time. */
struct watcher {
	/* Adds what to wait for, and returns how many fds: 0 or 1. */
	size_t (*wait)(struct watcher *w, struct pollfd *fd);
	void (*step)(struct watcher *w);
	/* Appends to the status line: "1234 samples, 998/s, 0 lost, 23 % memcpy". */
	void (*state)(struct watcher *w, struct buf *text);
	bool closed; /* the user closed the view: the recording ends as with Ctrl-C */
};

struct session {
	struct source *source;
	uint64_t duration;	 /* ns; 0: no limit */
	bool live;		 /* show a status line on stderr */
	struct watcher *watcher; /* NULL: nobody */

	/* Results. */
	enum session_reason why;
	uint64_t took;
};

/* Returns -1 and sets err if the source cannot be opened or fails. Restores signals before it returns. */
int session_run(struct session *session, struct err *err);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * session: one recording, from the start of its source to the end: on its own, after the duration, when the target
 * prints the --until text, when the disk is full, or when the user interrupts it.
 */
#ifndef KSCOPE_RECORD_SESSION_H
#define KSCOPE_RECORD_SESSION_H

#include "record/source.h"

enum session_reason {
	SESSION_ENDED, /* by itself */
	SESSION_TIME_IS_UP,
	SESSION_FOUND,	     /* the --until text */
	SESSION_INTERRUPTED, /* by a signal */
	SESSION_NO_ROOM,     /* the raw stream could not be written */
};

/* Somebody who watches the recording (src/viewer.h). */
struct watcher {
	/* Sets what to wait for; fd -1: nothing. Lowers *until, as wait() of a source does. */
	void (*wait)(struct watcher *w, struct pollfd *fd, uint64_t *until);
	void (*step)(struct watcher *w);
	/* Adds to the status line: "1234 samples, 998/s, 0 lost, memcpy 23 %". May be NULL. */
	void (*state)(struct watcher *w, struct buf *text);
	/* Gets the status line of the source, if it shows it itself. May be NULL. */
	void (*tell)(struct watcher *w, const char *state, bool trouble);
	bool closed; /* the user closed the view: the recording ends as with Ctrl-C */
};

struct session {
	struct record_source *source;
	uint64_t duration;	 /* ns; 0: no limit */
	bool live;		 /* show a status line on stderr */
	struct watcher *watcher; /* NULL: nobody */

	/* Results. */
	enum session_reason why;
	uint64_t took;
};

/* Returns -1 and sets err if the source cannot be opened or fails. Restores signals before it returns. */
int session_run(struct session *session, struct err *err);
/* Whether the user wants it to have no effect (nohup). A signal that is blocked, to be read, would come all the same. */
bool session_ignores(int number);

#endif

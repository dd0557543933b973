/* SPDX-License-Identifier: GPL-2.0-or-later */
/* top: the view of a recording while it is made, in the terminal; plain text if there is none. */
#ifndef KSCOPE_TOP_H
#define KSCOPE_TOP_H

struct job;
struct glance;

struct top_setup {		/* all is borrowed, except for fd */
	int fd;			/* the end of a pipe to read from */
	const struct job *like; /* as in live_open() */
	struct glance *glance;	/* NULL: nobody shares it */
	const char *raw_path;	/* the recording so far, to save from; NULL: there is none */
	const char *title;	/* "tcp board:1236" */
};

/*
 * The main loop of a viewer, until the user quits, or the stream has ended and nobody is there to look. The
 * caller is a process of its own: SIGINT and SIGTERM are ignored, because the recorder ends the stream. Returns an
 * exit code.
 */
int top_main(const struct top_setup *setup);

#endif

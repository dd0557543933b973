/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * view_page: a page that a child process makes of recordings. Readers may start threads, so the server itself never reads a
 * recording: it could not fork again.
 */
#ifndef KSCOPE_VIEW_PAGE_H
#define KSCOPE_VIEW_PAGE_H

#include <signal.h>

#include "args.h"
#include "serve.h"

enum view_page_messages {
	VIEW_PAGE_PRINTS,	/* on stderr, as any conversion */
	VIEW_PAGE_KEEPS,	/* in page->said */
	VIEW_PAGE_KEEPS_ERRORS, /* the same, but no warnings */
};

struct view_page {
	pid_t child; /* 0: none runs */
	struct out out;
	int messages; /* -1: the child prints them itself */

	/* Results, when the child has ended. */
	struct buf said;
	int code; /* as convert_files(); a negative one: the signal that ended it */
	int fd;	  /* of the page, without a name; the caller takes it. -1: it failed */
};

extern const struct writer_ops *const view_page_writers[]; /* one, and NULL */

/* mask: the signals that the child blocks. After a failure, too, call view_page_release() before the next start. */
int view_page_start(struct view_page *page, const struct args *args, struct serve *serve,
		    enum view_page_messages messages, const sigset_t *mask, struct err *err);
/* Reads what the child says, so that it does not wait for us. */
void view_page_listen(struct view_page *page);
/* Whether the child has ended. options: of waitpid(). */
bool view_page_ended(struct view_page *page, int options);
/* Ends the child, if there is one. */
void view_page_release(struct view_page *page);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * page: a page that a child process makes of recordings. Readers may start threads, so the server itself never reads a
 * recording: it could not fork again.
 */
#ifndef KSCOPE_PAGE_H
#define KSCOPE_PAGE_H

#include <signal.h>

#include "args.h"
#include "serve.h"

enum page_messages {
	PAGE_PRINTS,	   /* on stderr, as any conversion */
	PAGE_KEEPS,	   /* in page->said */
	PAGE_KEEPS_ERRORS, /* the same, but no warnings */
};

struct page {
	pid_t child; /* 0: none runs */
	struct out out;
	int messages; /* -1: the child prints them itself */

	/* Results, when the child has ended. */
	struct buf said;
	int code; /* as convert_files(); a negative one: the signal that ended it */
	int fd;	  /* of the page, without a name; the caller takes it. -1: it failed */
};

extern const struct writer_ops *const page_writers[]; /* one, and NULL */

/* mask: the signals that the child blocks. After a failure, too, call page_release() before the next start. */
int page_start(struct page *page, const struct args *args, struct serve *serve,
	       enum page_messages messages, const sigset_t *mask, struct err *err);
/* Reads what the child says, so that it does not wait for us. */
void page_listen(struct page *page);
/* Whether the child has ended. options: of waitpid(). */
bool page_ended(struct page *page, int options);
/* Ends the child, if there is one. */
void page_release(struct page *page);

#endif

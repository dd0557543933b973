/* SPDX-License-Identifier: GPL-2.0-or-later */
/* page: an HTML page that compares two recordings. */
#ifndef KSCOPE_PAGE_H
#define KSCOPE_PAGE_H

#include "args.h"

struct page {
	const char *path;			  /* to write */
	const char *const *before, *const *after; /* inputs; those of a side are merged by time */
	size_t nr_before, nr_after;
};

/* Fails unless the extension is that of a page. */
int page_check(const char *path, struct err *err);
/* With the options of the command line. Reports no losses: see job_summary(). */
int page_write(const struct page *page, const struct args *args, struct err *err);

#endif

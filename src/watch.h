/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * watch: keeps the page of recordings that may still grow up to date. A child process makes a new page when an input
 * has changed, but only after a pause of twice the time that the last page took, so that this costs a third of a cpu
 * at most.
 */
#ifndef KSCOPE_WATCH_H
#define KSCOPE_WATCH_H

#include "view_page.h"

struct watch_look { /* at the inputs */
	uint64_t digest, bytes;
	const char *missing; /* an input that does not exist yet or is empty; NULL: none */
};

struct watch {
	const struct args *args;
	struct serve *serve;
	const sigset_t *mask; /* of signals, for child processes */
	struct view_page page;
	struct watch_look now, made;		  /* `made`: what the last page was made of */
	uint64_t version;			  /* of the page; 0: there is none yet */
	uint64_t changed, started, next, look_at; /* ns; changed 0: never */
	bool failed;				  /* the last page could not be made */
	char *problem, *doubt,
		*said; /* why; why perhaps; and the last one that the user has seen */
	bool waits;    /* the user knows that an input is missing */
	int code;      /* exit code of the last page */
	bool ended;    /* it cannot go on; see `code` */
};

void watch_start(struct watch *w);
void watch_wait(struct watch *w, struct pollfd *fd, uint64_t *until);
void watch_step(struct watch *w);
void watch_release(struct watch *w);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* browser: opens an address in the user's browser, which stays when kscope ends. */
#ifndef KSCOPE_BROWSER_H
#define KSCOPE_BROWSER_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

struct browser {
	pid_t child; /* 0: none runs */
};

/* mask: the signals that it blocks. Says so if there is no browser. */
void browser_open(struct browser *browser, const char *url, const sigset_t *mask);
/* Call it after SIGCHLD. Says so if the browser failed, unless it has loaded the page before. */
void browser_check(struct browser *browser, bool loaded);

#endif

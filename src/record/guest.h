/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * guest: starts the emulator and waits until it ends: on its own, after the duration, when the
 * guest prints the --until text, or when the user interrupts it.
 */
#ifndef KSCOPE_RECORD_GUEST_H
#define KSCOPE_RECORD_GUEST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "record/relay.h"

enum guest_reason { GUEST_ENDED, GUEST_TIME_IS_UP, GUEST_SAID_IT, GUEST_WAS_INTERRUPTED };

struct guest {
	const char *const *words; /* its command line, NULL at the end */
	const char *control;	  /* the plugin's socket */
	uint64_t duration;	  /* ns from when the plugin is loaded; 0: as long as it runs */
	struct relay *relay;	  /* NULL: its output is not watched */
	bool relay_stdout;	  /* the relay is its standard output */
	bool live;		  /* show a status line */
	bool trace;		  /* it counts jumps, not samples */
	bool passes_signals;	  /* they do not end it, but go on to it */

	/* Results. */
	enum guest_reason why;
	bool killed; /* with SIGKILL: it did not end on SIGTERM, or the user did not wait */
	int status;  /* from waitpid() */
	uint64_t took;
};

/* Returns -1 and sets err if the guest cannot be started. Restores signals before it returns. */
int guest_run(struct guest *guest, struct err *err);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * guest: starts the emulator and stays with it until it ends: by itself, when the time is up, when
 * the guest has printed what was waited for, or when the user has had enough.
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
	uint64_t duration;	  /* ns from when the plugin is there; 0: as long as it runs */
	struct relay *relay;	  /* NULL: its output is not watched */
	bool relay_stdout;	  /* the relay is its standard output */
	bool live;		  /* show a line that says how it goes */
	bool trace;		  /* of jumps, not of samples */

	/* Results. */
	enum guest_reason why;
	bool killed; /* it did not end when it was asked to, or was not given the time */
	int status;  /* as waitpid() has it */
	uint64_t took;
};

/* -1: it could not be started, and err says why. Signals are as they were when it returns. */
int guest_run(struct guest *guest, struct err *err);

#endif

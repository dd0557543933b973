/* SPDX-License-Identifier: GPL-2.0-or-later */
/* guest: the source that starts the emulator and waits until it ends. The plugin in it writes the raw stream. */
#ifndef KSCOPE_RECORD_GUEST_H
#define KSCOPE_RECORD_GUEST_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <termios.h>

#include "record/control.h"
#include "record/relay.h"
#include "record/source.h"

/* Terminal settings that QEMU changes, and does not restore if it is killed. */
struct guest_terminal {
	bool is_one;
	struct termios modes;
	int flags[3];
};

struct guest {			  /* source->priv */
	const char *const *words; /* its command line, NULL at the end */
	const char *control;	  /* the plugin's socket; NULL: it has none */
	struct relay *relay;	  /* NULL: its output is not watched */
	bool relay_stdout;	  /* the relay is its standard output */
	bool trace;		  /* it counts jumps, not samples */
	bool passes_signals;	  /* they do not end it, but go on to it */

	pid_t child;
	struct control to_plugin;
	struct guest_terminal terminal;
	uint64_t start, end_by; /* end_by: when to send SIGKILL; 0: it was not asked to end */
	unsigned silent;	/* commands without an answer in a row */

	/* Results. */
	bool killed; /* with SIGKILL: it did not end on SIGTERM, or the user did not wait */
	int status;  /* from waitpid() */
};

extern const struct source_ops source_guest;

#endif

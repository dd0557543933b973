/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * relay: passes on what the guest prints, byte for byte, and watches it for a text. The output
 * comes through a pipe, or a pty if our standard output is a terminal, or from the file that QEMU
 * writes it to.
 */
#ifndef KSCOPE_RECORD_RELAY_H
#define KSCOPE_RECORD_RELAY_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "record/needle.h"

struct relay {
	struct needle needle; /* the text to watch for */
	int from, into;	      /* the read end; the guest's write end. -1: none */
	const char *file;     /* QEMU's output file: watched, not passed on; borrowed */
	uint64_t offset;      /* bytes of the file read so far */
	struct buf held;      /* bytes not yet written to standard output */
	bool ends; /* the guest is ending or has ended: it must not wait for our reader */
};

void relay_init(struct relay *relay, const char *text);
/* Creates the pipe or pty that replaces the guest's standard output. */
int relay_open(struct relay *relay, struct err *err);
/* Watches a file. Empties it first, as QEMU would do, unless QEMU appends. */
void relay_follow(struct relay *relay, const char *file, bool appends);
/* Closes our copy of the write end, after the fork. */
void relay_close_into(struct relay *relay);
/* Sets what to wait for before the next move: the guest's output, and ours. */
void relay_poll(const struct relay *relay, struct pollfd fds[2]);
/* Passes on what is available, without blocking. */
void relay_move(struct relay *relay);
/* Writes the rest; gives up when the reader takes nothing for patience_ms (-1: never). */
void relay_finish(struct relay *relay, int patience_ms);
void relay_release(struct relay *relay);

#endif

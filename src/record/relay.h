/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * relay: what the guest prints, passed on byte for byte, and watched for a text on the way. It
 * comes through a pipe, or a pty where standard output is a terminal, or is read from the file
 * that QEMU writes it to.
 */
#ifndef KSCOPE_RECORD_RELAY_H
#define KSCOPE_RECORD_RELAY_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

struct relay {
	const char *text; /* to watch for; borrowed */
	int from, into;	  /* what is read; where the guest writes. -1: none */
	const char *file; /* the guest's own: read along, not passed on; borrowed */
	uint64_t offset;  /* read so far of the file */
	struct buf seen;  /* the end of what came, shorter than the text */
	struct buf held;  /* what standard output has not taken yet */
	bool ends;	  /* the guest was told to end, or has: it does not wait for our reader */
	bool found;
};

void relay_init(struct relay *relay, const char *text);
/* Stands in for standard output. */
int relay_open(struct relay *relay, struct err *err);
/* The file is emptied first, as QEMU would do, unless it appends. */
void relay_follow(struct relay *relay, const char *file, bool appends);
/* The child has it now. */
void relay_close_into(struct relay *relay);
/* What to wait for before the next move: the guest's output, and ours. */
void relay_poll(const struct relay *relay, struct pollfd fds[2]);
/* Passes on what is there, without waiting. */
void relay_move(struct relay *relay);
/* The rest, as long as somebody takes of it every so often; -1: as long as it takes. */
void relay_finish(struct relay *relay, int patience_ms);
void relay_release(struct relay *relay);

#endif

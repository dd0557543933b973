/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * talk: the conversation with a target over a link: which format its stream has, which commands start and stop it,
 * and when the stream is over. The bytes themselves go to the raw stream unchanged.
 */
#ifndef KSCOPE_RECORD_TALK_H
#define KSCOPE_RECORD_TALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

struct talk {
	const struct talk_row *row; /* NULL: not recognized */
	bool given;		    /* the user named the format: start at once */
	struct buf start, stop;	    /* by the user; NULL data: those of the format */
	bool recognized;	    /* in this connection */
	struct buf seen;	    /* the last bytes, until then */
	struct buf tail;	    /* the last bytes of the stream */
	const char *next;	    /* commands to send, each with its NUL; "": none */
	uint64_t next_at;	    /* when to send it, even if no answer came */
	bool stopped;
};

/*
 * format: the name of a reader; NULL: detect. start, stop: what to send instead of the commands of the format, with the
 * escapes of C; NULL: those of the format.
 */
int talk_init(struct talk *talk, const char *format, const char *start, const char *stop,
	      struct err *err);
void talk_release(struct talk *talk);
/* A connection begins. */
void talk_begin(struct talk *talk);
/* Bytes have arrived. */
void talk_feed(struct talk *talk, const void *data, size_t len);
/* The recording ends: the commands to stop come next. */
void talk_stop(struct talk *talk);
/*
 * The next thing to send, and its length; NULL: nothing at the moment. Targets may read one command from each packet, so
 * there is one at a time: the next one follows an answer, or a pause.
 */
const char *talk_next(struct talk *talk, uint64_t now, size_t *len);
/* When to call talk_next(); UINT64_MAX: there is nothing to send. */
uint64_t talk_next_at(const struct talk *talk);
/* The name of the reader; NULL: not recognized. */
const char *talk_format(const struct talk *talk);
/* The stream has said that it is complete. */
bool talk_is_over(const struct talk *talk);
/* There is a command that stops the target. */
bool talk_can_stop(const struct talk *talk);
/* A target that closes the link in order has nothing more to send. Otherwise, the link broke. */
bool talk_ends_with_link(const struct talk *talk);

#endif

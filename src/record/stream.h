/* SPDX-License-Identifier: GPL-2.0-or-later */
/* stream: the source of what a target sends over a link, byte by byte into the raw stream. */
#ifndef KSCOPE_RECORD_STREAM_H
#define KSCOPE_RECORD_STREAM_H

#include "record/link.h"
#include "record/needle.h"
#include "record/source.h"
#include "record/talk.h"

enum stream_phase {
	STREAM_OPENING, /* for the first time */
	STREAM_FLOWS,
	STREAM_BROKEN, /* waiting for the link to come back */
	STREAM_OVER,
};

struct stream { /* source->priv */
	struct link link;
	struct talk talk;
	struct needle needle; /* --until */
	uint64_t retry;	      /* ns to wait for a link that broke; 0: do not wait */

	enum stream_phase phase;
	bool stopping, hurry;
	bool advised;
	uint64_t opened, broke, stopped; /* when */
	uint64_t last;			 /* when the last bytes came */
	uint64_t next_try;		 /* to open the link again */
};

extern const struct source_ops source_stream;

void stream_release(struct stream *stream);

#endif

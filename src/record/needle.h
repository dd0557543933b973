/* SPDX-License-Identifier: GPL-2.0-or-later */
/* needle: finds a text in a stream that comes in pieces. */
#ifndef KSCOPE_RECORD_NEEDLE_H
#define KSCOPE_RECORD_NEEDLE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

struct needle {
	const char *text; /* not empty; borrowed; NULL: nothing is searched */
	struct buf seen;  /* the last bytes of the stream, shorter than the text */
	bool found;
};

void needle_feed(struct needle *needle, const void *data, size_t len);
void needle_release(struct needle *needle);

#endif

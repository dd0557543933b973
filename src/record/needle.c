// SPDX-License-Identifier: GPL-2.0-or-later
#include "record/needle.h"

#include <string.h>

void needle_feed(struct needle *needle, const void *data, size_t len)
{
	struct buf *seen = &needle->seen;
	size_t text, keep;

	if (!needle->text)
		return;
	text = strlen(needle->text);
	buf_add(seen, data, len);
	if (memmem(seen->data, seen->len, needle->text, text))
		needle->found = true;
	keep = seen->len < text ? seen->len : text - 1;
	memmove(seen->data, seen->data + seen->len - keep, keep);
	seen->len = keep;
}

void needle_release(struct needle *needle)
{
	buf_release(&needle->seen);
}

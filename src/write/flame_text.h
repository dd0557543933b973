/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * flame_text: names in SVG. A name is user data and may hold any bytes: characters that XML does
 * not allow (control characters, invalid UTF-8) become U+FFFD, and markup is escaped, for text and
 * attributes alike.
 */
#ifndef KSCOPE_WRITE_FLAME_TEXT_H
#define KSCOPE_WRITE_FLAME_TEXT_H

#include <stddef.h>

#include "base/buf.h"

void svg_escape(struct buf *buf, const char *text, size_t len);
void svg_escape_z(struct buf *buf, const char *text);
/* The same, shortened with an ellipsis to `cells` columns of a monospaced font. */
void svg_fit(struct buf *buf, const char *text, size_t len, size_t cells);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * flame_text: names in SVG. A name is user data and may hold any bytes: what XML cannot say
 * (control characters, broken UTF-8) becomes U+FFFD, and what XML would read as markup is escaped,
 * for text and for attributes alike.
 */
#ifndef KSCOPE_WRITE_FLAME_TEXT_H
#define KSCOPE_WRITE_FLAME_TEXT_H

#include <stddef.h>

#include "base/buf.h"

void svg_escape(struct buf *buf, const char *text, size_t len);
void svg_escape_z(struct buf *buf, const char *text);
/* The same, cut to `cells` columns of a monospaced font; the cut shows as an ellipsis. */
void svg_fit(struct buf *buf, const char *text, size_t len, size_t cells);

#endif

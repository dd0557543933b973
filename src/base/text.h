/* SPDX-License-Identifier: GPL-2.0-or-later */
/* text: numbers and lines in text that may be hostile. */
#ifndef KSCOPE_BASE_TEXT_H
#define KSCOPE_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/in.h"

/* Parses all of [s, s+len) as a number: decimal, or hexadecimal after 0x. False: not a number. */
bool text_u64(const char *s, size_t len, uint64_t *value);
bool text_hex(const char *s, size_t len, uint64_t *value); /* without 0x */
bool text_u32(const char *s, size_t len, uint32_t *value);
/* Seconds with up to nine decimals; *ns is in nanoseconds. */
bool text_seconds(const char *s, size_t len, uint64_t *ns);

/*
 * Appends s as a string of the dump format: in double quotes, with quotes, backslashes and control
 * bytes escaped. All other bytes stay, so that the reader gets s back. For JSON see json_out.h.
 */
void text_quote(struct buf *buf, const char *s, size_t len);
/* Appends the original of what is between the quotes. */
void text_unquote(struct buf *buf, const char *s, size_t len);
/* The closing quote of the string that starts with the quote at s, or NULL. */
const char *text_quote_end(const char *s, const char *end);

/* The length in bytes of the UTF-8 character at s; 0 if there is none. */
size_t text_utf8_len(const char *s);
/* Is the character at s a control character (C0, DEL or C1), which a terminal might obey? */
bool text_is_control(const char *s);
/* Appends s for a terminal: control characters and bytes that are not UTF-8 become '?'. */
void text_add_plain(struct buf *buf, const char *s);
/* The same, alone in `scratch`, which owns the result. */
const char *text_plain(struct buf *scratch, const char *s);

/* Human-readable nanoseconds: "1.234 s", "56.700 ms". */
void text_duration(struct buf *buf, uint64_t ns);

/* The part of a path after its last slash. */
const char *text_last_part(const char *path);
/* The part up to and including the last slash; "" if there is none. The caller frees it. */
char *text_folder(const char *path);

/*
 * The next line without its newline, not NUL-terminated; false at the end of the input. Valid until
 * the next in_ call. A line longer than IN_MAX_PEEK is returned in pieces.
 */
bool text_line(struct in *in, const char **line, size_t *len);
/* Whether it can answer without waiting for the writer of a pipe. */
bool text_line_ready(struct in *in);

#endif

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
/* The number of the character of that length at s. */
uint32_t text_code(const char *s, size_t len);
/*
 * Might a terminal interpret this character, or a reader take it for the end of a line? C0, DEL and C1 controls,
 * Unicode's line separators, and bidirectional controls.
 */
bool text_is_unsafe(uint32_t code);
/*
 * Appends s for people to read, on a terminal or in a line of text: unsafe characters and bytes that are not UTF-8
 * become '?'. All names and paths in messages and tables come through here.
 */
void text_add_plain(struct buf *buf, const char *s);
/* The same for whole lines, whose ends and tabs stay. */
void text_add_lines(struct buf *buf, const char *s, size_t len);
/* Like text_add_plain(), but alone in `scratch`, which owns the result. */
const char *text_plain(struct buf *scratch, const char *s);

/* s itself if it is UTF-8; else a copy, owned by `scratch`, in which U+FFFD replaces invalid bytes. */
const char *text_valid(struct buf *scratch, const char *s);

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
/* Whether the last line ended with a newline, not with the input. Call it after text_line(). */
bool text_line_ended(const struct in *in);
#define TEXT_CUT "the file ends in the middle of a line"
/* Whether it can answer without waiting for the writer of a pipe. */
bool text_line_ready(struct in *in);

#endif

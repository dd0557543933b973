/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * json: a strict pull scanner over bytes in memory. The caller asks for what it expects next; a
 * scan that runs out of bytes says so (`cut`), and the caller tries again with more. Why by hand:
 * doc/dependencies.md.
 */
#ifndef KSCOPE_BASE_JSON_H
#define KSCOPE_BASE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

struct json {
	const uint8_t *at, *end;
	bool cut;	   /* the bytes ended before the value did */
	bool escaped;	   /* the last string that was taken raw has escapes */
	const char *wrong; /* what is wrong at `at`; NULL while nothing is */
};

int json_peek_after_space(struct json *js);

/* The next byte that is not white space, not consumed; 0 and cut at the end. */
static inline int json_peek(struct json *js)
{
	if (js->end > js->at && js->at[0] > ' ')
		return *js->at;
	return json_peek_after_space(js);
}

/* Consumes this byte, after white space. False: cut, or something else is there. */
static inline bool json_take(struct json *js, char c)
{
	if (json_peek(js) != (uint8_t)c)
		return false;
	js->at++;
	return true;
}

/* A string as it stands in the input, escapes and all. */
bool json_raw_string(struct json *js, const char **text, size_t *len);
/* A string with its escapes undone. */
bool json_string(struct json *js, struct buf *text);
/* A key and its colon. Escapes, which keys hardly have, are undone in `text`. */
bool json_key(struct json *js, struct buf *text, const char **key, size_t *len);
/* The word null, which stands for nothing. False: cut, or something else is there. */
bool json_null(struct json *js);
/* A whole number, however written (12, 1.2e1), or in quotes (then 0x... is fine, too). */
bool json_u64(struct json *js, uint64_t *value);
bool json_u32(struct json *js, uint32_t *value);
/* Any value, nested at most 256 deep. */
bool json_skip(struct json *js);
/* Always false: sets `wrong`. */
bool json_fail(struct json *js, const char *what);

#endif

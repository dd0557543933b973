/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * json: a strict pull scanner over bytes in memory. The caller asks for what it expects next; a
 * scan that runs out of bytes sets `cut`, and the caller retries with more. doc/dependencies.md
 * says why it is not a library.
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
	bool escaped;	   /* the last string from json_raw_string() has escapes */
	const char *wrong; /* the error at `at`; NULL if none */
};

int json_peek_after_space(struct json *js);

/* Peeks at the next byte that is not white space. At the end returns 0 and sets cut. */
static inline int json_peek(struct json *js)
{
	if (js->end > js->at && js->at[0] > ' ')
		return *js->at;
	return json_peek_after_space(js);
}

/* Consumes c, after any white space. False: cut, or another byte is there. */
static inline bool json_take(struct json *js, char c)
{
	if (json_peek(js) != (uint8_t)c)
		return false;
	js->at++;
	return true;
}

/* A string as it is in the input, escapes included. */
bool json_raw_string(struct json *js, const char **text, size_t *len);
/* A string with its escapes decoded. */
bool json_string(struct json *js, struct buf *text);
/* A key and its colon. A key with escapes, which is rare, is decoded into `text`. */
bool json_key(struct json *js, struct buf *text, const char **key, size_t *len);
/* The word null. False: cut, or something else is there. */
bool json_null(struct json *js);
/* A whole number in any notation (12, 1.2e1), or in quotes, where 0x... is accepted too. */
bool json_u64(struct json *js, uint64_t *value);
bool json_u32(struct json *js, uint32_t *value);
/* The same for an address, which a C program may have printed as signed: from 2^63 on, it is negative. */
bool json_address(struct json *js, uint64_t *value);
/* Any value, nested at most 256 deep. */
bool json_skip(struct json *js);
/* Sets `wrong` unless it is set already. Always returns false. */
bool json_fail(struct json *js, const char *what);

#endif

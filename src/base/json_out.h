/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * json_out: a streaming JSON writer, the counterpart of json.h. It places commas and line breaks,
 * and its output is valid JSON and safe to print whatever the strings contain: bytes that are not
 * UTF-8 become U+FFFD, control characters are escaped.
 *
 * Every value takes a key, which is NULL in an array and at the top level. Wrong nesting is a bug in
 * the caller and aborts the program.
 */
#ifndef KSCOPE_BASE_JSON_OUT_H
#define KSCOPE_BASE_JSON_OUT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

#define JSON_OUT_MAX_DEPTH 16

struct json_out {
	struct buf *to; /* borrowed; set this, zero the rest */
	bool comma;	/* the next value needs one before it */
	unsigned depth;
	char ends[JSON_OUT_MAX_DEPTH]; /* the closing bracket of every open object and array */
};

void json_out_object(struct json_out *out, const char *key);
void json_out_array(struct json_out *out, const char *key);
/* Closes the innermost object or array; the outermost one also ends the line. */
void json_out_end(struct json_out *out);

void json_out_text(struct json_out *out, const char *key, const char *text);
void json_out_u64(struct json_out *out, const char *key, uint64_t value);
void json_out_i64(struct json_out *out, const char *key, int64_t value);
/* With this many decimals, in any locale. Infinity and NaN, which JSON lacks, become null. */
void json_out_double(struct json_out *out, const char *key, double value, unsigned decimals);
/* Only the string, in quotes: for streams that are written piece by piece. */
void json_out_string(struct buf *to, const char *text);
/* value / 10^decimals, exactly and as short as possible. */
void json_out_decimal(struct json_out *out, const char *key, uint64_t value, unsigned decimals);
void json_out_bool(struct json_out *out, const char *key, bool value);
void json_out_null(struct json_out *out, const char *key);

#endif

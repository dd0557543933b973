// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/json_out.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/text.h"

/* Like assert(), but also in a build with NDEBUG. */
static void must(bool good)
{
	if (!good) {
		fputs("kscope: bug: JSON output is nested wrongly\n", stderr);
		abort();
	}
}

void json_out_string(struct buf *to, const char *s)
{
	size_t len;

	buf_addc(to, '"');
	for (; *s; s += len ? len : 1) {
		len = text_utf8_len(s);
		if (!len)
			buf_adds(to, "\xef\xbf\xbd");
		else if (*s == '"' || *s == '\\')
			buf_addf(to, "\\%c", *s);
		else if (text_is_unsafe(text_code(s, len))) /* JSON may be read on a terminal */
			buf_addf(to, "\\u%04" PRIx32, text_code(s, len));
		else
			buf_add(to, s, len);
	}
	buf_addc(to, '"');
}

/* Writes the comma and the key before a value. */
static void start(struct json_out *out, const char *key)
{
	must(out->depth ? (out->ends[out->depth - 1] == '}') == !!key : !key && !out->comma);
	if (out->comma)
		buf_addc(out->to, ',');
	out->comma = true;
	if (key) {
		json_out_string(out->to, key);
		buf_addc(out->to, ':');
	}
}

static void nest(struct json_out *out, const char *brackets)
{
	must(out->depth < JSON_OUT_MAX_DEPTH);
	buf_addc(out->to, brackets[0]);
	out->ends[out->depth++] = brackets[1];
	out->comma = false;
}

void json_out_object(struct json_out *out, const char *key)
{
	start(out, key);
	if (out->depth && !key) /* one row of a table */
		buf_addc(out->to, '\n');
	nest(out, "{}");
}

void json_out_array(struct json_out *out, const char *key)
{
	start(out, key);
	nest(out, "[]");
}

void json_out_end(struct json_out *out)
{
	must(out->depth);
	buf_addc(out->to, out->ends[--out->depth]);
	out->comma = true;
	if (!out->depth)
		buf_addc(out->to, '\n');
}

void json_out_text(struct json_out *out, const char *key, const char *text)
{
	start(out, key);
	json_out_string(out->to, text);
}

void json_out_u64(struct json_out *out, const char *key, uint64_t value)
{
	start(out, key);
	buf_addu(out->to, value);
}

void json_out_i64(struct json_out *out, const char *key, int64_t value)
{
	start(out, key);
	buf_addf(out->to, "%" PRId64, value);
}

void json_out_double(struct json_out *out, const char *key, double value, unsigned decimals)
{
	bool point = false;
	char *text;

	if (!isfinite(value)) {
		json_out_null(out, key);
		return;
	}
	start(out, key);
	text = xasprintf("%.*f", (int)decimals, value);
	for (const char *c = text; *c; c++) {
		if ((*c >= '0' && *c <= '9') || *c == '-') {
			buf_addc(out->to, *c);
		} else if (!point) { /* the locale's decimal point, of one or more bytes */
			buf_addc(out->to, '.');
			point = true;
		}
	}
	free(text);
}

void json_out_decimal(struct json_out *out, const char *key, uint64_t value, unsigned decimals)
{
	uint64_t one = 1, rest;

	for (unsigned i = 0; i < decimals; i++)
		one *= 10;
	start(out, key);
	buf_addu(out->to, value / one);
	rest = value % one;
	if (rest)
		buf_addc(out->to, '.');
	for (; rest; rest %= one) {
		one /= 10;
		buf_addc(out->to, (char)('0' + rest / one));
	}
}

void json_out_bool(struct json_out *out, const char *key, bool value)
{
	start(out, key);
	buf_adds(out->to, value ? "true" : "false");
}

void json_out_null(struct json_out *out, const char *key)
{
	start(out, key);
	buf_adds(out->to, "null");
}

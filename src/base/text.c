// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/text.h"

#include <inttypes.h>
#include <string.h>

#include "base/mem.h"

static int digit_of(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return 99;
}

static bool number(const char *s, size_t len, unsigned base, uint64_t *value)
{
	uint64_t sum = 0;

	if (!len)
		return false;
	for (size_t i = 0; i < len; i++) {
		unsigned digit = (unsigned)digit_of(s[i]);

		if (digit >= base || __builtin_mul_overflow(sum, base, &sum) ||
		    __builtin_add_overflow(sum, digit, &sum))
			return false;
	}
	*value = sum;
	return true;
}

bool text_u64(const char *s, size_t len, uint64_t *value)
{
	if (len > 2 && s[0] == '0' && (s[1] | 0x20) == 'x')
		return number(s + 2, len - 2, 16, value);
	return number(s, len, 10, value);
}

bool text_hex(const char *s, size_t len, uint64_t *value)
{
	return number(s, len, 16, value);
}

bool text_u32(const char *s, size_t len, uint32_t *value)
{
	uint64_t wide;

	if (!text_u64(s, len, &wide) || wide > UINT32_MAX)
		return false;
	*value = (uint32_t)wide;
	return true;
}

bool text_seconds(const char *s, size_t len, uint64_t *ns)
{
	const char *dot = memchr(s, '.', len);
	size_t whole = dot ? (size_t)(dot - s) : len;
	uint64_t seconds = 0, part = 0;

	if (whole && !number(s, whole, 10, &seconds))
		return false;
	if (dot) {
		size_t digits = len - whole - 1;

		if (!digits || digits > 9 || !number(dot + 1, digits, 10, &part))
			return false;
		for (; digits < 9; digits++)
			part *= 10;
	} else if (!whole) {
		return false;
	}
	return !__builtin_mul_overflow(seconds, 1000000000, &seconds) &&
	       !__builtin_add_overflow(seconds, part, ns);
}

void text_quote(struct buf *buf, const char *s, size_t len)
{
	buf_addc(buf, '"');
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)s[i];

		if (c == '"' || c == '\\') {
			buf_addc(buf, '\\');
			buf_addc(buf, (char)c);
		} else if (c < 0x20 || c == 0x7f) {
			buf_addf(buf, "\\u%04x", c);
		} else {
			buf_addc(buf, (char)c);
		}
	}
	buf_addc(buf, '"');
}

void text_unquote(struct buf *to, const char *s, size_t len)
{
	buf_reserve(to, len);
	for (size_t i = 0; i < len; i++) {
		uint64_t code;

		if (s[i] == '\\' && i + 5 < len && s[i + 1] == 'u' &&
		    text_hex(s + i + 2, 4, &code) && code < 0x80) {
			buf_addc(to, (char)code);
			i += 5;
		} else if (s[i] == '\\' && i + 1 < len) {
			buf_addc(to, s[++i]);
		} else {
			buf_addc(to, s[i]);
		}
	}
	buf_add(to, "", 0);
}

const char *text_quote_end(const char *s, const char *end)
{
	for (s++; s < end && *s != '"'; s++) {
		if (*s == '\\')
			s++;
	}
	return s < end ? s : NULL;
}

/* Rejects what RFC 3629 does: overlong forms, surrogates, code points above U+10FFFF. */
size_t text_utf8_len(const char *text)
{
	const unsigned char *s = (const unsigned char *)text;
	size_t len = s[0] < 0x80   ? 1
		     : s[0] < 0xc2 ? 0
		     : s[0] < 0xe0 ? 2
		     : s[0] < 0xf0 ? 3
		     : s[0] < 0xf5 ? 4
				   : 0;

	for (size_t i = 1; i < len; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	}
	if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
	    (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
		return 0;
	return len;
}

uint32_t text_code(const char *text, size_t len)
{
	const unsigned char *s = (const unsigned char *)text;
	uint32_t code = len > 1 ? s[0] & (0x7fu >> len) : s[0];

	for (size_t i = 1; i < len; i++)
		code = code << 6 | (s[i] & 0x3f);
	return code;
}

bool text_is_unsafe(uint32_t code)
{
	return code < ' ' || (code >= 0x7f && code < 0xa0) || code == 0x61c || code == 0x200e ||
	       code == 0x200f || (code >= 0x2028 && code <= 0x202e) ||
	       (code >= 0x2066 && code <= 0x2069);
}

/* Appends the character or stray byte at s, and returns how many bytes it has. */
static size_t add_plain(struct buf *buf, const char *s)
{
	size_t len = text_utf8_len(s);

	if (!len || text_is_unsafe(text_code(s, len)))
		buf_addc(buf, '?');
	else
		buf_add(buf, s, len);
	return len ? len : 1;
}

void text_add_plain(struct buf *buf, const char *s)
{
	while (*s)
		s += add_plain(buf, s);
}

void text_add_lines(struct buf *buf, const char *s, size_t len)
{
	struct buf whole = { 0 };

	buf_add(&whole, s, len); /* has a NUL after it */
	for (size_t at = 0; at < len;) {
		if (whole.data[at] == '\n' || whole.data[at] == '\t')
			buf_addc(buf, whole.data[at++]);
		else
			at += add_plain(buf, whole.data + at);
	}
	buf_release(&whole);
}

const char *text_plain(struct buf *scratch, const char *s)
{
	buf_clear(scratch);
	buf_add(scratch, "", 0); /* s may be empty */
	text_add_plain(scratch, s);
	return scratch->data;
}

const char *text_valid(struct buf *scratch, const char *s)
{
	const char *at = s, *from = s;
	size_t len;

	buf_clear(scratch);
	while (*at) {
		len = text_utf8_len(at);
		if (len) {
			at += len;
			continue;
		}
		buf_add(scratch, from, (size_t)(at - from));
		buf_adds(scratch, "\xef\xbf\xbd");
		from = ++at;
	}
	if (from == s)
		return s;
	buf_add(scratch, from, (size_t)(at - from));
	return scratch->data;
}

void text_duration(struct buf *buf, uint64_t ns)
{
	if (ns >= 1000000000)
		buf_addf(buf, "%.3f s", (double)ns / 1e9);
	else if (ns >= 1000000)
		buf_addf(buf, "%.3f ms", (double)ns / 1e6);
	else if (ns >= 1000)
		buf_addf(buf, "%.3f us", (double)ns / 1e3);
	else
		buf_addf(buf, "%" PRIu64 " ns", ns);
}

const char *text_last_part(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

char *text_folder(const char *path)
{
	return xstrndup(path, (size_t)(text_last_part(path) - path));
}

bool text_line_ready(struct in *in)
{
	size_t want = 1, have, seen = 0;

	for (;;) {
		bool ready = in_ready(in, want);
		const uint8_t *data = in_peek(in, 0, &have);

		if (memchr(data + seen, '\n', have - seen))
			return true;
		if (!ready || have < want || have >= IN_MAX_PEEK)
			return ready;
		seen = have;
		want = have + 1;
	}
}

bool text_line(struct in *in, const char **line, size_t *len)
{
	size_t want = 1, have = 0, seen = 0;
	const char *data = (const char *)in_peek(in, want, &have);
	const char *end;

	if (!have)
		return false;
	while (!(end = memchr(data + seen, '\n', have - seen))) {
		seen = have;
		if (have >= IN_MAX_PEEK)
			break;
		data = (const char *)in_peek(in, have * 2, &have);
		if (have == seen)
			break;
	}
	*line = data;
	*len = end ? (size_t)(end - data) : have;
	in_skip(in, *len + (end ? 1 : 0));
	if (*len && data[*len - 1] == '\r')
		--*len;
	return true;
}

bool text_line_ended(const struct in *in)
{
	return in->at && in->data[in->at - 1] == '\n';
}

// SPDX-License-Identifier: GPL-2.0-or-later
#include "write/flame_text.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define REPLACEMENT 0xfffd

static bool in_xml(uint32_t c)
{
	bool control = c < 0x20 || (c >= 0x7f && c < 0xa0);
	bool surrogate = c >= 0xd800 && c < 0xe000;

	return !control && !surrogate && (c & 0xfffe) != 0xfffe && c < 0x110000;
}

/* The code point at text[*at]. Advances *at by at least one byte. */
static uint32_t next_char(const uint8_t *text, size_t len, size_t *at)
{
	static const uint32_t least[] = { 0, 0x80, 0x800, 0x10000 };
	uint32_t c = text[(*at)++];
	unsigned more = c < 0x80   ? 0
			: c < 0xc0 ? 4
			: c < 0xe0 ? 1
			: c < 0xf0 ? 2
			: c < 0xf8 ? 3
				   : 4;

	if (more == 4 || more > len - *at)
		return REPLACEMENT;
	if (more)
		c &= 0x3fu >> more;
	for (unsigned i = 0; i < more; i++) {
		if ((text[*at + i] & 0xc0) != 0x80)
			return REPLACEMENT;
		c = c << 6 | (text[*at + i] & 0x3f);
	}
	*at += more;
	return c < least[more] || !in_xml(c) ? REPLACEMENT : c;
}

/* Columns a character may need in a browser's fallback font. flame.js counts the same way. */
static size_t cells_of(uint32_t c)
{
	return c < 0x500 ? 1 : c < 0x10000 ? 2 : 3;
}

static void add_char(struct buf *buf, const char *from, size_t len, uint32_t c)
{
	switch (c) {
	case '&': buf_adds(buf, "&amp;"); break;
	case '<': buf_adds(buf, "&lt;"); break;
	case '>': buf_adds(buf, "&gt;"); break;
	case '"': buf_adds(buf, "&quot;"); break;
	case '\'': buf_adds(buf, "&#39;"); break;
	case REPLACEMENT: buf_adds(buf, "\xef\xbf\xbd"); break;
	default: buf_add(buf, from, len);
	}
}

/* How many bytes fit into `cells` columns. */
static size_t fitting(const char *text, size_t len, size_t cells)
{
	size_t at = 0;

	while (at < len) {
		size_t next = at;
		size_t need = cells_of(next_char((const uint8_t *)text, len, &next));

		if (need > cells)
			break;
		cells -= need;
		at = next;
	}
	return at;
}

void svg_escape(struct buf *buf, const char *text, size_t len)
{
	size_t at = 0;

	while (at < len) {
		size_t from = at;
		uint32_t c = next_char((const uint8_t *)text, len, &at);

		add_char(buf, text + from, at - from, c);
	}
}

void svg_escape_z(struct buf *buf, const char *text)
{
	svg_escape(buf, text, strlen(text));
}

void svg_fit(struct buf *buf, const char *text, size_t len, size_t cells)
{
	if (fitting(text, len, cells) == len) {
		svg_escape(buf, text, len);
		return;
	}
	if (!cells)
		return;
	svg_escape(buf, text, fitting(text, len, cells - 1));
	buf_adds(buf, "\xe2\x80\xa6");
}

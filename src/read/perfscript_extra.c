// SPDX-License-Identifier: GPL-2.0-or-later
#include "read/perfscript_extra.h"

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_hex(char c)
{
	return is_digit(c) || ((c | 0x20) >= 'a' && (c | 0x20) <= 'f');
}

static bool has(struct span text, const char *what)
{
	return memmem(text.at, span_len(text), what, strlen(what)) != NULL;
}

/* ---- branch stacks ---- */

/* The flags of an entry: /P/-/-/0, or M for P; newer versions of perf add N, or more fields. */
static bool flags_at(const char *at, const char *end)
{
	if (end - at < 2 || at[0] != '/' || !strchr("PMN-", at[1]))
		return false;
	at += end - at > 2 && at[2] == 'N' ? 3 : 2;
	return end - at >= 5 && at[0] == '/' && strchr("X-", at[1]) && at[2] == '/' &&
	       strchr("A-", at[3]) && at[4] == '/' && (end - at == 5 || is_digit(at[5]));
}

bool script_has_stack(struct span text)
{
	for (const char *c = text.at; c < text.end; c++) {
		c = memchr(c, '/', (size_t)(text.end - c));
		if (!c)
			return false;
		if (flags_at(c, text.end))
			return true;
	}
	return false;
}

/* ---- the rest of a line ---- */

/* The end of the first binary: " (/bin/x)", " ([kernel.kallsyms])"; NULL: there is none. */
static const char *end_of_binary(struct span text)
{
	for (const char *c = text.at; c + 2 < text.end; c++) {
		int depth = 0;

		if (!is_blank(*c) || c[1] != '(' || (c[2] != '/' && c[2] != '['))
			continue;
		for (const char *d = c + 1; d < text.end; d++) {
			if (*d == '(')
				depth++;
			else if (*d == ')' && --depth == 0)
				return d + 1;
		}
		return NULL;
	}
	return NULL;
}

struct span script_cut_extras(struct span text)
{
	static const char *const extras[] = { " insn:", " ilen:", " IPC:" };
	const char *end = end_of_binary(text);

	if (end)
		text.end = end;
	for (size_t i = 0; i < sizeof(extras) / sizeof(*extras); i++) {
		const char *at = memmem(text.at, span_len(text), extras[i], strlen(extras[i]));

		if (at)
			text.end = at;
	}
	if (script_has_stack(
		    text)) { /* not behind a binary, so that it begins with its first address */
		end = memmem(text.at, span_len(text), " 0x", 3);
		text.end = end ? end : text.at;
	}
	return span_trim(text);
}

/* ---- lines ---- */

static struct span first_word(struct span text)
{
	struct span word = { text.at, text.at };

	while (word.end < text.end && !is_blank(*word.end))
		word.end++;
	return word;
}

/* The size of a page: 4K, 2M, N/A. */
static bool page_size(struct span word)
{
	const char *c = word.at;

	if (span_len(word) == 3 && span_begins(word, "N/A"))
		return true;
	while (c < word.end && is_digit(*c))
		c++;
	return c > word.at && c + 1 == word.end && strchr("BKMGT", *c);
}

bool script_no_name(struct span text)
{
	for (text = span_trim(text); span_len(text); text = span_trim(text)) {
		struct span word = first_word(text);

		if (!page_size(word))
			return false;
		text.at = word.end;
	}
	return true;
}

/* A register with its value, "AX:0x1". */
static bool is_register(struct span word)
{
	const char *colon = memchr(word.at, ':', span_len(word));

	return colon && colon > word.at && word.end - colon > 3 && colon[1] == '0' &&
	       colon[2] == 'x';
}

/* A line of a dump of bytes, "0010: 01 02". */
static bool is_dump(struct span word)
{
	if (span_len(word) != 5 || word.at[4] != ':')
		return false;
	for (const char *c = word.at; c < word.at + 4; c++) {
		if (!is_hex(*c))
			return false;
	}
	return true;
}

/* "  file.c:12", "  file.c:12 (discriminator 3)", "  libc.so.6[2724a]", "  ??:0" */
static bool is_source(struct span line, struct span text)
{
	const char *colon = memrchr(text.at, ':', span_len(text));

	if (span_len(line) < 3 || memcmp(line.at, "  ", 2) != 0 || is_blank(line.at[2]))
		return false;
	return text.end[-1] == ']' ||
	       (colon && colon + 1 < text.end && (is_digit(colon[1]) || colon[1] == '?'));
}

/* The code between two branches, by -F brstackinsn: "\tmain:", and "\t0000000000401136\tinsn: 55". */
static bool is_listing(struct span line, struct span text)
{
	const char *c = text.at;

	if (*line.at != '\t')
		return false;
	while (c < text.end && is_hex(*c))
		c++;
	if (c > text.at && c < text.end && *c == '\t')
		return true;
	return text.end[-1] == ':' || has(text, ":\t");
}

bool script_extra_line(struct span line)
{
	static const char *const starts[] = {
		"ABI:",		  "insn:",	 "ilen:", "IPC:",
		"BPF output:",	  "BPF string:", "|",	  "... not reaching",
		"mismatch of LBR"
	};
	struct span text = span_trim(line);
	struct span word = first_word(text);

	if (!span_len(text))
		return true;
	for (size_t i = 0; i < sizeof(starts) / sizeof(*starts); i++) {
		if (span_begins(text, starts[i]))
			return true;
	}
	return is_register(word) || is_dump(word) || script_no_name(text) ||
	       is_source(line, text) || is_listing(line, text) || script_has_stack(text);
}

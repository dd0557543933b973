// SPDX-License-Identifier: MIT
#include "divide.h"
#include "text.h"

void kscope_text_add(struct text *text, const char *what)
{
	while (*what && text->room > 1) {
		*text->at++ = *what++;
		text->room--;
	}
	if (text->room)
		*text->at = '\0';
}

void kscope_text_number(struct text *text, uint64_t number)
{
	char digits[21];
	unsigned at = sizeof(digits) - 1;

	digits[at] = '\0';
	do {
		uint64_t rest = kscope_quotient(number, 10);

		digits[--at] = (char)('0' + (number - rest * 10));
		number = rest;
	} while (number);
	kscope_text_add(text, digits + at);
}

bool kscope_text_same(const char *a, const char *b)
{
	while (*a && *a == *b)
		a++, b++;
	return *a == *b;
}

bool kscope_text_parse(const char *text, uint64_t *number)
{
	uint64_t value = 0;

	if (!*text)
		return false;
	for (; *text; text++) {
		unsigned digit = (unsigned)*text - '0';

		if (digit > 9 || value > kscope_quotient(UINT64_MAX - digit, 10))
			return false;
		value = value * 10 + digit;
	}
	*number = value;
	return true;
}

static bool is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

int kscope_text_split(char *line, char **words, int max)
{
	int nr = 0;

	for (;;) {
		bool quoted;

		while (is_space(*line))
			line++;
		if (!*line)
			return nr;
		if (nr == max)
			return -1;
		quoted = *line == '\'';
		words[nr++] = line += quoted;
		while (*line && (quoted ? *line != '\'' : !is_space(*line)))
			line++;
		if (quoted && !*line)
			return -1;
		if (*line)
			*line++ = '\0';
	}
}

/* SPDX-License-Identifier: MIT */
/* text: words and numbers of commands and answers. */
#ifndef KSCOPE_TEXT_H
#define KSCOPE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A text that is being written, always with its NUL. What does not fit is left out. */
struct text {
	char *at;
	size_t room;
};

static inline struct text text_into(char *to, size_t size)
{
	if (size)
		*to = '\0';
	return (struct text){ to, size };
}

void kscope_text_add(struct text *text, const char *what);
void kscope_text_number(struct text *text, uint64_t number);
bool kscope_text_same(const char *a, const char *b);
/* A decimal number, and nothing else. */
bool kscope_text_parse(const char *text, uint64_t *number);
/*
 * Splits a line into words, in place; '...' is one word. Returns their number, or -1 if there are more than `max` or a quote has
 * no end.
 */
int kscope_text_split(char *line, char **words, int max);

#endif

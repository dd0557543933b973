// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/text.h"

int log_level = 1;

static void say(int level, const char *kind, const char *fmt, va_list ap)
{
	if (level > log_level)
		return;
	/* One write per line, so that lines of several processes do not mix. */
	struct buf plain = { 0 };
	char line[1200];
	int at = snprintf(line, sizeof(line), "kscope: %s", kind);

	vsnprintf(line + at, sizeof(line) - (size_t)at, fmt, ap);
	fflush(stdout); /* both may be one terminal: a message must not split a line */
	/* Names in messages come from the input and may contain terminal escapes or line breaks. */
	fprintf(stderr, "%s\n", text_plain(&plain, line));
	buf_release(&plain);
}

#define LOG(name, level, kind)             \
	void name(const char *fmt, ...)    \
	{                                  \
		va_list ap;                \
                                           \
		va_start(ap, fmt);         \
		say(level, kind, fmt, ap); \
		va_end(ap);                \
	}

LOG(log_error, 0, "error: ")
LOG(log_warn, 1, "warning: ")
LOG(log_say, 1, "")
LOG(log_note, 2, "")

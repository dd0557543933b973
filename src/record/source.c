// SPDX-License-Identifier: GPL-2.0-or-later
#include "record/source.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"

uint64_t source_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * SECOND + (uint64_t)ts.tv_nsec;
}

void source_earlier(uint64_t *time, uint64_t other)
{
	if (other < *time)
		*time = other;
}

static void clear_status(struct record_source *s)
{
	if (s->shown)
		fputs("\r\033[K", stderr);
	s->shown = false;
}

#define SAY(name, log)                              \
	void name(struct record_source *s, const char *fmt, ...) \
	{                                           \
		char text[600];                     \
		va_list ap;                         \
                                                    \
		va_start(ap, fmt);                  \
		vsnprintf(text, sizeof(text), fmt, ap); \
		va_end(ap);                         \
		clear_status(s);                    \
		log("%s", text);                    \
	}

SAY(source_say, log_say)
SAY(source_warn, log_warn)

bool raw_write(struct raw *raw, const void *data, size_t len)
{
	int error;

	if (raw->err.code)
		return false;
	error = fd_write(raw->fd, data, len);
	if (error) {
		off_t end = lseek(raw->fd, 0, SEEK_END); /* a part of it may have fit */

		raw->bytes = end > 0 ? (uint64_t)end : raw->bytes;
		return err_set(&raw->err, ERR_OUTPUT, "%s: cannot write: %s", raw->path,
			       strerror(error)) == 0;
	}
	raw->bytes += len;
	return true;
}

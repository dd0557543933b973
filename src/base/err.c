// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/err.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

int err_set(struct err *err, enum err_code code, const char *fmt, ...)
{
	va_list ap;

	if (err->code != ERR_NONE)
		return -1;
	err->code = code;
	va_start(ap, fmt);
	vsnprintf(err->msg, sizeof(err->msg), fmt, ap);
	va_end(ap);
	return -1;
}

int err_at(struct err *err, enum err_code code, const char *file, uint64_t offset, const char *fmt,
	   ...)
{
	char text[600];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return err_set(err, code, "%s: byte %" PRIu64 ": %s", file, offset, text);
}

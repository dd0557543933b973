// SPDX-License-Identifier: GPL-2.0-or-later
#include <stdarg.h>

#include "kernel.h"

static void print_number(uint64_t value, unsigned base)
{
	if (value >= base)
		print_number(value / base, base);
	put_char("0123456789abcdef"[value % base]);
}

static void print_text(const char *text)
{
	while (*text)
		put_char(*text++);
}

void print(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	for (; *format; format++) {
		if (*format != '%') {
			put_char(*format);
			continue;
		}
		switch (*++format) {
		case 's': print_text(va_arg(args, const char *)); break;
		case 'u': print_number(va_arg(args, unsigned), 10); break;
		case 'x': print_number(va_arg(args, uint64_t), 16); break;
		}
	}
	va_end(args);
}

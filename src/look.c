// SPDX-License-Identifier: GPL-2.0-or-later
#include "look.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/text.h"

#define BAR 50

/* As no-color.org defines it: set and not empty. */
static bool no_color(void)
{
	const char *set = getenv("NO_COLOR");

	return set && *set;
}

void look_init(struct look *look, struct buf *text, const struct strtab *strings)
{
	*look = (struct look){ .text = text,
			       .strings = strings,
			       .colors = isatty(STDOUT_FILENO) && !no_color() };
}

void look_release(struct look *look)
{
	buf_release(&look->scratch[0]);
	buf_release(&look->scratch[1]);
}

const char *look_name(struct look *look, unsigned which, uint32_t handle)
{
	return text_plain(&look->scratch[which], str_text(look->strings, handle));
}

double look_share(uint64_t part, uint64_t all)
{
	return all ? 100.0 * (double)part / (double)all : 0;
}

void look_percent(struct look *look, double percent)
{
	const char *color = percent >= 5 ? "\033[31m" : percent >= 0.5 ? "\033[32m" : "";

	buf_addf(look->text, "%s%7.2f%%%s", look->colors ? color : "", percent,
		 look->colors ? "\033[0m" : "");
}

void look_function(struct look *look, uint32_t name, uint32_t binary)
{
	if (binary)
		buf_addf(look->text, "%-40s %s\n", look_name(look, 0, name),
			 look_name(look, 1, binary));
	else
		buf_addf(look->text, "%s\n", look_name(look, 0, name));
}

/* Right-aligned, with three digits and a unit, each of which is 1000 times the one before. */
static void print_short(struct buf *text, int width, uint64_t value, const char *const *units)
{
	double scaled = (double)value;
	char number[32];

	while (scaled >= 999.5 && units[1]) {
		scaled /= 1000;
		units++;
	}
	snprintf(number, sizeof(number), "%.*f%s",
		 scaled >= 99.95 || scaled == (double)value ? 0
		 : scaled >= 9.995			    ? 1
							    : 2,
		 scaled, *units);
	buf_addf(text, "%*s", width, number);
}

void look_time(struct buf *text, int width, uint64_t ns)
{
	static const char *const units[] = { " ns", " us", " ms", " s", NULL };

	print_short(text, width, ns, units);
}

void look_number(struct buf *text, int width, uint64_t number)
{
	static const char *const units[] = { "", " k", " M", " G", " T", " P", " E", NULL };

	print_short(text, width, number, units);
}

void look_bar(struct buf *text, double share)
{
	for (int i = 0; i < (int)(share * BAR + 0.5); i++)
		buf_addc(text, '#');
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * statstool < tests: what src/base/stats says. Each line is a test and its numbers: "student T DF", "fisher HITS HITS MISSES
 * MISSES", "binomial HITS HITS SHARE" or "holm P...". For tests/unit/stats.py.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/stats.h"

#define MOST 1000

static size_t read_numbers(const char *at, double *numbers)
{
	size_t nr = 0;

	for (char *end; nr < MOST; at = end, nr++) {
		numbers[nr] = strtod(at, &end);
		if (end == at)
			break;
	}
	return nr;
}

static void print_holm(const double *numbers, size_t nr)
{
	struct stats_test tests[MOST], *all[MOST];

	for (size_t i = 0; i < nr; i++) {
		tests[i].p = numbers[i];
		all[i] = &tests[i];
	}
	stats_holm(all, nr);
	for (size_t i = 0; i < nr; i++)
		printf("%s%.17g", i ? " " : "", tests[i].adjusted);
	putchar('\n');
}

int main(void)
{
	char line[40000];

	while (fgets(line, sizeof(line), stdin)) {
		double numbers[MOST] = { 0 };
		size_t len = strcspn(line, " \n"), nr = read_numbers(line + len, numbers);

		line[len] = '\0';
		if (!strcmp(line, "student"))
			printf("%.17g\n", stats_student(numbers[0], numbers[1]));
		else if (!strcmp(line, "fisher"))
			printf("%.17g\n", stats_fisher(numbers, numbers + 2));
		else if (!strcmp(line, "binomial"))
			printf("%.17g\n", stats_binomial(numbers, numbers[2]));
		else if (!strcmp(line, "holm"))
			print_holm(numbers, nr);
		else
			return 2;
	}
	return 0;
}

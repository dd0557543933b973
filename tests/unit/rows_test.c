// SPDX-License-Identifier: GPL-2.0-or-later
/* rows_test: rows come back by group, in order, whether they are in memory or in the temporary file. */
#include <stdlib.h>
#include <string.h>

#include "base/rows.h"
#include "test.h"

struct row {
	uint64_t number;
	uint32_t group, odd;
};

#define GROUPS 5

/* Group g gets every number whose remainder is in its share: groups differ in size, one is empty. */
static uint32_t group_of(uint64_t number)
{
	return number % 7 < 4 ? 0 : number % 7 == 4 ? 1 : number % 1000 < 3 ? 4 : 3;
}

static bool in_order(struct rows *rows, uint32_t group, uint64_t nr)
{
	struct rows_reader reader;
	const struct row *row;
	uint64_t next = 0;

	rows_begin(&reader, rows, group);
	while ((row = rows_next(&reader))) {
		while (next < nr && group_of(next) != group)
			next++;
		if (row->number != next++ || row->group != group || row->odd != 0xdeadbeef)
			break;
	}
	while (next < nr && group_of(next) != group)
		next++;
	rows_end(&reader);
	return !row && next == nr;
}

static void test_many(const char *name, uint64_t nr, bool in_file)
{
	struct rows rows;
	struct err err = { 0 };
	bool good = true;

	rows_init(&rows, sizeof(struct row));
	for (uint64_t i = 0; i < nr; i++)
		rows_add(&rows, group_of(i),
			 &(struct row){ .number = i, .group = group_of(i), .odd = 0xdeadbeef });
	for (int twice = 0; twice < 2; twice++) {
		for (uint32_t group = 0; group < GROUPS; group++)
			good = good && in_order(&rows, group, nr);
	}
	check(name, good && rows_check(&rows, &err) == 0 && (rows.fd >= 0) == in_file &&
			    rows.kept < ROWS_KEEP);
	rows_release(&rows);
}

static void test_no_room(void)
{
	struct rows rows;
	struct rows_reader reader;
	struct err err = { 0 };

	setenv("TMPDIR", "/nonexistent", 1);
	rows_init(&rows, sizeof(struct row));
	for (uint64_t i = 0; i <= ROWS_KEEP / sizeof(struct row); i++)
		rows_add(&rows, 0, &(struct row){ .number = i });
	rows_begin(&reader, &rows, 0);
	check("rows: without a temporary file, there is an error",
	      rows_check(&rows, &err) < 0 && err.code == ERR_OUTPUT &&
		      strstr(err.msg, "/nonexistent"));
	check("rows: and no rows", !rows_next(&reader));
	rows_end(&reader);
	rows_release(&rows);
}

int main(void)
{
	test_many("rows: none", 0, false);
	test_many("rows: in memory", 1000, false);
	test_many("rows: in a file, and in memory", 5 * ROWS_KEEP / sizeof(struct row) + 12345,
		  true);
	test_no_room();
	return test_result();
}

// SPDX-License-Identifier: GPL-2.0-or-later
/* lengthtool FILE: reads ranges "START END" of its code, in hex, and prints how many instructions begin in each. */
#include <inttypes.h>
#include <stdio.h>

#include "sym/sym.h"

int main(int argc, char **argv)
{
	struct err err = { 0 };
	struct symfile *file = argc == 2 ? symfile_open(argv[1], NULL, &err) : NULL;
	uint64_t start, end;

	if (!file)
		return 2;
	while (scanf("%" SCNx64 " %" SCNx64, &start, &end) == 2)
		printf("%" PRIu64 "\n", symfile_instructions(file, start, end));
	symfile_close(file);
	return 0;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/* formats: what kscope reads and writes. */
#include <stdio.h>

#include "cmd.h"

static void print_json(void)
{
	printf("{\"readers\":[");
	for (size_t i = 0; readers[i]; i++)
		printf("%s{\"name\":\"%s\",\"about\":\"%s\"}", i ? "," : "", readers[i]->name,
		       readers[i]->about);
	printf("],\"writers\":[");
	for (size_t i = 0; writers[i]; i++)
		printf("%s{\"name\":\"%s\",\"about\":\"%s\",\"extension\":\"%s\"}", i ? "," : "",
		       writers[i]->name, writers[i]->about,
		       writers[i]->extension ? writers[i]->extension : "");
	printf("]}\n");
}

static int run(struct args *args)
{
	if (args->json) {
		print_json();
		return 0;
	}
	printf("Reads (-f):\n");
	for (size_t i = 0; readers[i]; i++)
		printf("  %-12s %s\n", readers[i]->name, readers[i]->about);
	printf("\nWrites (-t, or by the extension):\n");
	for (size_t i = 0; writers[i]; i++)
		printf("  %-12s %-8s %s\n", writers[i]->name,
		       writers[i]->extension ? writers[i]->extension : "", writers[i]->about);
	printf("\nInput packed with zstd, gzip, xz, lzma or lz4 (of kernels) is unpacked on the "
	       "way.\n");
	return 0;
}

const struct command cmd_formats = {
	.name = "formats",
	.verb = VERB_FORMATS,
	.usage = "formats [--json]",
	.about = "List the formats that kscope reads and writes.",
	.examples = "  kscope formats\n",
	.run = run,
};

// SPDX-License-Identifier: GPL-2.0-or-later
/* formats: lists what kscope reads and writes. */
#include <stdio.h>

#include "base/buf.h"
#include "base/json_out.h"
#include "cmd.h"

static void json_format(struct json_out *to, const char *name, const char *about)
{
	json_out_object(to, NULL);
	json_out_text(to, "name", name);
	json_out_text(to, "about", about);
}

static void print_json(void)
{
	struct buf text = { 0 };
	struct json_out to = { .to = &text };

	json_out_object(&to, NULL);
	json_out_array(&to, "readers");
	for (size_t i = 0; readers[i]; i++) {
		json_format(&to, readers[i]->name, readers[i]->about);
		json_out_end(&to);
	}
	json_out_end(&to);
	json_out_array(&to, "writers");
	for (size_t i = 0; writers[i]; i++) {
		json_format(&to, writers[i]->name, writers[i]->about);
		json_out_text(&to, "extension", writers[i]->extension ? writers[i]->extension : "");
		json_out_end(&to);
	}
	json_out_end(&to);
	json_out_end(&to);
	fwrite(text.data, 1, text.len, stdout);
	buf_release(&text);
}

struct formats_options {
	bool json;
};

static const struct option_table formats_table = {
	"Output",
	(const struct option_row[]){ OPTION_JSON(struct formats_options), { 0 } },
};

static int check(const struct args *args, struct err *err)
{
	return args->nr_inputs ? err_set(err, ERR_USAGE,
					 "formats takes no input file; use kscope info FILE")
			       : 0;
}

static int run(struct args *args)
{
	const struct formats_options *asked = args->state;

	if (asked->json) {
		print_json();
		return 0;
	}
	printf("Input formats (-f):\n");
	for (size_t i = 0; readers[i]; i++)
		printf("  %-12s %s\n", readers[i]->name, readers[i]->about);
	printf("\nOutput formats (-t, or by the file's extension):\n");
	for (size_t i = 0; writers[i]; i++)
		printf("  %-12s %-8s %s\n", writers[i]->name,
		       writers[i]->extension ? writers[i]->extension : "", writers[i]->about);
	printf("\nkscope compresses an output whose name ends in .gz or .zst, except perfdata, "
	       "and\n"
	       "decompresses input: zstd, gzip, xz, lzma and lz4 (the legacy format of "
	       "lz4 -l).\n");
	return 0;
}

const struct command cmd_formats = {
	.name = "formats",
	.usage = "formats [--json]",
	.about = "List the formats that kscope reads and writes.",
	.examples = "  kscope formats\n",
	.options = OPTION_USES({ &formats_table, 0 }),
	.state_size = sizeof(struct formats_options),
	.words = (const char *const[]){ NULL },
	.check = check,
	.run = run,
};

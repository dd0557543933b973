// SPDX-License-Identifier: GPL-2.0-or-later
/* convert: converts any format that kscope reads to any format that it writes. */
#include "cmd.h"

struct convert_options {
	const char *buildid_cache;
	bool no_buildid_cache;
};

/* clang-format off: tables are read by the row. */
static const struct option_table convert_table = {
	"Output",
	(const struct option_row[]){
		OPTION_OUTPUT("write this file; - is stdout (may be repeated)"),
		OPTION_TYPE(),
		{ "to", .same_as = "type" },
		{ "buildid-cache", 0, "[=DIR]",
		  "add the binaries to perf's build-id cache (~/.debug)",
		  OPTION_TEXT(struct convert_options, buildid_cache),
		  .completion = COMPLETE_FOLDER },
		{ "no-buildid-cache", 0, NULL,
		  "do not change perf's cache, even if perf needs it for the kernel's symbols",
		  OPTION_FLAG(struct convert_options, no_buildid_cache) },
		{ 0 },
	},
};
/* clang-format on */

static int run(struct args *args)
{
	const struct convert_options *asked = args->state;
	struct job job;

	args_job(args, &job);
	job.buildid_cache = asked->buildid_cache;
	job.cache_rule = asked->no_buildid_cache ? CACHE_HINT : CACHE_KERNEL;
	return args_convert(args, &job, NULL);
}

const struct command cmd_convert = {
	.name = "convert",
	.usage = "convert INPUT... -o FILE [-o FILE]... [OPTIONS]",
	.about = "Convert profiles to another format. kscope detects input formats from the "
		 "content, selects\nthe output format by the extension, and merges several inputs "
		 "by time.",
	.examples = "  kscope convert samples.json --build-dir build -o perf.data\n"
		    "  kscope convert capture.bin --elf 1=a.elf --elf 2=b.elf -o stacks.folded\n"
		    "  kscope convert perf.data --comm echo.elf --time 1.5,2 -t folded -o -\n"
		    "  kscope convert boot.kscope -o perf.data -o boot.svg -o boot.folded\n",
	.options = OPTION_USES({ &convert_table, 0 }),
	.state_size = sizeof(struct convert_options),
	.reads = true,
	.writers = writers,
	.run = run,
};

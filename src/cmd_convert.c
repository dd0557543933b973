// SPDX-License-Identifier: GPL-2.0-or-later
/* convert: any format that kscope reads into any that it writes. */
#include <stdio.h>

#include "base/log.h"
#include "cmd.h"

static int run(struct args *args)
{
	struct err err = { 0 };
	const struct writer_ops *ops = NULL;
	struct job job;

	if (!args->output)
		err_set(&err, ERR_USAGE, "where to? Name a file with -o; - is stdout");
	else
		ops = writer_choose(args->writer, args->output, &err);
	if (!ops) {
		log_error("%s", err.msg);
		return err.code;
	}
	args_job(args, &job);
	return convert_file(&job, ops, args->output);
}

const struct command cmd_convert = {
	.name = "convert",
	.verb = VERB_CONVERT,
	.usage = "convert IN... -o OUT [-f READER] [-t WRITER] [options]",
	.about = "Convert profiles. Formats are told by content and extension; several inputs are\n"
		 "merged by time.",
	.examples = "  kscope convert samples.json --build-dir build -o perf.data\n"
		    "  kscope convert capture.bin --elf 1=a.elf --elf 2=b.elf -o stacks.folded\n"
		    "  kscope convert perf.data --comm echo.elf --time 1.5,2 -t folded -o -\n",
	.run = run,
};

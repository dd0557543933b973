// SPDX-License-Identifier: GPL-2.0-or-later
/* convert: any format that kscope reads into any that it writes. */
#include <stdlib.h>

#include "base/log.h"
#include "cmd.h"

static int run(struct args *args)
{
	struct err err = { 0 };
	struct output *outputs = NULL;
	struct job job;
	int code;

	if (!args->nr_outputs)
		err_set(&err, ERR_USAGE, "no output file: use -o FILE; - is stdout");
	else
		outputs = args_outputs(args, &err);
	if (!outputs) {
		log_error("%s", err.msg);
		return err.code;
	}
	args_job(args, &job);
	code = convert_files(&job, outputs, args->nr_outputs);
	free(outputs);
	return code;
}

const struct command cmd_convert = {
	.name = "convert",
	.verb = VERB_CONVERT,
	.usage = "convert IN... -o OUT [-o OUT]... [options]",
	.about = "Convert profiles to another format. kscope detects input formats from the "
		 "content, selects\nthe output format by the extension, and merges several inputs "
		 "by time.",
	.examples = "  kscope convert samples.json --build-dir build -o perf.data\n"
		    "  kscope convert capture.bin --elf 1=a.elf --elf 2=b.elf -o stacks.folded\n"
		    "  kscope convert perf.data --comm echo.elf --time 1.5,2 -t folded -o -\n"
		    "  kscope convert boot.kscope -o perf.data -o boot.svg -o boot.folded\n",
	.run = run,
};

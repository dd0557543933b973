// SPDX-License-Identifier: GPL-2.0-or-later
/* trace: draws the calls of a trace on a time axis, for Perfetto and other viewers of timelines. */
#include <stdlib.h>

#include "base/log.h"
#include "cmd.h"

static const struct option_table trace_table = {
	"Output",
	(const struct option_row[]){
		OPTION_OUTPUT("write this file; - is stdout (may be repeated)"),
		OPTION_TYPE(),
		{ 0 },
	},
};

static void say_next(const struct output *output)
{
	const char *next = output->ops->next;
	char *first, *last;

	if (!output->parts) {
		log_say("wrote %s; next: %s", output->path, next);
		return;
	}
	first = output_part(output->path, 1);
	last = output_part(output->path, output->parts);
	log_say("wrote %u part%s, %s%s%s; next: %s", output->parts, output->parts == 1 ? "" : "s",
		first, output->parts == 1 ? "" : " to ", output->parts == 1 ? "" : last, next);
	free(first);
	free(last);
}

static int run(struct args *args)
{
	struct job job;

	args_job(args, &job);
	return args_convert(args, &job, say_next);
}

const struct command cmd_trace = {
	.name = "trace",
	.usage = "trace INPUT... [-o FILE]... [OPTIONS]",
	.about = "Draw calls on a time axis, for Perfetto. Each task has a track on which its "
		 "calls are nested\n"
		 "slices, with their instructions and i-cache lines; each CPU has one of the tasks "
		 "that it runs.",
	.examples = "  kscope trace boot.kscope -o boot.pftrace\n"
		    "  kscope trace boot.kscope --start vfs_read --end vfs_read -o reads.pftrace\n"
		    "  kscope trace boot.kscope --rel 1.5,0.2 --axis insns -o boot.fxt.gz\n"
		    "  kscope trace boot.kscope --split 0.1 -o boot.pftrace.gz\n"
		    "  kscope trace boot.kscope -t uftrace -o boot.uftrace\n",
	.options = OPTION_USES({ &trace_table, 0 }),
	.reads = true,
	.writers = writers,
	.takes = EVENT_BIT(EVENT_SLICE) | EVENT_BIT(EVENT_STRETCH) | EVENT_BIT(EVENT_COUNTER) |
		 EVENT_BIT(EVENT_LOST),
	.output = "trace.pftrace",
	.run = run,
};

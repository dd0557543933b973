// SPDX-License-Identifier: GPL-2.0-or-later
/* kprof2perf: drop-in for the Akaros converter, with its exact flags. */
#include <getopt.h>
#include <stdio.h>

#include "base/log.h"
#include "cmd.h"

static const char usage[] =
	"Usage: kprof2perf -k KERNEL_ELF -i KPDATA -o PERF_DATA\n"
	"\n"
	"Options:\n"
	"  -k FILE  the kernel's ELF\n"
	"  -i FILE  what was copied from /prof/kpdata; - is stdin\n"
	"  -o FILE  perf.data file to write [default: perf.data]\n"
	"  -h       print help\n"
	"\n"
	"Example:\n"
	"  kprof2perf -k obj/kern/akaros-kernel-64b -i kpdata.data -o perf.data\n"
	"  perf report --vmlinux obj/kern/akaros-kernel-64b --symfs kern/kfs -g -i perf.data\n"
	"\n"
	"This is kscope under another name; kscope convert --help tells what else it does.\n";

int cmd_kprof2perf(int argc, char **argv)
{
	const char *input = NULL;
	struct args args = { .output = "perf.data", .inputs = &input, .nr_inputs = 1 };
	struct job job;
	int opt;

	while ((opt = getopt(argc, argv, "k:i:o:h")) != -1) {
		switch (opt) {
		case 'k':
			args.options.kernel = optarg;
			break;
		case 'i':
			input = optarg;
			break;
		case 'o':
			args.output = optarg;
			break;
		case 'h':
			fputs(usage, stdout);
			return 0;
		default:
			fputs(usage, stderr);
			return ERR_USAGE;
		}
	}
	if (optind < argc || !input || !args.options.kernel) {
		log_error("kprof2perf needs -k and -i, and nothing but flags");
		fputs(usage, stderr);
		return ERR_USAGE;
	}
	args_job(&args, &job);
	return convert_file(&job, writer_by_name("perfdata"), args.output);
}

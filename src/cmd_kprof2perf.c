// SPDX-License-Identifier: GPL-2.0-or-later
/* kprof2perf: drop-in for the Akaros converter, with its exact flags. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "cmd.h"

static const char usage[] =
	"Usage: kprof2perf [-k KERNEL_ELF] [-i KPDATA] [-o PERF_DATA]\n"
	"\n"
	"Options:\n"
	"  -i FILE   copy of /prof/kpdata to read [default: stdin]\n"
	"  -o FILE   perf.data file to write [default: stdout]\n"
	"  -k FILE   ELF file of the kernel\n"
	"  -s SIZE   accepted for compatibility, without effect\n"
	"  -D LEVEL  print more messages\n"
	"  -h        print this help\n"
	"\n"
	"Example; DIR contains the files of the profiled machine:\n"
	"  kprof2perf -k obj/kern/akaros-kernel-64b -i kpdata.data -o perf.data\n"
	"  perf report --vmlinux $PWD/obj/kern/akaros-kernel-64b --symfs DIR -g\n"
	"\n"
	"kprof2perf is kscope under another name; see kscope convert --help for more formats and "
	"options.\n";

/* Its data may begin damaged. */
static const char *const formats[] = { "kpdata", "kpoprofile", "kphistogram", NULL };

static int wrong(const char *message)
{
	if (message)
		log_error("%s", message);
	fputs(usage, stderr);
	return ERR_USAGE;
}

int cmd_kprof2perf(int argc, char **argv)
{
	static const struct option help[] = { { "help", no_argument, NULL, 'h' }, { 0 } };
	const char *input = "-", *output = "-";
	struct args args = { .inputs = &input, .nr_inputs = 1 };
	struct err err = { 0 };
	struct job job;
	int opt;

	while ((opt = getopt_long(argc, argv, "k:i:o:s:D:h", help, NULL)) != -1) {
		switch (opt) {
		case 'k': args.options.kernel = optarg; break;
		case 'i': input = optarg; break;
		case 'o': output = optarg; break;
		case 's': break;
		case 'D': log_level = 1 + atoi(optarg); break;
		case 'h': fputs(usage, stdout); return 0;
		default: return wrong(NULL);
		}
	}
	if (optind < argc)
		return wrong("kprof2perf takes only options");
	if (args_check(&args.options, &err) < 0) {
		log_error("%s", err.msg);
		return err.code;
	}
	args_job(&args, &job);
	job.expects = formats;
	return convert_file(&job, writer_by_name("perfdata"), output);
}

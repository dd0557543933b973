// SPDX-License-Identifier: GPL-2.0-or-later
/* toperf: drop-in for the seL4 profiler's converter, with its exact flags. */
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "cmd.h"

static const char usage[] =
	"Usage: toperf [OPTIONS] --samples-path <SAMPLES_PATH> --build-dir <BUILD_DIR>\n"
	"\n"
	"Options:\n"
	"  -o, --output <OUTPUT>              perf.data file to write [default: perf.data]\n"
	"  -s, --samples-path <SAMPLES_PATH>  samples of the seL4 profiler: JSON, or a capture of "
	"its\n"
	"                                     TCP stream or serial output\n"
	"  -b, --build-dir <BUILD_DIR>        directory of the ELF files that the samples name\n"
	"  -p, --print-summary                print the samples to stdout\n"
	"  -h, --help                         Print help\n"
	"  -V, --version                      Print version\n"
	"\n"
	"Example:\n"
	"  toperf -s samples.json -b build -o perf.data && perf report\n"
	"\n"
	"toperf is kscope under another name; see kscope convert --help for more formats and "
	"options.\n";

/* The data may begin damaged. */
static const char *const formats[] = { "sel4-json", "sel4-pb", "sel4-serial", NULL };

/* Prints the samples of the file that was just written, as perf will read them. */
static int print_summary(const char *data)
{
	struct args args = { .inputs = &data, .nr_inputs = 1, .reader = "perfdata" };
	struct job job;

	args_job(&args, &job);
	return convert_file(&job, writer_by_name("dump"), "-");
}

/* The original also accepts -s=FILE. */
static const char *value_of(const char *arg)
{
	return arg + (arg[0] == '=');
}

int cmd_toperf(int argc, char **argv)
{
	static const struct option longs[] = {
		{ "output", required_argument, NULL, 'o' },
		{ "samples-path", required_argument, NULL, 's' },
		{ "samples_path", required_argument, NULL, 's' }, /* as in its README */
		{ "build-dir", required_argument, NULL, 'b' },
		{ "build_dir", required_argument, NULL, 'b' },
		{ "print-summary", no_argument, NULL, 'p' },
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'V' },
		{ 0 },
	};
	const char *samples = NULL, *output = "perf.data";
	struct args args = { .inputs = &samples, .nr_inputs = 1 };
	struct err err = { 0 };
	bool summary = false;
	struct job job;
	int opt, code;

	while ((opt = getopt_long(argc, argv, "o:s:b:phV", longs, NULL)) != -1) {
		switch (opt) {
		case 'o': output = value_of(optarg); break;
		case 's': samples = value_of(optarg); break;
		case 'b': args.options.build_dir = value_of(optarg); break;
		case 'p': summary = true; break;
		case 'h': fputs(usage, stdout); return 0;
		case 'V': printf("toperf (kscope %s)\n", KSCOPE_VERSION); return 0;
		default: fputs(usage, stderr); return ERR_USAGE;
		}
	}
	if (optind < argc || !samples || !args.options.build_dir) {
		log_error("toperf expects --samples-path and --build-dir, and no other arguments");
		fputs(usage, stderr);
		return ERR_USAGE;
	}
	if (summary && !strcmp(output, "-")) {
		log_error("--print-summary and --output - both write to stdout");
		return ERR_USAGE;
	}
	if (args_check(&args.options, &err) < 0) {
		log_error("%s", err.msg);
		return err.code;
	}
	args_job(&args, &job);
	job.expects = formats;
	code = convert_file(&job, writer_by_name("perfdata"), output);
	if (summary && code <= ERR_PARTIAL)
		print_summary(output);
	return code;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * netconn: drop-in for the seL4 profiler's host tool, with its options and commands. What it receives is converted at
 * the end, so that samples.json is complete or absent.
 */
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"
#include "cmd.h"
#include "read/sel4_pb.h"
#include "record/netconn.h"

static const char json_name[] = "sel4-json";

static const char usage[] =
	"Usage: netconn --ip IP [--port PORT] [--output FILE] [--build-dir DIR]\n"
	"\n"
	"Options:\n"
	"  --ip IP               address or name of the board\n"
	"  --port PORT           port of the seL4 profiler [default: 1236]\n"
	"  --output FILE         file to write [default: samples.json]; the extension may select\n"
	"                        another format, such as perf.data or flame.svg\n"
	"  -b, --build-dir DIR   directory of the ELF files and of sample_header.json\n"
	"  -h, --help            print this help\n"
	"  -V, --version         print the version\n"
	"\n"
	"Commands, in upper or lower case, on standard input:\n"
	"  CONNECT, START, STOP, EXIT or q; the end of the input is EXIT\n"
	"\n"
	"Example:\n"
	"  (echo connect; echo start; sleep 10) | netconn --ip 172.16.1.5 && toperf -s "
	"samples.json "
	"-b build\n"
	"\n"
	"netconn is kscope under another name; see also kscope record tcp --help.\n";

/* For samples.json, nobody needs binaries: do not warn that there are none. Returns the exit code. */
static int convert_quietly(struct job *job, const struct output *output)
{
	int level = log_level, code;

	log_level = 0;
	code = convert_file(job, output->ops, output->path);
	log_level = level;
	if (code == ERR_PARTIAL && !job->damaged)
		return 0;
	if (code == ERR_PARTIAL)
		log_warn("%" PRIu64 " bytes of the stream are damaged or incomplete, in %" PRIu64
			 " place%s",
			 job->damaged_bytes, job->damaged, job->damaged == 1 ? "" : "s");
	return code;
}

static int keep_raw(struct netconn *n, const struct output *output, int code)
{
	n->files.raw_stays = true;
	log_say("kept the received data: %s; next: kscope convert %s -f sel4-pb -t %s -o %s",
		n->files.raw, n->files.raw, output->ops->name, output->path);
	return code;
}

/* Returns the exit code. */
static int write_output(struct netconn *n, const struct args *args, const struct output *output)
{
	const char *input = n->files.raw;
	struct buf plain = { 0 };
	struct job job;
	int code;

	args_job(args, &job);
	job.inputs = &input;
	job.nr_inputs = 1;
	job.reader = "sel4-pb";
	if (args->options.build_dir || strcmp(output->ops->name, json_name) != 0)
		code = convert_file(&job, output->ops, output->path);
	else
		code = convert_quietly(&job, output);
	if (code > ERR_PARTIAL)
		return keep_raw(n, output, code);
	printf("wrote %s: %" PRIu64 " samples\n", text_plain(&plain, output->path),
	       job.count.samples);
	buf_release(&plain);
	return n->breaks ? ERR_PARTIAL : code;
}

static int finish(struct netconn *n, const struct args *args, const struct output *output)
{
	if (n->bytes)
		return write_output(n, args, output);
	if (!n->failed)
		return 0;
	log_error("received no data; did not write %s", output->path);
	return ERR_INPUT;
}

/* Rejects what cannot succeed, before the session. */
static int check(const struct args *args, struct output *output, struct err *err)
{
	struct err unknown = { 0 };

	output->ops = writer_choose(NULL, output->path, &unknown);
	if (!output->ops)
		output->ops = writer_by_name(json_name);
	if (!strcmp(output->path, "-"))
		return err_set(err, ERR_USAGE,
			       "netconn prints messages to stdout: use --output FILE");
	return args_check(&args->options, err) < 0 ? -1 : output_try(output, err);
}

static int run(const char *ip, const char *port, const struct args *args, struct output *output)
{
	bool bare = strchr(ip, ':') && *ip != '['; /* IPv6 */
	char *address = bare ? xasprintf("[%s]:%s", ip, port) : xasprintf("%s:%s", ip, port);
	struct netconn n = { .address = address, .output = output->path, .count = sel4_pb_count };
	struct err err = { 0 };
	int code;

	signal(SIGPIPE, SIG_IGN); /* the samples count, even if nobody reads the messages */
	if (check(args, output, &err) == 0 && netconn_run(&n, &err) == 0) {
		code = finish(&n, args, output);
	} else {
		log_error("%s", err.msg);
		code = n.bytes ? keep_raw(&n, output, err.code) : (int)err.code;
	}
	files_release(&n.files);
	free(address);
	return code;
}

static int wrong(const char *message)
{
	if (message)
		log_error("%s", message);
	fputs(usage, stderr);
	return ERR_USAGE;
}

int cmd_netconn(int argc, char **argv)
{
	static const struct option longs[] = {
		{ "ip", required_argument, NULL, 'i' },
		{ "port", required_argument, NULL, 'p' },
		{ "output", required_argument, NULL, 'o' },
		{ "build-dir", required_argument, NULL, 'b' },
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'V' },
		{ 0 },
	};
	const char *ip = NULL, *port = "1236";
	struct output output = { .path = "samples.json" };
	struct args args = { 0 };
	int opt;

	while ((opt = getopt_long(argc, argv, "b:hV", longs, NULL)) != -1) {
		switch (opt) {
		case 'i': ip = optarg; break;
		case 'p': port = optarg; break;
		case 'o': output.path = optarg; break;
		case 'b': args.options.build_dir = optarg; break;
		case 'h': fputs(usage, stdout); return 0;
		case 'V': printf("netconn (kscope %s)\n", KSCOPE_VERSION); return 0;
		default: return wrong(NULL);
		}
	}
	if (optind < argc || !ip)
		return wrong("--ip is required, and netconn takes only options");
	return run(ip, port, &args, &output);
}

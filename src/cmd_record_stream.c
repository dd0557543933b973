// SPDX-License-Identifier: GPL-2.0-or-later
/* record tcp, listen, serial and file: what a target sends over a link. */
#include <stdio.h>
#include <unistd.h>

#include "base/log.h"
#include "cmd_record.h"
#include "record/stream.h"
#include "recording.h"
#include "unwind/unwind.h"

#define RETRY (10 * SECOND)

#define OWNER struct record_options

/* clang-format off: tables are read by the row. */
static const struct option_table talk_table = {
	"Link",
	(const struct option_row[]){
		{ "start-with", 0, "TEXT",
		  "send TEXT first, such as 'go\\n' (default: what the format needs)",
		  OPTION_TEXT(OWNER, start_with) },
		{ "stop-with", 0, "TEXT", "send TEXT at the end (default: what the format needs)",
		  OPTION_TEXT(OWNER, stop_with) },
		{ 0 },
	},
};

static const struct option_table retry_table = {
	"Link",
	(const struct option_row[]){
		{ "retry", 0, "SECONDS", "wait this long for a broken link (default 10)",
		  OPTION_SECONDS(OWNER, retry) },
		{ "no-retry", 0, NULL, "end the recording when the link breaks",
		  OPTION_FLAG(OWNER, no_retry) },
		{ 0 },
	},
};
/* clang-format on */

/*
 * Detection looks at the first bytes; if these are other output, such as a boot log, the conversation may still have
 * recognized the stream.
 */
static const char *format_of(const struct recording *r, const struct stream *stream)
{
	struct err unused = { 0 };
	const struct reader_ops *ops;
	struct in in;

	if (r->args->reader || in_open(&in, r->files.raw, &unused) < 0)
		return r->args->reader;
	ops = reader_by_content(&in);
	in_close(&in);
	return ops ? NULL : talk_format(&stream->talk);
}

static int open_stream(struct recording *r, struct stream *stream, const struct link_ops *ops)
{
	const struct record_options *asked = r->asked;
	const char *address, *format = r->args->reader;

	if (recording_address(r, &address) < 0)
		return -1;
	if (format && !reader_by_name(format))
		return err_set(&r->err, ERR_USAGE, "unknown format '%s': see kscope formats",
			       format);
	if (link_init(&stream->link, ops, address, &r->err) < 0)
		return -1;
	return talk_init(&stream->talk, format, asked->start_with, asked->stop_with, &r->err);
}

/* Returns the exit code, or -1 with r->err set. */
static int record(struct recording *r, struct stream *stream, const struct link_ops *ops)
{
	const struct record_options *asked = r->asked;
	char what[300];

	stream->retry = asked->no_retry ? 0 : asked->retry ? asked->retry : RETRY;
	if (open_stream(r, stream, ops) < 0)
		return -1;
	snprintf(what, sizeof(what), "from %s %s", ops->name, r->target);
	r->what = what;
	r->format = r->args->reader;
	if (recording_outputs(r, true) < 0 || recording_prepare(r) < 0 ||
	    recording_receive(r, &source_stream, stream) < 0)
		return -1;
	r->format = format_of(r, stream);
	return recording_finish(r);
}

static int run_link(struct args *args, const struct link_ops *ops)
{
	struct stream stream = { .link.fd = -1 };
	struct recording r;
	int code;

	recording_init(&r, args);
	code = record(&r, &stream, ops);
	stream_release(&stream);
	return recording_release(&r, code);
}

#define LINK_OPTIONS                                                                      \
	OPTION_USES({ &record_output_table, 0 }, { &talk_table, 0 }, { &retry_table, 0 }, \
		    { &record_duration_table, 0 }, { &record_until_table, 0 }, RECORDING_NAMES)
/* Nobody hears what is written to a file. */
#define FILE_OPTIONS                                                  \
	OPTION_USES({ &record_output_table, 0 }, { &retry_table, 0 }, \
		    { &record_duration_table, 0 }, { &record_until_table, 0 }, RECORDING_NAMES)

static int run_tcp(struct args *args)
{
	return run_link(args, &link_tcp);
}

const struct command record_tcp = {
	.name = "tcp",
	.usage = "tcp HOST:PORT [OPTIONS]",
	.about = "A target that listens on a TCP port.\n"
		 "kscope connects, starts the target if the format requires it, and writes the "
		 "output when the\n"
		 "stream ends. Ctrl-C stops the target.",
	.examples = "  kscope record tcp board:1236 --build-dir build -o perf.data -o flame.svg\n"
		    "  kscope record tcp [fe80::1%eth0]:1236 --duration 10\n",
	.options = LINK_OPTIONS,
	.state_size = sizeof(struct record_options),
	.reads = true,
	.missing = "no address: use kscope record tcp HOST:PORT",
	.run = run_tcp,
};

static int run_listen(struct args *args)
{
	return run_link(args, &link_listen);
}

const struct command record_listen = {
	.name = "listen",
	.usage = "listen [ADDRESS:]PORT [OPTIONS]",
	.about = "A target that connects to a TCP port of this machine.\n"
		 "Like nc -l, but kscope reads the stream as it comes. Without ADDRESS, it "
		 "listens on all addresses.",
	.examples = "  kscope record listen 9999 -k akaros.elf -o perf.data\n"
		    "  kscope record listen 127.0.0.1:9999 --keep kpdata -o flame.svg\n",
	.options = LINK_OPTIONS,
	.state_size = sizeof(struct record_options),
	.reads = true,
	.missing = "no port: use kscope record listen PORT",
	.run = run_listen,
};

static int run_serial(struct args *args)
{
	return run_link(args, &link_serial);
}

const struct command record_serial = {
	.name = "serial",
	.usage = "serial DEVICE[,BAUD] [OPTIONS]",
	.about = "A target at the end of a serial line.\n"
		 "8 data bits, no parity, no flow control, 115200 baud unless given.",
	.examples = "  kscope record serial /dev/ttyUSB0 -f sel4-serial --build-dir build\n"
		    "  kscope record serial /dev/ttyACM0,921600 --until 'DONE' -o flame.svg\n",
	.options = LINK_OPTIONS,
	.state_size = sizeof(struct record_options),
	.reads = true,
	.missing = "no device: use kscope record serial DEVICE[,BAUD]",
	.run = run_serial,
};

static int run_file(struct args *args)
{
	return run_link(args, &link_file);
}

const struct command record_file = {
	.name = "file",
	.usage = "file PATH [OPTIONS]",
	.about = "A file that another program is writing.\n"
		 "Like tail -f: the end of the file is not the end of the recording. - is stdin.",
	.examples = "  kscope record file /srv/board/trace.kscope -o flame.svg\n"
		    "  ssh board cat /dev/kprof | kscope record file - -o perf.data\n",
	.options = FILE_OPTIONS,
	.state_size = sizeof(struct record_options),
	.reads = true,
	.missing = "no file: use kscope record file PATH",
	.run = run_file,
};

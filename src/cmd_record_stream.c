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
static const struct option_table link_table = {
	"Link",
	(const struct option_row[]){
		{ "start-with", 0, "TEXT",
		  "send TEXT first, such as 'go\\n' (default: what the format needs)",
		  OPTION_TEXT(OWNER, start_with) },
		{ "stop-with", 0, "TEXT", "send TEXT at the end (default: what the format needs)",
		  OPTION_TEXT(OWNER, stop_with) },
		{ "retry", 0, "SECONDS", "wait this long for a broken link (default 10)",
		  OPTION_SECONDS(OWNER, retry) },
		{ "no-retry", 0, NULL, "end the recording when the link breaks",
		  OPTION_FLAG(OWNER, no_retry) },
		{ 0 },
	},
};
/* clang-format on */

/* Records into a file that kscope creates. */
static int record_raw(struct recording *r, struct stream *stream)
{
	struct raw raw = { .path = r->files.raw, .fd = files_create_raw(&r->files, &r->err) };
	int ret;

	if (raw.fd < 0)
		return -1;
	r->source = (struct record_source){ .ops = &source_stream, .priv = stream, .raw = &raw };
	ret = recording_run(r);
	close(raw.fd);
	if (ret == 0 && !raw.bytes)
		ret = err_set(&r->err, ERR_INPUT, "%s: nothing was received", r->args->inputs[0]);
	if (ret == 0)
		return recording_finish(r);
	files_restore(&r->files);
	return -1;
}

static int record(struct recording *r, const struct link_ops *ops)
{
	const struct record_options *asked = r->asked;
	struct stream stream = { .retry = asked->no_retry ? 0 : asked->retry ? asked->retry : RETRY };
	const struct args *args = r->args;
	char what[300];
	int ret;

	if (args->nr_inputs > 1)
		return err_set(&r->err, ERR_USAGE, "'%s': one address is enough", args->inputs[1]);
	snprintf(what, sizeof(what), "from %s %s", ops->name, args->inputs[0]);
	r->what = what;
	r->format = args->reader;
	if (args->reader && !reader_by_name(args->reader))
		return err_set(&r->err, ERR_USAGE, "unknown format '%s': see kscope formats",
			       args->reader);
	ret = link_init(&stream.link, ops, args->inputs[0], &r->err);
	if (ret == 0)
		ret = talk_init(&stream.talk, args->reader, asked->start_with, asked->stop_with,
				&r->err);
	if (ret == 0)
		ret = recording_outputs(r, true);
	if (ret == 0)
		ret = recording_prepare(r);
	if (ret == 0)
		ret = record_raw(r, &stream);
	stream_release(&stream);
	return ret;
}

static int run_link(struct args *args, const struct link_ops *ops)
{
	struct recording r;

	recording_init(&r, args);
	return recording_release(&r, record(&r, ops));
}

#define STREAM_OPTIONS                                                                   \
	OPTION_USES({ &record_output_table, 0 }, { &link_table, 0 },                     \
		    { &record_duration_table, 0 }, { &record_until_table, 0 }, RECORDING_NAMES)

static int run_tcp(struct args *args)
{
	return run_link(args, &link_tcp);
}

const struct command record_tcp = {
	.name = "tcp",
	.usage = "tcp HOST:PORT [OPTIONS]",
	.about = "A target that listens on a TCP port.\n"
		 "kscope connects, starts the target if its format needs that, and writes the "
		 "output when the\n"
		 "stream ends. Ctrl-C stops the target.",
	.examples = "  kscope record tcp board:1236 --build-dir build -o perf.data -o flame.svg\n"
		    "  kscope record tcp [fe80::1%eth0]:1236 --duration 10\n",
	.options = STREAM_OPTIONS,
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
	.options = STREAM_OPTIONS,
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
	.options = STREAM_OPTIONS,
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
	.options = STREAM_OPTIONS,
	.state_size = sizeof(struct record_options),
	.reads = true,
	.missing = "no file: use kscope record file PATH",
	.run = run_file,
};

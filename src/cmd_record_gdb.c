// SPDX-License-Identifier: GPL-2.0-or-later
/* record gdb: whatever speaks gdb's remote protocol. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"
#include "cmd_record.h"
#include "record/gdb.h"
#include "recording.h"
#include "unwind/unwind.h"

struct gdb_command {
	struct record_options record; /* first: recording.c has a pointer to it */
	uint64_t freq, max_stop;
};

static int set_stack(const struct option_row *row, void *field, const char *arg, struct err *err)
{
	struct record_options *asked = field;

	asked->stack_given = true;
	return option_number(row, &asked->stack, arg, err);
}

#define OWNER struct gdb_command

/* clang-format off: tables are read by the row. */
static const struct option_table gdb_table = {
	"What to record",
	(const struct option_row[]){
		{ "freq", 'F', "HZ",
		  "stop the target this many times per second (default 100)",
		  OPTION_NUMBER(OWNER, freq, 1, 10000) },
		{ "max-stop", 0, "PERCENT",
		  "stop it for at most this share of the time (default 10)",
		  OPTION_NUMBER(OWNER, max_stop, 1, 90) },
		{ "stack", 0, "BYTES",
		  "copy this much stack with each sample (default 8192, 0: none)", .set = set_stack,
		  .most = GDB_STACK_MAX },
		{ 0 },
	},
};
/* clang-format on */

/* Records into a file that kscope creates. */
static int record_raw(struct recording *r, struct gdb_options *gdb)
{
	struct raw raw = { .path = r->files.raw, .fd = files_create_raw(&r->files, &r->err) };
	int ret;

	if (raw.fd < 0)
		return -1;
	r->source = (struct record_source){ .ops = &source_gdb, .priv = gdb, .raw = &raw };
	ret = recording_run(r);
	close(raw.fd);
	if (ret == 0 && !raw.bytes)
		ret = err_set(&r->err, ERR_INPUT, "%s: nothing was recorded", gdb->address);
	if (ret == 0)
		return recording_finish(r);
	files_restore(&r->files);
	return -1;
}

static int record(struct recording *r)
{
	const struct gdb_command *asked = r->args->state;
	const struct args *args = r->args;
	const char **elfs = xcalloc(args->options.nr_elfs + 1, sizeof(*elfs));
	struct gdb_options gdb = { .address = args->inputs[0],
				   .freq = asked->freq,
				   .stack = asked->record.stack,
				   .stack_given = asked->record.stack_given,
				   .max_stop = asked->max_stop,
				   .kernel = args->options.kernel,
				   .elfs = elfs,
				   .nr_elfs = args->options.nr_elfs };
	char what[300], clock[64];
	int ret;

	for (size_t i = 0; i < gdb.nr_elfs; i++)
		elfs[i] = args->options.elfs[i].path;
	snprintf(what, sizeof(what), "from gdb stub %s", gdb.address);
	snprintf(clock, sizeof(clock), "at most %" PRIu64 " times a second",
		 gdb.freq ? gdb.freq : GDB_FREQ);
	r->what = what;
	r->clock = clock;
	r->format = RAW;
	ret = args->nr_inputs > 1 ? err_set(&r->err, ERR_USAGE, "'%s': one address is enough",
					    args->inputs[1])
				  : recording_outputs(r, true);
	if (ret == 0)
		ret = recording_prepare(r);
	if (ret == 0)
		ret = record_raw(r, &gdb);
	free(elfs);
	return ret;
}

static int run_gdb(struct args *args)
{
	struct recording r;

	recording_init(&r, args);
	return recording_release(&r, record(&r));
}

const struct command record_gdb = {
	.name = "gdb",
	.usage = "gdb HOST:PORT|SOCKET|DEVICE [OPTIONS]",
	.about = "A target behind a gdb stub: QEMU with -s, OpenOCD, gdbserver and others.\n"
		 "kscope stops the target, reads the registers and the stack of every cpu or thread, and "
		 "lets it\n"
		 "go on. It needs no help from the target.",
	.examples = "  kscope record gdb localhost:1234 -k vmlinux --duration 10 -o flame.svg\n"
		    "  kscope record gdb board:3333 -F 20 -k zephyr.elf -o perf.data\n",
	.options = OPTION_USES({ &record_output_table, 0 }, { &gdb_table, 0 },
			       { &record_duration_table, 0 }, RECORDING_NAMES),
	.state_size = sizeof(struct gdb_command),
	.missing = "no address: use kscope record gdb HOST:PORT",
	.reads = true,
	.run = run_gdb,
};

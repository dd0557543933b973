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

#define OWNER struct gdb_command

/* clang-format off: tables are read by the row. */
static const struct option_table gdb_table = {
	"What to record",
	(const struct option_row[]){
		{ "freq", 'F', "HZ", "stop the target this many times per second (default 100)",
		  OPTION_NUMBER(OWNER, freq, 1, 10000) },
		{ "max-stop", 0, "PERCENT",
		  "stop it for at most this share of the time (default 10)",
		  OPTION_NUMBER(OWNER, max_stop, 1, 90) },
		{ "stack", 0, "BYTES",
		  "copy this much stack with each sample (default 8192, 0: none)",
		  .set = record_set_stack, .most = GDB_STACK_MAX },
		{ 0 },
	},
};
/* clang-format on */

/* Returns the exit code, or -1 with r->err set. */
static int record(struct recording *r, struct gdb_options *gdb)
{
	char what[300], clock[64];

	if (recording_address(r, &gdb->address) < 0)
		return -1;
	snprintf(what, sizeof(what), "from gdb stub %s", gdb->address);
	snprintf(clock, sizeof(clock), "at most %" PRIu64 " times a second",
		 gdb->freq ? gdb->freq : GDB_FREQ);
	r->what = what;
	r->clock = clock;
	r->format = RAW;
	if (recording_outputs(r, true) < 0 || recording_prepare(r) < 0 ||
	    recording_receive(r, &source_gdb, gdb) < 0)
		return -1;
	return recording_finish(r);
}

static int run_gdb(struct args *args)
{
	const struct gdb_command *asked = args->state;
	const struct options *options = &args->options;
	const char **elfs = xcalloc(options->nr_elfs + 1, sizeof(*elfs));
	struct gdb_options gdb = { .freq = asked->freq,
				   .stack = asked->record.stack,
				   .stack_given = asked->record.stack_given,
				   .max_stop = asked->max_stop,
				   .kernel = options->kernel,
				   .elfs = elfs,
				   .nr_elfs = options->nr_elfs };
	struct recording r;
	int code;

	for (size_t i = 0; i < gdb.nr_elfs; i++)
		elfs[i] = options->elfs[i].path;
	recording_init(&r, args);
	code = record(&r, &gdb);
	free(elfs);
	return recording_release(&r, code);
}

const struct command record_gdb = {
	.name = "gdb",
	.usage = "gdb HOST:PORT|SOCKET|DEVICE [OPTIONS]",
	.about = "A target behind a gdb stub: QEMU with -s, OpenOCD, gdbserver and others.\n"
		 "kscope stops the target, reads the registers and the stack of every cpu or "
		 "thread, and "
		 "lets it\n"
		 "run on. The target needs no agent.",
	.examples = "  kscope record gdb localhost:1234 -k vmlinux --duration 10 -o flame.svg\n"
		    "  kscope record gdb board:3333 -F 20 -k zephyr.elf -o perf.data\n",
	.options = OPTION_USES({ &record_output_table, 0 }, { &gdb_table, 0 },
			       { &record_duration_table, 0 }, RECORDING_NAMES),
	.state_size = sizeof(struct gdb_command),
	.missing = "no address: use kscope record gdb HOST:PORT",
	.run = run_gdb,
};

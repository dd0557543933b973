// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * record emulate and record pt: programs of this machine as Intel PT, in QEMU or on a processor that has it. Both write
 * their perf.data themselves.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"
#include "cmd_record.h"
#include "record/emulate.h"
#include "record/line.h"
#include "record/pt.h"
#include "recording.h"

#define OWNER struct record_options

static const struct option_table perfdata_table = {
	"Output",
	(const struct option_row[]){
		OPTION_OUTPUT("write to FILE (default perf.data)"),
		{ 0 },
	},
};

static const struct option_table emulate_table = {
	"Emulate",
	(const struct option_row[]){
		{ "qemu", 0, "FILE", "run programs with this QEMU (default qemu-x86_64)",
		  OPTION_TEXT(OWNER, qemu), .completion = COMPLETE_FILE },
		{ 0 },
	},
};

/* A power of two is required later. */
static int set_size(const struct option_row *row, void *field, const char *arg, struct err *err)
{
	static const char units[] = "KMG";
	size_t len = strlen(arg);
	const char *unit = len > 1 ? strchr(units, arg[len - 1]) : NULL;
	uint64_t *bytes = field;

	if (!unit || !text_u64(arg, len - 1, bytes) || !*bytes || *bytes > 1 << 20)
		return err_set(err, ERR_USAGE, "--%s expects a size such as 4M, not '%s'",
			       row->name, arg);
	*bytes <<= 10 * (unit - units + 1);
	return 0;
}

/* clang-format off: tables are read by the row. */
static const struct option_table pt_table = {
	"Intel PT",
	(const struct option_row[]){
		{ "pid", 'p', "PID", "trace this running process", OPTION_TEXT(OWNER, pt.pid) },
		{ "all-cpus", 'a', NULL, "trace all CPUs", OPTION_FLAG(OWNER, pt.all_cpus) },
		{ "cpu", 'C', "LIST", "trace these CPUs, such as 0,2-3",
		  OPTION_SET(record_set_vcpus, OWNER, pt.cpus) },
		{ "level", 0, "LEVEL", "trace user (default) or kernel code, or all",
		  OPTION_SET(record_set_level, OWNER, level), .words = select_levels },
		{ "trigger", 0, "FUNC", "keep only what led to FUNC, each time it is reached",
		  OPTION_TEXT(OWNER, pt.trigger) },
		{ "snapshot", 0, NULL, "keep only the latest part, at SIGUSR2 and at the end",
		  OPTION_FLAG(OWNER, pt.snapshot) },
		{ "filter", 0, "FILTER", "trace only this code, such as 'filter main @ ./app'",
		  OPTION_TEXT(OWNER, pt.filter) },
		{ "buffer", 0, "SIZE", "buffer for each CPU, such as 4M (default: perf decides)",
		  OPTION_SET(set_size, OWNER, pt.buffer) },
		{ "print", 0, NULL, "print the command line of perf, and exit",
		  OPTION_FLAG(OWNER, print) },
		{ "dry-run", .same_as = "print" },
		{ 0 },
	},
};

/* clang-format on */

static const char *perfdata_path(const struct args *args)
{
	return args->nr_outputs ? args->outputs[0].path : "perf.data";
}

/* For sources that write perf.data themselves. */
static int check_perfdata(const struct args *args, struct err *err)
{
	const struct writer_ops *ops;
	struct err none = { 0 };

	if (args->nr_outputs > 1)
		return err_set(err, ERR_USAGE, "record %s writes one file: use one -o",
			       args->command->name);
	ops = args->nr_outputs ? writer_choose(NULL, args->outputs[0].path, &none) : NULL;
	if (ops && strcmp(ops->name, "perfdata") != 0)
		return err_set(err, ERR_USAGE,
			       "%s: record %s writes perf.data; make the %s of it with "
			       "kscope convert",
			       args->outputs[0].path, args->command->name, ops->name);
	return 0;
}

/* Prints the error, if code is negative. Returns the exit code. */
static int result(int code, const struct err *err)
{
	if (code >= 0)
		return code;
	log_error("%s", err->msg);
	return err->code;
}

/* ---- emulate ---- */

static int emulate_program(struct args *args, struct err *err)
{
	const struct record_options *asked = args->state;
	const char **words = xcalloc(args->nr_inputs + 1, sizeof(*words));
	struct emulation emulation = {
		.words = words,
		.out = perfdata_path(args),
		.qemu = asked->qemu,
	};
	int code = -1;

	memcpy(words, args->inputs, args->nr_inputs * sizeof(*words));
	if (check_perfdata(args, err) == 0)
		code = emulate(&emulation, err);
	free(words);
	return code;
}

static int run_emulate(struct args *args)
{
	struct err err = { 0 };

	return result(emulate_program(args, &err), &err);
}

/* ---- Intel PT ---- */

static int print_perf(char **line)
{
	struct buf text = { 0 };

	line_quote(&text, (const char *const *)line);
	printf("%s\n", text.data);
	buf_release(&text);
	return 0;
}

static int trace_program(struct args *args, struct err *err)
{
	const struct record_options *asked = args->state;
	struct pt pt = {
		.asked = &asked->pt,
		.level = asked->level ? asked->level : "user",
		.out = perfdata_path(args),
		.duration = asked->duration,
		.words = args->inputs,
		.nr_words = args->nr_inputs,
		.root = "",
		.privileged = pt_is_privileged(),
	};
	char **line;
	int ret;

	if (check_perfdata(args, err) < 0 || pt_check_options(&pt, err) < 0 ||
	    (!asked->print && pt_check_machine(&pt, err) < 0))
		return -1;
	line = pt_line(&pt, err);
	if (!line)
		return -1;
	ret = asked->print ? print_perf(line) : pt_run(&pt, line, err);
	pt_free_line(line);
	return ret;
}

static int run_pt(struct args *args)
{
	struct err err = { 0 };

	return result(trace_program(args, &err), &err);
}

const struct command record_emulate = {
	.name = "emulate",
	.usage = "emulate [-o FILE] [--qemu FILE] [--] PROGRAM...",
	.about = "A program in QEMU, as an Intel PT trace.\n"
		 "PROGRAM... is an x86-64 Linux program and its arguments. kscope runs it in QEMU "
		 "and writes a\n"
		 "perf.data with Intel PT, for machines whose processor does not have it.",
	.examples = "  kscope record emulate -o ls.data -- ls -l /tmp\n",
	.options = OPTION_USES({ &perfdata_table, 0 }, { &emulate_table, 0 }),
	.state_size = sizeof(struct record_options),
	.missing = "no program: use kscope record emulate [-o FILE] -- PROGRAM...",
	.runs = true,
	.run = run_emulate,
};

const struct command record_pt = {
	.name = "pt",
	.usage = "pt [-o FILE] [OPTIONS] [--pid PID | [--] PROGRAM...]",
	.about = "A program or a CPU of this machine, traced with Intel PT by perf.",
	.examples = "  kscope record pt -o ls.data -- ls -l /tmp\n"
		    "  kscope record pt --pid 1234 --trigger handle_timeout\n",
	.options = OPTION_USES({ &perfdata_table, 0 }, { &record_duration_table, 0 },
			       { &pt_table, 0 }),
	.state_size = sizeof(struct record_options),
	.runs = true,
	.run = run_pt,
};

// SPDX-License-Identifier: GPL-2.0-or-later
#include "args.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"
#include "pass/alloc.h"

#define ALL (VERB_CONVERT | VERB_REPORT | VERB_FLAME | VERB_INFO | VERB_ALLOC)
#define SELECTS ALL
#define DRAWS (VERB_CONVERT | VERB_REPORT | VERB_FLAME)
#define PICTURES (VERB_CONVERT | VERB_FLAME)
#define NAMES (ALL | VERB_RECORD)

/* clang-format off: tables are read by the row. */
enum option_code {
	OPT_OUTPUT = 'o',
	OPT_READER = 'f',
	OPT_WRITER = 't',
	OPT_BUILD_DIR = 'b',
	OPT_KERNEL = 'k',
	OPT_EVENT = 'e',
	OPT_VERBOSE = 'v',
	OPT_QUIET = 'q',
	OPT_HELP = 'h',
	OPT_LIMIT = 'n',
	OPT_SYMFS = 256,
	OPT_ELF,
	OPT_TICK_HZ,
	OPT_EVENT_NAME,
	OPT_TIME,
	OPT_CPU,
	OPT_PID,
	OPT_TID,
	OPT_COMM,
	OPT_NO_INLINE,
	OPT_LINES,
	OPT_SAMPLES,
	OPT_WEIGHT,
	OPT_ROOT,
	OPT_INVERTED,
	OPT_ICICLE,
	OPT_TITLE,
	OPT_SUBTITLE,
	OPT_NOTES,
	OPT_PALETTE,
	OPT_MIN_WIDTH,
	OPT_WIDTH,
	OPT_DIFF,
	OPT_NEGATE,
	OPT_JSON,
	OPT_BY,
	OPT_SORT,
	OPT_TREE,
	OPT_NO_TREE,
	OPT_MIN_PERCENT,
	OPT_NO_SPLIT,
	OPT_VALUE,
	OPT_LIVE_OVER_TIME,
	OPT_BUILDID_CACHE,
	OPT_NO_BUILDID_CACHE,
	OPT_SLIDE,
	OPT_UNWIND,
	OPT_FREQ = 'F',
	OPT_PERIOD = 512,
	OPT_CLOCK,
	OPT_TRACE,
	OPT_START_AT,
	OPT_STOP_AT,
	OPT_ALLOC,
	OPT_FREE,
	OPT_REALLOC,
	OPT_STACK,
	OPT_VCPU,
	OPT_LEVEL,
	OPT_DURATION,
	OPT_UNTIL,
	OPT_KEEP,
	OPT_PAUSED,
	OPT_CONTROL,
	OPT_ATTACH,
	OPT_PRINT,
};

static const struct option_row {
	const char *name;
	int code;
	const char *arg; /* NULL: takes none; in brackets: may be left out */
	unsigned verbs;
	const char *about; /* NULL: an old or foreign spelling, not shown */
} rows[] = {
	{ "output", OPT_OUTPUT, "FILE", VERB_CONVERT,
	  "write this file; - is stdout (may be repeated)" },
	{ "output", OPT_OUTPUT, "FILE", VERB_FLAME, "write this file; - is stdout" },
	{ "output", OPT_OUTPUT, "FILE", VERB_RECORD,
	  "write to FILE (default perf.data; .kscope: the raw stream)" },
	{ "type", OPT_WRITER, "FORMAT", VERB_RECORD,
	  "write this format (default: from the extension)" },
	{ "freq", OPT_FREQ, "HZ", VERB_RECORD,
	  "take this many samples per second of each vCPU (default 1000)" },
	{ "period", OPT_PERIOD, "N", VERB_RECORD,
	  "take a sample every N ns or instructions (default 1000000)" },
	{ "clock", OPT_CLOCK, "CLOCK", VERB_RECORD,
	  "sample by host (default), guest or instructions" },
	{ "trace", OPT_TRACE, NULL, VERB_RECORD, "record every call and jump instead of samples" },
	{ "from", OPT_START_AT, "LOCATION", VERB_RECORD,
	  "start when the guest reaches this function or address (may be repeated)" },
	{ "to", OPT_STOP_AT, "LOCATION", VERB_RECORD,
	  "pause when the guest reaches this function or address" },
	{ "alloc", OPT_ALLOC, "FUNC", VERB_RECORD,
	  "also record allocations by FUNC[:argN:ret] (may be repeated)" },
	{ "free", OPT_FREE, "FUNC", VERB_RECORD, "also record frees by FUNC[:argN]" },
	{ "realloc", OPT_REALLOC, "FUNC", VERB_RECORD,
	  "also record resizes by FUNC[:argP:argS:ret]" },
	{ "stack", OPT_STACK, "BYTES", VERB_RECORD,
	  "copy this much stack with each sample (default 8192, 0: none)" },
	{ "vcpu", OPT_VCPU, "LIST", VERB_RECORD, "record only these vCPUs, such as 0,2-3" },
	{ "level", OPT_LEVEL, "WHAT", SELECTS | VERB_RECORD,
	  "record only user or kernel code, or all (default)" },
	{ "duration", OPT_DURATION, "SECONDS", VERB_RECORD, "end the guest after this time" },
	{ "until", OPT_UNTIL, "TEXT", VERB_RECORD, "end the guest when it prints TEXT" },
	{ "keep", OPT_KEEP, "FILE", VERB_RECORD, "also keep the raw stream" },
	{ "control", OPT_CONTROL, "SOCKET", VERB_RECORD, "create this socket for --attach" },
	{ "paused", OPT_PAUSED, NULL, VERB_RECORD, "record nothing until --attach SOCKET start" },
	{ "attach", OPT_ATTACH, "SOCKET", VERB_RECORD,
	  "send start, stop, flush or status to a running guest" },
	{ "print", OPT_PRINT, NULL, VERB_RECORD, "print the QEMU command line and exit" },
	{ "to", OPT_WRITER, "FORMAT", VERB_CONVERT,
	  "write this format (default: from the extension)" },
	{ "from", OPT_READER, "FORMAT", ALL, "read this format (default: detect it)" },
	{ "build-dir", OPT_BUILD_DIR, "DIR", NAMES,
	  "search DIR for the binaries that the data names" },
	{ "symfs", OPT_SYMFS, "DIR", NAMES, "search DIR for binaries and debug files first" },
	{ "root-dir", OPT_SYMFS, "DIR", NAMES, NULL },
	{ "buildid-cache", OPT_BUILDID_CACHE, "[=DIR]", VERB_CONVERT | VERB_RECORD,
	  "add the binaries to perf's build-id cache (~/.debug)" },
	{ "no-buildid-cache", OPT_NO_BUILDID_CACHE, NULL, VERB_RECORD,
	  "do not add the binaries of perf.data to that cache" },
	{ "kernel", OPT_KERNEL, "FILE", NAMES,
	  "read kernel symbols from an ELF, vmlinuz, kallsyms or System.map" },
	{ "vmlinux", OPT_KERNEL, "FILE", NAMES, NULL },
	{ "kallsyms", OPT_KERNEL, "FILE", NAMES, NULL },
	{ "elf", OPT_ELF, "FILE", NAMES,
	  "use the symbols of this binary; PID=FILE: of this process" },
	{ "slide", OPT_SLIDE, "BYTES", NAMES,
	  "set how far the kernel was relocated (default: auto)" },
	{ "unwind", OPT_UNWIND, "METHOD", NAMES,
	  "unwind stacks by auto (default), fp, cfi or orc" },
	{ "tick-hz", OPT_TICK_HZ, "HZ", SELECTS, "interpret times as ticks of this frequency" },
	{ "event-name", OPT_EVENT_NAME, "NAME", SELECTS,
	  "set the name of the event, if the data has none" },
	{ "time", OPT_TIME, "A,B", SELECTS,
	  "select samples from A to B seconds; either may be omitted" },
	{ "cpu", OPT_CPU, "LIST", SELECTS, "select samples on these CPUs, such as 0,2-3" },
	{ "pid", OPT_PID, "LIST", SELECTS, "select samples of these processes" },
	{ "tid", OPT_TID, "LIST", SELECTS, "select samples of these threads" },
	{ "comm", OPT_COMM, "NAME", SELECTS,
	  "select samples of tasks with this name (may be repeated)" },
	{ "event", OPT_EVENT, "NAME", SELECTS, "select samples of this event (may be repeated)" },
	{ "samples", OPT_SAMPLES, NULL, DRAWS,
	  "count samples (default for flame graphs and folded stacks)" },
	{ "weight", OPT_WEIGHT, NULL, DRAWS, "count what samples stand for (default for report)" },
	{ "value", OPT_VALUE, "KIND", DRAWS,
	  "show live (default), total, count or peak of allocations" },
	{ "no-split", OPT_NO_SPLIT, NULL, DRAWS, "do not split stacks at interrupts" },
	{ "root", OPT_ROOT, "KIND", DRAWS,
	  "show comm (default), pid, tid or none as outermost frame" },
	{ "no-inline", OPT_NO_INLINE, NULL, DRAWS, "omit inlined functions" },
	{ "lines", OPT_LINES, NULL, DRAWS, "add the source line to function names" },
	{ "inverted", OPT_INVERTED, NULL, DRAWS, "merge stacks from the leaf, to show callers" },
	{ "icicle", OPT_ICICLE, NULL, PICTURES, "draw the root at the top" },
	{ "title", OPT_TITLE, "TEXT", PICTURES, "set the title" },
	{ "subtitle", OPT_SUBTITLE, "TEXT", PICTURES, "add a line below the title" },
	{ "notes", OPT_NOTES, "TEXT", PICTURES, "add a line below the graph" },
	{ "palette", OPT_PALETTE, "NAME", PICTURES,
	  "select the colours: hot, mem, kernel-user or by-binary" },
	{ "colors", OPT_PALETTE, "NAME", PICTURES, NULL },
	{ "min-width", OPT_MIN_WIDTH, "PERCENT", PICTURES, "omit narrower frames (default 0.01)" },
	{ "width", OPT_WIDTH, "PIXELS", PICTURES,
	  "set the width of the picture (default: fit the window)" },
	{ "diff", OPT_DIFF, "BEFORE", VERB_FLAME, "colour frames by the change against BEFORE" },
	{ "negate", OPT_NEGATE, NULL, VERB_FLAME, "with --diff, draw the widths of BEFORE" },
	{ "json", OPT_JSON, NULL, VERB_REPORT | VERB_INFO | VERB_ALLOC | VERB_FORMATS,
	  "print JSON" },
	{ "by", OPT_BY, "KEY", VERB_REPORT,
	  "print a row for each function (default), binary, task or cpu" },
	{ "sort", OPT_SORT, "COLUMN", VERB_REPORT, "sort by self (default), total or name" },
	{ "limit", OPT_LIMIT, "N", VERB_REPORT | VERB_ALLOC,
	  "print at most N rows (default 20, 0: all)" },
	{ "live-over-time", OPT_LIVE_OVER_TIME, "N", VERB_ALLOC,
	  "show live memory in N intervals" },
	{ "tree", OPT_TREE, NULL, VERB_REPORT, "print only the call tree" },
	{ "no-tree", OPT_NO_TREE, NULL, VERB_REPORT, "print only the table" },
	{ "min-percent", OPT_MIN_PERCENT, "PERCENT", VERB_REPORT,
	  "omit smaller branches of the call tree (default 0.5)" },
	{ "verbose", OPT_VERBOSE, NULL, NAMES | VERB_FORMATS, "print more messages" },
	{ "quiet", OPT_QUIET, NULL, NAMES | VERB_FORMATS, "print only errors" },
	{ "help", OPT_HELP, NULL, NAMES | VERB_FORMATS, "print this help" },
};

/* clang-format on */

#define NR_ROWS (sizeof(rows) / sizeof(rows[0]))

static void help(const struct command *command)
{
	printf("Usage: kscope %s\n%s\n\nOptions:\n", command->usage, command->about);
	for (size_t i = 0; i < NR_ROWS; i++) {
		char text[64];

		if (!rows[i].about || !(rows[i].verbs & command->verb))
			continue;
		snprintf(text, sizeof(text), "--%s%s%s", rows[i].name,
			 rows[i].arg && rows[i].arg[0] != '[' ? " " : "",
			 rows[i].arg ? rows[i].arg : "");
		if (rows[i].code < 256)
			printf("  -%c, %-22s %s\n", rows[i].code, text, rows[i].about);
		else
			printf("      %-22s %s\n", text, rows[i].about);
	}
	printf("\nExamples:\n%s", command->examples);
}

static int add_elf(struct args *args, const char *arg, struct err *err)
{
	const char *equals = strchr(arg, '=');
	struct elf_option elf = { .pid = NO_TASK, .path = arg };

	if (equals && text_u32(arg, (size_t)(equals - arg), &elf.pid))
		elf.path = equals + 1;
	if (!*elf.path)
		return err_set(err, ERR_USAGE, "--elf expects FILE or PID=FILE, not '%s'", arg);
	GROW(args->options.elfs, args->options.nr_elfs + 1, args->cap_elfs);
	args->options.elfs[args->options.nr_elfs++] = elf;
	return 0;
}

/* The place of arg in a list of words; if it is none of them, 0 and an error. */
static unsigned choose(const char *option, const char *arg, const char *const *words,
		       struct err *err)
{
	for (unsigned i = 0; words[i]; i++) {
		if (!strcmp(arg, words[i]))
			return i;
	}
	err_set(err, ERR_USAGE, "--%s: unknown value '%s'; see --help", option, arg);
	return 0;
}

static int number(const char *option, const char *arg, uint64_t most, uint64_t *value,
		  struct err *err)
{
	if (!text_u64(arg, strlen(arg), value) || *value > most)
		return err_set(err, ERR_USAGE, "--%s expects a number up to %" PRIu64 ", not '%s'",
			       option, most, arg);
	return 0;
}

static int percent(const char *option, const char *arg, double *value, struct err *err)
{
	char *end;

	*value = strtod(arg, &end);
	if (end == arg || *end || !(*value >= 0 && *value <= 100))
		return err_set(err, ERR_USAGE, "--%s expects a percentage, not '%s'", option, arg);
	return 0;
}

static int above_0(const char *option, const char *arg, uint64_t most, uint64_t *value,
		   struct err *err)
{
	if (number(option, arg, most, value, err) < 0)
		return -1;
	return *value ? 0 : err_set(err, ERR_USAGE, "--%s must not be 0", option);
}

static void add_hook(struct record_options *record, enum hook_kind kind, const char *text)
{
	GROW(record->hooks, record->nr_hooks + 1, record->cap_hooks);
	record->hooks[record->nr_hooks++] = (struct hook_option){ kind, text };
}

static int set_word(struct args *args, int code, const char *arg, struct err *err)
{
	static const char *const roots[] = { "comm", "pid", "tid", "none", NULL };
	static const char *const bys[] = { "function", "binary", "task", "cpu", NULL };
	static const char *const values[] = { "live", "total", "count", "peak", NULL };
	static const char *const sorts[] = { "self", "total", "name", NULL };
	static const char *const unwinds[] = { "auto", "fp", "cfi", "orc", NULL };
	static const char *const clocks[] = { "host", "guest", "instructions", NULL };
	static const char *const levels[] = { "all", "user", "kernel", NULL };

	switch (code) {
	case OPT_ROOT: args->options.root = choose("root", arg, roots, err); break;
	case OPT_BY: args->by = choose("by", arg, bys, err); break;
	case OPT_VALUE: args->options.value = choose("value", arg, values, err); break;
	case OPT_UNWIND: args->options.unwind = choose("unwind", arg, unwinds, err); break;
	case OPT_CLOCK: args->record.clock = choose("clock", arg, clocks, err); break;
	case OPT_LEVEL:
		args->selection.level = choose("level", arg, levels, err);
		args->record.level = levels[args->selection.level];
		break;
	default: args->sort = choose("sort", arg, sorts, err); break;
	}
	return err->code ? -1 : 0;
}

static int set_number(struct args *args, int code, const char *arg, struct err *err)
{
	uint64_t value = 0;
	int ret;

	switch (code) {
	case OPT_TICK_HZ: return above_0("tick-hz", arg, UINT64_MAX, &args->options.tick_hz, err);
	case OPT_SLIDE:
		args->options.slide_given = strcmp(arg, "auto") != 0;
		return args->options.slide_given
			       ? number("slide", arg, UINT64_MAX, &args->options.slide, err)
			       : 0;
	case OPT_WIDTH:
		ret = number("width", arg, 100000, &value, err);
		args->options.width = (unsigned)value;
		return ret;
	case OPT_LIVE_OVER_TIME:
		ret = number("live-over-time", arg, ALLOC_SERIES, &value, err);
		args->points = (unsigned)value;
		return ret;
	default:
		ret = number("limit", arg, 1000000000, &value, err);
		args->limit = (unsigned)value;
		return ret;
	}
}

/* clang-format off: a row an option. */
static int set_record(struct record_options *record, int code, const char *arg, struct err *err)
{
	struct id_set checked = { 0 };
	int ret;

	switch (code) {
	case OPT_TRACE: record->trace = true; return 0;
	case OPT_START_AT: add_hook(record, HOOK_FROM, arg); return 0;
	case OPT_STOP_AT: add_hook(record, HOOK_TO, arg); return 0;
	case OPT_ALLOC: add_hook(record, HOOK_ALLOC, arg); return 0;
	case OPT_FREE: add_hook(record, HOOK_FREE, arg); return 0;
	case OPT_REALLOC: add_hook(record, HOOK_REALLOC, arg); return 0;
	case OPT_UNTIL: record->until = arg; return 0;
	case OPT_KEEP: record->keep = arg; return 0;
	case OPT_PAUSED: record->paused = true; return 0;
	case OPT_CONTROL: record->control = arg; return 0;
	case OPT_ATTACH: record->attach = arg; return 0;
	case OPT_PRINT: record->print = true; return 0;
	case OPT_FREQ: return above_0("freq", arg, 1000000, &record->freq, err);
	case OPT_PERIOD: return above_0("period", arg, INT64_MAX, &record->period, err);
	case OPT_STACK:
		record->stack_given = true;
		return number("stack", arg, 65536, &record->stack, err);
	case OPT_DURATION:
		if (!text_seconds(arg, strlen(arg), &record->duration) || !record->duration)
			return err_set(err, ERR_USAGE, "--duration expects seconds, not '%s'", arg);
		return 0;
	default: /* OPT_VCPU */
		record->vcpus = arg;
		ret = select_ids(&checked, "--vcpu", arg, err);
		free(checked.ranges);
		return ret;
	}
}

/* -t belongs to the -o that follows it, or to the last one. */
static void add_output(struct args *args, const char *path)
{
	GROW(args->outputs, args->nr_outputs + 1, args->cap_outputs);
	args->outputs[args->nr_outputs++] = (struct output_option){ path, args->writer };
	args->writer = NULL;
}

static void settle_writer(struct args *args)
{
	if (!args->nr_outputs || !args->writer)
		return;
	args->outputs[args->nr_outputs - 1].writer = args->writer;
	args->writer = NULL;
}

static int set_option(struct args *args, int code, const char *arg, struct err *err)
{
	struct options *options = &args->options;
	struct selection *sel = &args->selection;

	switch (code) {
	case OPT_OUTPUT: add_output(args, arg); return 0;
	case OPT_READER: args->reader = arg; return 0;
	case OPT_WRITER: args->writer = arg; return 0;
	case OPT_BUILD_DIR: options->build_dir = arg; return 0;
	case OPT_SYMFS: options->symfs = arg; return 0;
	case OPT_KERNEL: options->kernel = arg; return 0;
	case OPT_EVENT_NAME: options->source = arg; return 0;
	case OPT_TITLE: options->title = arg; return 0;
	case OPT_SUBTITLE: options->subtitle = arg; return 0;
	case OPT_NOTES: options->notes = arg; return 0;
	case OPT_PALETTE: options->palette = arg; return 0;
	case OPT_BUILDID_CACHE: args->buildid_cache = arg ? arg : ""; return 0;
	case OPT_NO_BUILDID_CACHE: args->no_buildid_cache = true; return 0;
	case OPT_DIFF: args->before = arg; return 0;
	case OPT_NEGATE: args->negate = true; return 0;
	case OPT_JSON: args->json = true; return 0;
	case OPT_TREE: args->tree = true; return 0;
	case OPT_NO_TREE: args->no_tree = true; return 0;
	case OPT_NO_INLINE: options->no_inline = true; return 0;
	case OPT_LINES: options->lines = true; return 0;
	case OPT_SAMPLES: options->measure = MEASURE_SAMPLES; return 0;
	case OPT_WEIGHT: options->measure = MEASURE_WEIGHT; return 0;
	case OPT_INVERTED: options->inverted = true; return 0;
	case OPT_ICICLE: options->icicle = true; return 0;
	case OPT_VERBOSE: log_level = log_level < 1 ? 2 : log_level + 1; return 0;
	case OPT_QUIET: log_level = 0; return 0;
	case OPT_ELF: return add_elf(args, arg, err);
	case OPT_TIME: return select_time(sel, arg, err);
	case OPT_CPU: return select_ids(&sel->cpus, "--cpu", arg, err);
	case OPT_PID: return select_ids(&sel->pids, "--pid", arg, err);
	case OPT_TID: return select_ids(&sel->tids, "--tid", arg, err);
	case OPT_COMM: select_comm(sel, arg); return 0;
	case OPT_EVENT: select_source(sel, arg); return 0;
	case OPT_MIN_WIDTH:
		options->min_width_given = true;
		return percent("min-width", arg, &options->min_width, err);
	case OPT_MIN_PERCENT: return percent("min-percent", arg, &args->min_percent, err);
	case OPT_NO_SPLIT: options->no_split = true; return 0;
	case OPT_ROOT:
	case OPT_BY:
	case OPT_VALUE:
	case OPT_UNWIND:
	case OPT_CLOCK:
	case OPT_LEVEL:
	case OPT_SORT: return set_word(args, code, arg, err);
	case OPT_FREQ: return set_record(&args->record, code, arg, err);
	default:
		return code >= OPT_PERIOD ? set_record(&args->record, code, arg, err)
					  : set_number(args, code, arg, err);
	}
}

static int wants(const char *arg)
{
	if (!arg)
		return no_argument;
	return arg[0] == '[' ? optional_argument : required_argument;
}

/* clang-format on */

/* getopt's own tables, with the options of one verb. */
static void getopt_tables(const struct command *command, struct option *longs, char *shorts)
{
	enum verb verb = command->verb;

	if (command->first)
		*shorts++ = '+';
	*shorts++ = ':';
	for (size_t i = 0; i < NR_ROWS; i++) {
		if (!(rows[i].verbs & verb))
			continue;
		*longs++ = (struct option){ rows[i].name, wants(rows[i].arg), NULL, rows[i].code };
		if (rows[i].code < 256 && rows[i].about) {
			*shorts++ = (char)rows[i].code;
			if (rows[i].arg)
				*shorts++ = ':';
		}
	}
	*longs = (struct option){ 0 };
	*shorts = '\0';
}

static int wrong(const struct command *command, const char *message, int *code)
{
	log_error("%s", message);
	fprintf(stderr, "Try: kscope %s --help\n", command->name);
	*code = ERR_USAGE;
	return -1;
}

/* Said now it is a wrong argument; later it would be many missing binaries. */
static int check_folder(const char *option, const char *path, struct err *err)
{
	struct stat st;

	if (!path)
		return 0;
	if (stat(path, &st) < 0)
		return err_set(err, ERR_USAGE, "%s %s: %s", option, path, strerror(errno));
	if (!S_ISDIR(st.st_mode))
		return err_set(err, ERR_USAGE, "%s %s: not a directory", option, path);
	if (access(path, R_OK | X_OK) < 0)
		return err_set(err, ERR_USAGE, "%s %s: %s", option, path, strerror(errno));
	return 0;
}

int args_check(const struct options *options, struct err *err)
{
	if (check_folder("--build-dir", options->build_dir, err) < 0 ||
	    check_folder("--symfs", options->symfs, err) < 0)
		return -1;
	if (options->kernel && access(options->kernel, R_OK) < 0)
		return err_set(err, ERR_USAGE, "--kernel %s: %s", options->kernel, strerror(errno));
	for (size_t i = 0; i < options->nr_elfs; i++) {
		/* A bare name is looked for under --build-dir. */
		if (strchr(options->elfs[i].path, '/') && access(options->elfs[i].path, R_OK) < 0)
			return err_set(err, ERR_USAGE, "--elf %s: %s", options->elfs[i].path,
				       strerror(errno));
	}
	return 0;
}

/* As getopt_long(), which stops at the first word of a verb that has one: options follow it, too. */
static int next_option(struct args *args, const struct command *command, int argc, char **argv,
		       const char *shorts, const struct option *longs)
{
	int opt = getopt_long(argc, argv, shorts, longs, NULL);

	if (opt != -1 || !command->first || args->record.source || optind == argc)
		return opt;
	args->record.source = argv[optind++];
	return getopt_long(argc, argv, shorts, longs, NULL);
}

int args_parse(struct args *args, const struct command *command, int argc, char **argv, int *code)
{
	struct option longs[NR_ROWS + 1];
	char shorts[3 * NR_ROWS + 2], message[300];
	struct err err = { 0 };
	int opt;

	memset(args, 0, sizeof(*args));
	args->limit = 20;
	args->min_percent = 0.5;
	getopt_tables(command, longs, shorts);
	opterr = 0;
	while ((opt = next_option(args, command, argc, argv, shorts, longs)) != -1) {
		if (opt == OPT_HELP) {
			help(command);
			*code = ERR_NONE;
			return -1;
		}
		if (opt == ':' || opt == '?') {
			const char *what = opt == ':' ? "missing value after" : "unknown option";

			/* A short option may stand in a cluster; a long one is the word before. */
			if (optopt && optopt < 256)
				snprintf(message, sizeof(message), "%s -%c", what, optopt);
			else
				snprintf(message, sizeof(message), "%s %s", what, argv[optind - 1]);
			return wrong(command, message, code);
		}
		if (set_option(args, opt, optarg, &err) < 0)
			return wrong(command, err.msg, code);
	}
	for (; optind < argc; optind++) {
		GROW(args->inputs, args->nr_inputs + 1, args->cap_inputs);
		args->inputs[args->nr_inputs++] = argv[optind];
	}
	if (command->first && !args->record.source) {
		snprintf(message, sizeof(message), "nothing to record: use kscope record %s",
			 command->first);
		return wrong(command, message, code);
	}
	if (!args->nr_inputs && command->verb != VERB_FORMATS && !command->first)
		return wrong(command, "no input file (- is stdin)", code);
	if (args->nr_inputs && command->verb == VERB_FORMATS)
		return wrong(command, "formats takes no input file; use kscope info FILE", code);
	if (args->tree && args->no_tree)
		return wrong(command, "--tree and --no-tree exclude each other", code);
	if (args->negate && !args->before)
		return wrong(command, "--negate needs --diff BEFORE", code);
	settle_writer(args);
	if (args_check(&args->options, &err) < 0)
		return wrong(command, err.msg, code);
	return 0;
}

void args_release(struct args *args)
{
	free(args->inputs);
	free(args->outputs);
	free(args->options.elfs);
	free(args->record.hooks);
	selection_release(&args->selection);
}

struct output *args_outputs(const struct args *args, struct err *err)
{
	struct output *outputs = xcalloc(args->nr_outputs, sizeof(*outputs));

	for (size_t i = 0; i < args->nr_outputs; i++) {
		const struct output_option *option = &args->outputs[i];

		outputs[i].path = option->path;
		outputs[i].ops = writer_choose(option->writer, option->path, err);
		if (!outputs[i].ops) {
			free(outputs);
			return NULL;
		}
	}
	return outputs;
}

void args_job(const struct args *args, struct job *job)
{
	*job = (struct job){
		.inputs = args->inputs,
		.nr_inputs = args->nr_inputs,
		.reader = args->reader,
		.options = &args->options,
		.selection = &args->selection,
		.buildid_cache = args->buildid_cache,
	};
}

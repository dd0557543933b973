// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * record: the table of what kscope can record, and for guests of QEMU the run: with the plugin, whose output is then
 * converted. This file calls the parts in record/ in order.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"
#include "cmd.h"
#include "record/control.h"
#include "record/emulate.h"
#include "record/files.h"
#include "record/guest.h"
#include "record/line.h"
#include "record/pt.h"
#include "record/refusal.h"
#include "sym/sym.h"
#include "unwind/unwind.h"

#define RAW "kscope"	/* the format of the plugin's stream, and its extension */
#define PATIENCE 10	/* seconds */
#define NOT_EMPTY 65536 /* bytes: a larger recording has samples */

/* ---- options ---- */

static const char *const clocks[] = { "host", "guest", "instructions", NULL };
static const char *const raw_format[] = { RAW, NULL };

/* set_vcpus() and set_level() only check the text, which goes to the plugin unchanged. */
static int set_vcpus(const struct option_row *row, void *field, const char *arg, struct err *err)
{
	struct id_set checked = { 0 };
	int ret = select_ids(row, &checked, arg, err);

	free(checked.ranges);
	return ret < 0 ? -1 : option_text(row, field, arg, err);
}

static int set_level(const struct option_row *row, void *field, const char *arg, struct err *err)
{
	enum level checked;

	return option_word(row, &checked, arg, err) < 0 ? -1 : option_text(row, field, arg, err);
}

static int set_stack(const struct option_row *row, void *field, const char *arg, struct err *err)
{
	struct record_options *asked = field;

	asked->stack_given = true;
	return option_number(row, &asked->stack, arg, err);
}

#define OWNER struct record_options

/* clang-format off: tables are read by the row. */
static const struct option_table output_table = {
	"Output",
	(const struct option_row[]){
		OPTION_OUTPUT(
			"write to FILE (default perf.data; .kscope: raw stream; may be repeated)"),
		OPTION_TYPE(.words = raw_format),
		{ "keep", 0, "FILE", "also keep the raw stream", OPTION_TEXT(OWNER, keep),
		  .completion = COMPLETE_FILE },
		{ "buildid-cache", 0, "[=DIR]",
		  "add the binaries to perf's build-id cache (~/.debug)",
		  OPTION_TEXT(OWNER, buildid_cache), .completion = COMPLETE_FOLDER },
		{ "no-buildid-cache", 0, NULL, "do not add them, even if the output is perf.data",
		  OPTION_FLAG(OWNER, no_buildid_cache) },
		{ 0 },
	},
};

static const struct option_table what_table = {
	"What to record",
	(const struct option_row[]){
		{ "freq", 'F', "HZ",
		  "take this many samples per second on each vCPU (default 1000)",
		  OPTION_NUMBER(OWNER, freq, 1, 1000000) },
		{ "period", 0, "N", "take a sample every N ns or instructions (default 1000000)",
		  OPTION_NUMBER(OWNER, period, 1, INT64_MAX) },
		{ "clock", 0, "CLOCK", "sample by host (default), guest or instructions",
		  OPTION_WORD(OWNER, clock, clocks) },
		{ "trace", 0, NULL, "record every call, return and jump instead of samples",
		  OPTION_FLAG(OWNER, trace) },
		{ "check", 0, "SECONDS",
		  "with --trace: also take a sample every SECONDS, to check its stacks",
		  OPTION_SECONDS(OWNER, check) },
		{ "start-at", 0, "LOCATION",
		  "start when the guest reaches this function or address (may be repeated)",
		  OPTION_APPEND(OWNER, hooks[HOOK_START]) },
		{ "from", .same_as = "start-at" },
		{ "stop-at", 0, "LOCATION", "pause when the guest reaches this function or address",
		  OPTION_APPEND(OWNER, hooks[HOOK_STOP]) },
		{ "to", .same_as = "stop-at" },
		{ "alloc", 0, "FUNC",
		  "also record allocations by FUNC[:argN:ret] (may be repeated)",
		  OPTION_APPEND(OWNER, hooks[HOOK_ALLOC]) },
		{ "free", 0, "FUNC", "also record frees by FUNC[:argN]",
		  OPTION_APPEND(OWNER, hooks[HOOK_FREE]) },
		{ "realloc", 0, "FUNC", "also record resizes by FUNC[:argP:argS:ret]",
		  OPTION_APPEND(OWNER, hooks[HOOK_REALLOC]) },
		{ "stack", 0, "BYTES",
		  "copy this much stack with each sample (default 8192, 0: none)", .set = set_stack,
		  .most = 65536 },
		{ "vcpu", 0, "LIST", "record only these vCPUs, such as 0,2-3",
		  OPTION_SET(set_vcpus, OWNER, vcpus) },
		{ "level", 0, "LEVEL",
		  "record only user or kernel code, or all (default; pt: user)",
		  OPTION_SET(set_level, OWNER, level), .words = select_levels },
		{ 0 },
	},
};

static const struct option_table end_table = {
	"When to stop",
	(const struct option_row[]){
		{ "duration", 0, "SECONDS",
		  "end the guest, or the recording of pt, after this time",
		  OPTION_SECONDS(OWNER, duration) },
		{ "until", 0, "TEXT", "end the guest when it prints TEXT",
		  OPTION_TEXT(OWNER, until) },
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

static const struct option_table pt_table = {
	"Intel PT",
	(const struct option_row[]){
		{ "pid", 'p', "PID", "trace this running process", OPTION_TEXT(OWNER, pt.pid) },
		{ "all-cpus", 'a', NULL, "trace all CPUs", OPTION_FLAG(OWNER, pt.all_cpus) },
		{ "cpu", 'C', "LIST", "trace these CPUs, such as 0,2-3",
		  OPTION_SET(set_vcpus, OWNER, pt.cpus) },
		{ "trigger", 0, "FUNC", "keep only what led to FUNC, each time it is reached",
		  OPTION_TEXT(OWNER, pt.trigger) },
		{ "snapshot", 0, NULL, "keep only the latest part, at SIGUSR2 and at the end",
		  OPTION_FLAG(OWNER, pt.snapshot) },
		{ "filter", 0, "FILTER", "trace only this code, such as 'filter main @ ./app'",
		  OPTION_TEXT(OWNER, pt.filter) },
		{ "buffer", 0, "SIZE", "buffer for each CPU, such as 4M (default: perf decides)",
		  OPTION_SET(set_size, OWNER, pt.buffer) },
		{ 0 },
	},
};

static const struct option_table control_table = {
	"Control",
	(const struct option_row[]){
		{ "control", 0, "SOCKET", "create this socket for --attach",
		  OPTION_TEXT(OWNER, control), .completion = COMPLETE_FILE },
		{ "paused", 0, NULL, "record nothing until --attach SOCKET start",
		  OPTION_FLAG(OWNER, paused) },
		{ "attach", 0, "SOCKET", "send start, stop, flush or status to a running guest",
		  OPTION_TEXT(OWNER, attach), .completion = COMPLETE_FILE },
		{ "print", 0, NULL, "print the command line of QEMU or perf, and exit",
		  OPTION_FLAG(OWNER, print) },
		{ "dry-run", .same_as = "print" },
		{ 0 },
	},
};
/* clang-format on */

/* ---- the run ---- */

struct recording {
	struct args *args;
	const struct record_options *asked; /* args->state */
	struct output *outputs;		    /* to convert to; owned */
	size_t nr_outputs;
	const char *raw; /* keep the raw stream here, by -o or --keep; NULL: remove it */
	struct qemu_line line;
	struct record_files files;
	struct buf plugin; /* the plugin's arguments */
	struct relay relay;
	struct guest guest;
	struct err err;
};

static int attach(const struct args *args, const char *socket, struct err *err)
{
	static const char *const known[] = { "start", "stop", "flush", "status" };
	struct control control = { .fd = -1 };
	const char *command = args->nr_inputs == 1 ? args->inputs[0] : "";
	char reply[CONTROL_LINE];
	bool good = false;
	int ret;

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		good |= !strcmp(command, known[i]);
	if (!good)
		return err_set(err, ERR_USAGE,
			       "--attach SOCKET expects start, stop, flush or status");
	ret = control_connect(&control, socket, PATIENCE, err);
	if (ret == 0)
		ret = control_ask(&control, command, reply, err);
	control_close(&control);
	if (ret < 0)
		return -1;
	for (char *word = strtok(reply, " "); word; word = strtok(NULL, " "))
		printf("%s\n", word);
	return 0;
}

/* Rejects options that do not work together. */
static int check_options(const struct args *args, struct err *err)
{
	const struct record_options *asked = args->state;

	if (!args->nr_inputs)
		return err_set(
			err, ERR_USAGE,
			"no QEMU command: use kscope record qemu [OPTIONS] -- qemu-system-...");
	if (asked->freq && asked->period)
		return err_set(err, ERR_USAGE, "--freq and --period cannot be used together");
	if (asked->freq && asked->clock == CLOCK_INSTRUCTIONS)
		return err_set(err, ERR_USAGE,
			       "--freq does not work with --clock instructions: use --period");
	if (asked->period && asked->period < 1000 && asked->clock != CLOCK_INSTRUCTIONS)
		return err_set(err, ERR_USAGE, "--period must be at least 1000 ns");
	if (asked->trace && (asked->freq || asked->period))
		log_warn("--trace records every branch: --%s has no effect",
			 asked->freq ? "freq" : "period");
	if (asked->check && !asked->trace)
		return err_set(err, ERR_USAGE, "--check takes samples inside a trace: use --trace");
	if (asked->paused && !asked->control)
		return err_set(err, ERR_USAGE,
			       "--paused needs --control SOCKET, to start the recording later");
	if (asked->until && !*asked->until)
		return err_set(err, ERR_USAGE, "--until expects text");
	if (asked->print && (asked->until || asked->duration))
		return err_set(err, ERR_USAGE,
			       "--until and --duration do not work with --print, which does not "
			       "run the guest");
	return 0;
}

static int check_line(const struct recording *r, struct err *err)
{
	const struct qemu_line *line = &r->line;

	if (line->accelerator)
		return err_set(err, ERR_USAGE,
			       "%s: the plugin sees only code that QEMU translates itself (TCG); "
			       "omit the accelerator",
			       line->accelerator);
	if (line->daemon && !r->asked->print)
		return err_set(err, ERR_USAGE,
			       "-daemonize: kscope must see the guest end; omit the option, or "
			       "start QEMU yourself (see --print)");
	if (r->asked->until && line->serial == SERIAL_ELSEWHERE)
		return err_set(err, ERR_USAGE,
			       "--until cannot watch the serial port (-serial %s): use mon:stdio "
			       "or file:FILE",
			       line->serial_text);
	return 0;
}

static bool is_raw(const struct output_option *option)
{
	size_t len = strlen(option->path);

	return option->writer ? !strcmp(option->writer, RAW)
			      : len > 7 && !strcmp(option->path + len - 7, "." RAW);
}

static int add_output(struct recording *r, const struct output_option *option)
{
	struct output *output = &r->outputs[r->nr_outputs];

	if (!strcmp(option->path, "-"))
		return err_set(&r->err, ERR_USAGE,
			       "standard output belongs to the guest: use -o FILE");
	if (is_raw(option) && r->raw)
		return err_set(&r->err, ERR_USAGE,
			       "%s and %s: the raw stream can go to only one file", r->raw,
			       option->path);
	if (is_raw(option)) {
		r->raw = option->path;
		return 0;
	}
	output->path = option->path;
	output->ops = writer_choose(option->writer, option->path, &r->err);
	r->nr_outputs += output->ops != NULL;
	return output->ops ? 0 : -1;
}

static int choose_outputs(struct recording *r)
{
	struct args *args = r->args;
	const struct output_option unnamed = { "perf.data", args->writer };
	const struct output_option *options = args->nr_outputs ? args->outputs : &unnamed;
	size_t nr = args->nr_outputs ? args->nr_outputs : 1;

	r->raw = r->asked->keep;
	r->outputs = xcalloc(nr, sizeof(*r->outputs));
	for (size_t i = 0; i < nr; i++) {
		if (add_output(r, &options[i]) < 0)
			return -1;
	}
	return 0;
}

static bool is_readable(const char *path, struct err *err)
{
	struct symfile *file = symfile_open(path, NULL, err);

	symfile_close(file);
	return file;
}

/* Report a wrong binary now, not after an hour of recording. */
static int check_binaries(const struct options *options, struct err *err)
{
	if (options->kernel && !is_readable(options->kernel, err))
		return -1;
	for (size_t i = 0; i < options->nr_elfs; i++) {
		if (!is_readable(options->elfs[i].path, err))
			return -1;
	}
	return 0;
}

/* Adds the binaries that QEMU's command line names; a kernel only if it is readable. */
static void add_binaries(struct recording *r)
{
	struct options *options = &r->args->options;
	const char *kernel = options->kernel ? NULL : r->line.kernel, *program = r->line.program;
	struct err err = { 0 };

	if (kernel && is_readable(kernel, &err))
		options->kernel = kernel;
	else if (kernel && access(kernel, R_OK) == 0)
		log_warn("%s; give its symbols with --kernel FILE", err.msg);
	if (!program || access(program, R_OK))
		return;
	GROW(options->elfs, options->nr_elfs + 1, options->cap_elfs);
	options->elfs[options->nr_elfs++] = (struct elf_option){ .pid = NO_TASK, .path = program };
}

/* Report an output that cannot be written now, not after an hour of recording. */
static int try_outputs(struct recording *r)
{
	for (size_t i = 0; i < r->nr_outputs; i++) {
		if (output_try(&r->outputs[i], &r->err) < 0)
			return -1;
	}
	return 0;
}

static int make_plugin_text(struct recording *r, const char *out, const char *control)
{
	struct plugin_paths paths = { .plugin = r->files.plugin, .out = out, .control = control };

	return line_plugin(&r->plugin, &paths, &r->line, r->asked, &r->args->options, &r->err);
}

static void say_conversion(const struct recording *r, const char *raw)
{
	struct buf text = { 0 };

	for (size_t i = 0; i < r->nr_outputs; i++) {
		const struct output *output = &r->outputs[i];
		struct err none = { 0 };

		if (writer_choose(NULL, output->path, &none) != output->ops)
			buf_addf(&text, " -t %s", output->ops->name);
		buf_addf(&text, " -o %s", output->path);
	}
	log_say("when QEMU has exited, run: kscope convert %s%s", raw, text.data);
	buf_release(&text);
}

static int print_line(struct recording *r)
{
	const char *raw = r->raw ? r->raw : "recording." RAW;
	char *out = files_absolute(raw);
	char *control = r->asked->control ? files_absolute(r->asked->control) : NULL;
	int ret = make_plugin_text(r, out, control);

	if (ret == 0) {
		const char **words = line_words(&r->line, r->plugin.data, NULL);
		struct buf text = { 0 };

		line_quote(&text, words);
		printf("%s\n", text.data);
		if (r->nr_outputs)
			say_conversion(r, raw);
		buf_release(&text);
		free(words);
	}
	free(control);
	free(out);
	return ret;
}

static bool on_terminal(const struct recording *r)
{
	return r->line.user || r->line.serial == SERIAL_STDOUT;
}

static int watch_output(struct recording *r, char *serial, size_t size)
{
	struct guest *guest = &r->guest;

	guest->relay = &r->relay;
	if (r->line.serial == SERIAL_FILE) {
		relay_follow(&r->relay, r->line.serial_file, r->line.serial_appends);
		return 0;
	}
	guest->relay_stdout = r->line.serial == SERIAL_STDOUT;
	if (relay_open(&r->relay, &r->err) < 0)
		return -1;
	if (!guest->relay_stdout)
		snprintf(serial, size, "file:/dev/fd/%d", r->relay.into);
	return 0;
}

static int run_guest(struct recording *r)
{
	char serial[40] = "";
	const char **words;
	int ret;

	r->guest = (struct guest){
		.control = r->files.control,
		.duration = r->asked->duration,
		.trace = r->asked->trace,
		/* The status line must not overwrite the guest's output. */
		.live = log_level > 0 && isatty(STDERR_FILENO) &&
			!(on_terminal(r) && isatty(STDOUT_FILENO)),
	};
	if (r->asked->until && watch_output(r, serial, sizeof(serial)) < 0)
		return -1;
	words = line_words(&r->line, r->plugin.data, *serial ? serial : NULL);
	r->guest.words = words;
	ret = guest_run(&r->guest, &r->err);
	r->guest.words = r->line.words;
	free(words);
	return ret;
}

/* Reports how the guest ended, unless it ended as expected. */
static void say_end(const struct recording *r)
{
	const struct guest *guest = &r->guest;
	const char *name = r->line.words[0];
	bool asked = guest->why != GUEST_ENDED;

	if (guest->killed)
		log_warn("%s was killed: data that it had not written yet is lost", name);
	else if (WIFSIGNALED(guest->status) && !asked)
		log_warn("%s was terminated by signal %d (%s): data that it had written is kept",
			 name, WTERMSIG(guest->status), strsignal(WTERMSIG(guest->status)));
	else if (WIFEXITED(guest->status) && WEXITSTATUS(guest->status))
		log_say("%s exited with status %d", name, WEXITSTATUS(guest->status));
}

static const char *clock_text(const struct record_options *asked, char *text, size_t size)
{
	static const char *const names[] = { "host time", "guest time", "instructions" };
	uint64_t period = asked->freq ? 1000000000 / asked->freq : asked->period;

	period = period ? period : 1000000;
	if (asked->trace)
		snprintf(text, size, "full trace");
	else if (asked->clock == CLOCK_INSTRUCTIONS)
		snprintf(text, size, "every %" PRIu64 " instructions", period);
	else
		snprintf(text, size, "every %g ms of %s", (double)period / 1e6,
			 names[asked->clock]);
	return text;
}

static void say_counts(const struct recording *r, const struct job *job)
{
	uint64_t samples = job_samples(job), others = job_others(job);
	const uint64_t *by_cpu = job->count.by_cpu;
	struct buf text = { 0 };
	unsigned cpus = 0, last = 0;
	char clock[80];

	for (unsigned i = 0; i < COUNT_CPUS; i++) {
		if (by_cpu[i]) {
			cpus++;
			last = i;
		}
	}
	/* A trace that is not converted was not read either: reading takes longer than recording. */
	if (r->asked->trace && !r->nr_outputs) {
		log_say("%.1f MB of trace in %.1f s", (double)files_written(&r->files) / 1e6,
			(double)r->guest.took / 1e9);
		return;
	}
	buf_addf(&text, "%" PRIu64 " samples", samples);
	for (unsigned i = 0; cpus > 1 && i <= last; i++)
		buf_addf(&text, "%s%" PRIu64, i ? " " : " (by vCPU: ", by_cpu[i]);
	buf_adds(&text, cpus > 1 ? ")" : "");
	if (others)
		buf_addf(&text, ", %" PRIu64 " %s", others,
			 r->asked->trace ? "jumps" : "allocations");
	buf_addf(&text, ", %" PRIu64 " lost, %s, in %.1f s", job->lost,
		 clock_text(r->asked, clock, sizeof(clock)), (double)r->guest.took / 1e9);
	log_say("%s", text.data);
	buf_release(&text);
	if (!samples && !others)
		log_warn("nothing was recorded: the guest ended too early, or ran no code that the "
			 "options select");
}

/* perf.data does not name the kernel's symbols: perf needs its cache, or -k. */
static void say_perf(const struct recording *r, const struct job *job, const char *path)
{
	const char *kernel = job->kernel_cached ? NULL : r->args->options.kernel;
	const char *option = kernel ? " -k " : "";

	kernel = kernel ? kernel : "";
	log_say("wrote %s; next: kscope report %s%s%s, or perf report -i %s%s%s", path, path,
		option, kernel, path, option, kernel);
}

static void say_next(const struct recording *r, const struct job *job)
{
	for (size_t i = 0; i < r->nr_outputs; i++) {
		const struct output *output = &r->outputs[i];

		if (output->ops->needs & WRITER_SYMBOLS)
			say_perf(r, job, output->path);
		else
			log_say("wrote %s%s%s", output->path, output->ops->next ? "; next: " : "",
				output->ops->next ? output->ops->next : "");
	}
	if (r->raw && r->nr_outputs)
		log_say("kept the raw stream: %s", r->raw);
	else if (r->raw)
		log_say("wrote %s; next: kscope report %s", r->raw, r->raw);
}

static void count_event(struct job *job, const struct event *ev)
{
	if (ev->kind == EVENT_LOST)
		job->lost += ev->lost.count;
	if (ev->kind == EVENT_SAMPLE) {
		job->count.samples++;
		if (ev->cpu < COUNT_CPUS)
			job->count.by_cpu[ev->cpu]++;
	}
	job->read[ev->kind]++;
}

/* Returns whether there was any sample, allocation, call or branch so far. */
static bool count_events(struct job *job, const struct event *events, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		count_event(job, &events[i]);
	return job->count.samples || job_others(job);
}

/* Counts the events of the raw stream; until_first: only up to the first sample, call, etc. */
static int count_raw(struct job *job, bool until_first)
{
	struct strtab strings;
	struct event *events;
	size_t nr;
	int ret;

	strtab_init(&strings);
	ret = job_open(job, &strings);
	while (ret == 0 && (ret = merge_next(&job->merge, &events, &nr)) > 0)
		ret = count_events(job, events, nr) && until_first ? 1 : 0;
	if (ret < 0) {
		job->err = job->err.code ? job->err : job->merge.err;
		log_error("%s", job->err.msg);
	} else {
		job->partial = job->merge.inputs[0].reader.partial ||
			       job->merge.inputs[0].reader.nr_damaged;
	}
	job_release(job);
	strtab_release(&strings);
	return ret < 0 ? (int)job->err.code : job->partial ? ERR_PARTIAL : ERR_NONE;
}

static void raw_job(const struct recording *r, struct job *job, const char *const *input)
{

	args_job(r->args, job);
	job->inputs = input;
	job->nr_inputs = 1;
	job->reader = RAW;
	job->buildid_cache = r->asked->buildid_cache;
	job->selection = (struct selection){ 0 }; /* the plugin has applied --level already */
}

/* Whether QEMU gave up before it ran code, possibly after it loaded the plugin. */
static bool gave_up(const struct recording *r)
{
	const char *input = r->files.raw;
	uint64_t bytes = files_written(&r->files);
	struct job job;

	if (!bytes || bytes > NOT_EMPTY)
		return !bytes;
	if (r->guest.why != GUEST_ENDED || !WIFEXITED(r->guest.status) ||
	    !WEXITSTATUS(r->guest.status))
		return false;
	raw_job(r, &job, &input);
	count_raw(&job, true);
	return !job.count.samples && !job_others(&job);
}

/* Like perf record, adds the binaries of a perf.data to perf's cache by default. */
static void fill_cache_unasked(const struct recording *r, struct job *job)
{
	bool wanted = false;

	for (size_t i = 0; i < r->nr_outputs; i++)
		wanted |= r->outputs[i].ops->needs & WRITER_SYMBOLS;
	if (job->buildid_cache || r->asked->no_buildid_cache || !wanted || !getenv("HOME"))
		return;
	job->buildid_cache = "";
	job->cache_unasked = true;
}

static int write_output(struct recording *r)
{
	const char *input = r->files.raw;
	struct job job;
	int code;

	raw_job(r, &job, &input);
	fill_cache_unasked(r, &job);
	code = r->nr_outputs ? convert_files(&job, r->outputs, r->nr_outputs)
			     : count_raw(&job, r->asked->trace);
	if (code > ERR_PARTIAL) {
		r->files.raw_stays = true;
		log_say("kept the raw stream: %s (see kscope convert)", r->files.raw);
		return code;
	}
	say_counts(r, &job);
	say_next(r, &job);
	if (r->asked->until && !r->relay.found && r->guest.why != GUEST_WAS_INTERRUPTED) {
		log_warn("the guest did not print '%s'", r->asked->until);
		code = ERR_PARTIAL;
	}
	return code;
}

/* Returns 0, or -1 with r->err set. */
static int prepare(struct recording *r)
{
	const char *beside = r->nr_outputs ? r->outputs[0].path : r->raw;

	if (try_outputs(r) < 0 ||
	    files_prepare(&r->files, r->raw, beside, r->asked->control, &r->err) < 0)
		return -1;
	return make_plugin_text(r, r->files.raw, r->files.control);
}

/* Returns the exit code, or -1 with r->err set. */
static int record(struct recording *r)
{
	if (check_options(r->args, &r->err) < 0)
		return -1;
	line_read(&r->line, r->args->inputs, r->args->nr_inputs);
	if (check_line(r, &r->err) < 0 || choose_outputs(r) < 0 ||
	    check_binaries(&r->args->options, &r->err) < 0)
		return -1;
	add_binaries(r);
	r->files.plugin = files_plugin(&r->err);
	if (!r->files.plugin)
		return -1;
	if (r->asked->print)
		return print_line(r);
	if (prepare(r) < 0 || run_guest(r) < 0)
		return -1;
	signal(SIGPIPE, SIG_IGN); /* the result counts, even if nobody reads the messages */
	if (gave_up(r)) {
		files_restore(&r->files);
		refusal_explain(&r->guest, &r->line, r->files.plugin);
		return ERR_INPUT;
	}
	say_end(r);
	return write_output(r);
}

/* ---- emulate ---- */

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
			       args->first);
	ops = args->nr_outputs ? writer_choose(NULL, args->outputs[0].path, &none) : NULL;
	if (ops && strcmp(ops->name, "perfdata") != 0)
		return err_set(err, ERR_USAGE,
			       "%s: record %s writes perf.data; make the %s of it with "
			       "kscope convert",
			       args->outputs[0].path, args->first, ops->name);
	return 0;
}

static int run_emulate(struct recording *r)
{
	const struct args *args = r->args;
	const struct record_options *asked = args->state;
	const char **words = xcalloc(args->nr_inputs + 1, sizeof(*words));
	struct emulation emulation = {
		.words = words,
		.out = perfdata_path(args),
		.qemu = asked->qemu,
	};
	int code = -1;

	if (!args->nr_inputs)
		code = err_set(&r->err, ERR_USAGE,
			       "no program: use kscope record emulate [-o FILE] -- PROGRAM...");
	memcpy(words, args->inputs, args->nr_inputs * sizeof(*words));
	if (!r->err.code && check_perfdata(args, &r->err) == 0)
		code = emulate(&emulation, &r->err);
	free(words);
	return code;
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

static int run_pt(struct recording *r)
{
	const struct args *args = r->args;
	struct pt pt = {
		.asked = &r->asked->pt,
		.level = r->asked->level ? r->asked->level : "user",
		.out = perfdata_path(args),
		.duration = r->asked->duration,
		.words = args->inputs,
		.nr_words = args->nr_inputs,
		.root = "",
		.privileged = pt_is_privileged(),
	};
	char **line;
	int ret;

	if (check_perfdata(args, &r->err) < 0 || pt_check_options(&pt, &r->err) < 0 ||
	    (!r->asked->print && pt_check_machine(&pt, &r->err) < 0))
		return -1;
	line = pt_line(&pt, &r->err);
	if (!line)
		return -1;
	ret = r->asked->print ? print_perf(line) : pt_run(&pt, line, &r->err);
	pt_free_line(line);
	return ret;
}

/* ---- the verb ---- */

static int run_qemu(struct recording *r)
{
	return r->asked->attach ? attach(r->args, r->asked->attach, &r->err) : record(r);
}

/* What can be recorded. The order is that of the help. */
static const struct record_source {
	const char *name;
	const struct option_use *options; /* its own */
	const char *const *shared;	  /* names of options of others that it takes, too */
	int (*run)(struct recording *r);
} sources[] = {
	{ "qemu",
	  OPTION_USES({ &output_table, 0 }, { &what_table, 0 }, { &end_table, 0 },
		      { &control_table, 0 }, { &build_dir_table, 0 }, { &names_table, 0 },
		      { &elf_table, 0 }, { &slide_table, 0 }, { &unwind_table, 0 }),
	  NULL, run_qemu },
	{ "emulate", OPTION_USES({ &emulate_table, 0 }), (const char *const[]){ "output", NULL },
	  run_emulate },
	{ "pt", OPTION_USES({ &pt_table, 0 }),
	  (const char *const[]){ "output", "level", "duration", "print", NULL }, run_pt },
};

static bool takes(const struct record_source *source, const char *option)
{
	for (const char *const *name = source->shared; name && *name; name++) {
		if (!strcmp(*name, option))
			return true;
	}
	return option_in(source->options, option);
}

static int run_source(struct recording *r)
{
	const struct option_line *given = &r->args->given;
	const struct record_source *source = NULL;

	for (size_t i = 0; i < sizeof(sources) / sizeof(sources[0]); i++) {
		if (!strcmp(sources[i].name, r->args->first))
			source = &sources[i];
	}
	if (!source)
		return err_set(&r->err, ERR_USAGE, "cannot record '%s': only qemu, emulate and pt",
			       r->args->first);
	for (size_t i = 0; i < given->nr; i++) {
		if (!takes(source, given->all[i].row->name))
			return err_set(&r->err, ERR_USAGE, "--%s does not work with record %s",
				       given->all[i].row->name, source->name);
	}
	return source->run(r);
}

static int run(struct args *args)
{
	struct recording r = { .args = args, .asked = args->state };
	int code;

	relay_init(&r.relay, r.asked->until);
	code = run_source(&r);
	if (code < 0) {
		log_error("%s", r.err.msg);
		code = r.err.code;
	}
	files_release(&r.files);
	if (r.guest.why != GUEST_WAS_INTERRUPTED)
		relay_finish(&r.relay, -1);
	relay_release(&r.relay);
	line_release(&r.line);
	free(r.outputs);
	buf_release(&r.plugin);
	return code;
}

const struct command cmd_record = {
	.name = "record",
	.usage = "record qemu [OPTIONS] [--] QEMU...\n"
		 "       kscope record emulate [-o FILE] [--qemu FILE] [--] PROGRAM...\n"
		 "       kscope record pt [-o FILE] [OPTIONS] [--pid PID | [--] PROGRAM...]",
	.about = "Record an unmodified QEMU guest, or the Intel PT trace of a program.\n"
		 "QEMU... is the usual QEMU command line. kscope adds its plugin, takes the "
		 "kernel's symbols\n"
		 "from -kernel, and writes the output when the guest ends. Ctrl-C ends the guest.\n"
		 "PROGRAM... is an x86-64 Linux program and its arguments. kscope runs it in QEMU "
		 "and writes a\n"
		 "perf.data with Intel PT, for machines whose processor does not have it. pt "
		 "traces a program with\n"
		 "perf, on a processor that has it.",
	.examples =
		"  kscope record qemu -- qemu-system-x86_64 -kernel vmlinuz -nographic\n"
		"  kscope record qemu -F 5000 --until 'login:' -o boot.svg -- qemu-system-aarch64 "
		"...\n"
		"  kscope record qemu --clock instructions --period 10000 -- qemu-riscv64 "
		"./program\n"
		"  kscope record qemu --alloc kmalloc --free kfree --elf init -- ./run-qemu.sh\n"
		"  kscope record qemu --paused --control ctl -- qemu-system-x86_64 ... &\n"
		"  kscope record qemu --attach ctl start\n"
		"  kscope record emulate -o ls.data -- ls -l /tmp\n"
		"  kscope record pt -o ls.data -- ls -l /tmp\n"
		"  kscope record pt --pid 1234 --trigger handle_timeout\n",
	.options = OPTION_USES(
		{ &output_table, 0 }, { &what_table, 0 }, { &end_table, 0 }, { &emulate_table, 0 },
		{ &pt_table, 0 }, { &control_table, 0 }, { &build_dir_table, OPTION_ELSEWHERE },
		{ &names_table, OPTION_ELSEWHERE }, { &elf_table, OPTION_ELSEWHERE },
		{ &slide_table, OPTION_ELSEWHERE }, { &unwind_table, OPTION_ELSEWHERE }),
	.state_size = sizeof(struct record_options),
	.first = "qemu emulate pt",
	.run = run,
};

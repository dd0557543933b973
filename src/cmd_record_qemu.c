// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * record qemu: runs a guest of QEMU with the plugin, which writes the raw stream. This file calls the parts in record/ in
 * order.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"
#include "cmd_record.h"
#include "record/control.h"
#include "record/guest.h"
#include "record/line.h"
#include "record/refusal.h"
#include "recording.h"
#include "unwind/unwind.h"

#define PATIENCE 10	/* seconds */
#define NOT_EMPTY 65536 /* bytes: a larger recording has samples */

/* ---- options ---- */

static const char *const clocks[] = { "host", "guest", "instructions", NULL };

/* record_set_vcpus() and record_set_level() only check the text, which goes to the plugin unchanged. */
int record_set_vcpus(const struct option_row *row, void *field, const char *arg, struct err *err)
{
	struct id_set checked = { 0 };
	int ret = select_ids(row, &checked, arg, err);

	free(checked.ranges);
	return ret < 0 ? -1 : option_text(row, field, arg, err);
}

int record_set_level(const struct option_row *row, void *field, const char *arg, struct err *err)
{
	enum level checked;

	return option_word(row, &checked, arg, err) < 0 ? -1 : option_text(row, field, arg, err);
}

int record_set_stack(const struct option_row *row, void *field, const char *arg, struct err *err)
{
	struct record_options *asked = field;

	asked->stack_given = true;
	return option_number(row, &asked->stack, arg, err);
}

#define OWNER struct record_options

/* clang-format off: tables are read by the row. */
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
		  "copy this much stack with each sample (default 8192, 0: none)",
		  .set = record_set_stack, .most = 65536 },
		{ "vcpu", 0, "LIST", "record only these vCPUs, such as 0,2-3",
		  OPTION_SET(record_set_vcpus, OWNER, vcpus) },
		{ "level", 0, "LEVEL", "record only user or kernel code, or all (default)",
		  OPTION_SET(record_set_level, OWNER, level), .words = select_levels },
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

struct qemu_recording {
	struct recording r;
	struct qemu_line line;
	struct buf plugin; /* the plugin's arguments */
	struct relay relay;
	struct guest guest;
	char clock[80];
};

static int attach(const struct args *args, const char *socket, struct err *err)
{
	static const char *const known[] = { "start", "stop", "flush", "status" };
	struct control control = { .fd = -1 };
	const char *command = args->nr_inputs == 1 ? args->inputs[0] : "";
	char reply[CONTROL_LINE];
	struct buf plain = { 0 };
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
		printf("%s\n", text_plain(&plain, word));
	buf_release(&plain);
	return 0;
}

/* Rejects options that do not work together. */
static int check_options(const struct args *args, struct err *err)
{
	const struct record_options *asked = args->state;

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
	if (asked->print && (asked->until || asked->duration))
		return err_set(err, ERR_USAGE,
			       "--until and --duration do not work with --print, which does not "
			       "run the guest");
	return 0;
}

static bool on_terminal(const struct qemu_recording *q)
{
	return q->line.user || q->line.serial == SERIAL_STDOUT;
}

static int check_line(const struct qemu_recording *q, struct err *err)
{
	const struct record_options *asked = q->r.asked;
	const struct qemu_line *line = &q->line;

	if (line->accelerator)
		return err_set(err, ERR_USAGE,
			       "%s: the plugin sees only code that QEMU translates itself (TCG); "
			       "omit the accelerator",
			       line->accelerator);
	if (line->daemon && !asked->print)
		return err_set(err, ERR_USAGE,
			       "-daemonize: kscope must see the guest end; omit the option, or "
			       "start QEMU yourself (see --print)");
	if (q->r.top && on_terminal(q) && isatty(STDOUT_FILENO))
		return err_set(
			err, ERR_USAGE,
			"the guest and the view cannot share this terminal: add -serial file:FILE "
			"to QEMU's command line");
	if (asked->until && line->serial == SERIAL_ELSEWHERE)
		return err_set(err, ERR_USAGE,
			       "--until cannot watch the serial port (-serial %s): use mon:stdio "
			       "or file:FILE",
			       line->serial_text);
	return 0;
}

/* Adds the binaries that QEMU's command line names; a kernel only if it is readable. */
static void add_binaries(struct qemu_recording *q)
{
	struct options *options = &q->r.args->options;
	const char *kernel = options->kernel ? NULL : q->line.kernel, *program = q->line.program;
	struct err err = { 0 };

	if (kernel && recording_can_read(kernel, &err))
		options->kernel = kernel;
	else if (kernel && access(kernel, R_OK) == 0)
		log_warn("%s; give its symbols with --kernel FILE", err.msg);
	if (!program || access(program, R_OK))
		return;
	GROW(options->elfs, options->nr_elfs + 1, options->cap_elfs);
	options->elfs[options->nr_elfs++] = (struct elf_option){ .pid = NO_TASK, .path = program };
}

static int make_plugin_text(struct qemu_recording *q, const char *out, const char *control)
{
	struct plugin_paths paths = { .plugin = q->r.files.plugin, .out = out, .control = control };

	return line_plugin(&q->plugin, &paths, &q->line, q->r.asked, &q->r.args->options,
			   &q->r.err);
}

static void say_conversion(const struct qemu_recording *q, const char *raw)
{
	struct buf text = { 0 };

	for (size_t i = 0; i < q->r.nr_outputs; i++) {
		const struct output *output = &q->r.outputs[i];
		struct err none = { 0 };

		if (writer_choose(NULL, output->path, &none) != output->ops)
			buf_addf(&text, " -t %s", output->ops->name);
		buf_addf(&text, " -o %s", output->path);
	}
	log_say("when QEMU has exited, run: kscope convert %s%s", raw, text.data);
	buf_release(&text);
}

static int print_line(struct qemu_recording *q)
{
	const char *raw = q->r.raw ? q->r.raw : "recording." RAW;
	char *out = files_absolute(raw);
	char *control = q->r.asked->control ? files_absolute(q->r.asked->control) : NULL;
	int ret = make_plugin_text(q, out, control);

	if (ret == 0) {
		const char **words = line_words(&q->line, q->plugin.data, NULL);
		struct buf text = { 0 };

		line_quote(&text, words);
		printf("%s\n", text.data);
		if (q->r.nr_outputs)
			say_conversion(q, raw);
		buf_release(&text);
		free(words);
	}
	free(control);
	free(out);
	return ret;
}

static int watch_output(struct qemu_recording *q, char *serial, size_t size)
{
	struct guest *guest = &q->guest;

	guest->relay = &q->relay;
	if (q->line.serial == SERIAL_FILE) {
		relay_follow(&q->relay, q->line.serial_file, q->line.serial_appends);
		return 0;
	}
	guest->relay_stdout = q->line.serial == SERIAL_STDOUT;
	if (relay_open(&q->relay, &q->r.err) < 0)
		return -1;
	if (!guest->relay_stdout)
		snprintf(serial, size, "file:/dev/fd/%d", q->relay.into);
	return 0;
}

static int run_guest(struct qemu_recording *q)
{
	struct recording *r = &q->r;
	char serial[40] = "";
	const char **words;
	int ret;

	q->guest = (struct guest){ .control = r->files.control, .trace = r->asked->trace };
	r->source =
		(struct record_source){ .ops = &source_guest, .priv = &q->guest, .counts = true };
	/* The status line must not overwrite the guest's output. */
	r->unseen = on_terminal(q) && isatty(STDOUT_FILENO);
	if (r->asked->until && watch_output(q, serial, sizeof(serial)) < 0)
		return -1;
	words = line_words(&q->line, q->plugin.data, *serial ? serial : NULL);
	q->guest.words = words;
	ret = recording_run(r);
	q->guest.words = q->line.words;
	free(words);
	return ret;
}

/* Reports how the guest ended, unless it ended as expected. */
static void say_end(const struct qemu_recording *q)
{
	const struct guest *guest = &q->guest;
	const char *name = q->line.words[0];
	bool asked = q->r.session.why != SESSION_ENDED;

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

/* Whether QEMU gave up before it ran code, possibly after it loaded the plugin. */
static bool gave_up(const struct qemu_recording *q)
{
	const char *input = q->r.files.raw;
	uint64_t bytes = files_written(&q->r.files);
	struct job job;

	if (!bytes || bytes > NOT_EMPTY)
		return !bytes;
	if (q->r.session.why != SESSION_ENDED || !WIFEXITED(q->guest.status) ||
	    !WEXITSTATUS(q->guest.status))
		return false;
	recording_job(&q->r, &job, &input);
	recording_count(&job, true);
	return !job.count.samples && !job_others(&job);
}

static int prepare(struct qemu_recording *q)
{
	struct recording *r = &q->r;

	if (recording_prepare(r) < 0 ||
	    files_prepare_socket(&r->files, r->asked->control, &r->err) < 0)
		return -1;
	return make_plugin_text(q, r->files.raw, r->files.control);
}

/* Returns the exit code, or -1 with err set. */
static int record(struct qemu_recording *q)
{
	struct recording *r = &q->r;

	if (check_options(r->args, &r->err) < 0)
		return -1;
	line_read(&q->line, r->args->inputs, r->args->nr_inputs);
	r->what = q->line.words[0];
	if (check_line(q, &r->err) < 0 || recording_outputs(r, false) < 0)
		return -1;
	add_binaries(q);
	r->files.plugin = files_plugin(&r->err);
	if (!r->files.plugin)
		return -1;
	if (r->asked->print)
		return print_line(q);
	if (prepare(q) < 0 || run_guest(q) < 0)
		return -1;
	if (gave_up(q)) {
		files_restore(&r->files);
		refusal_explain(&q->guest, &q->line, r->files.plugin);
		return ERR_INPUT;
	}
	say_end(q);
	r->clock = clock_text(r->asked, q->clock, sizeof(q->clock));
	return recording_finish(r);
}

static int run(struct args *args)
{
	struct qemu_recording q = { 0 };
	int code;

	recording_init(&q.r, args);
	q.r.format = RAW;
	relay_init(&q.relay, q.r.asked->until);
	code = q.r.asked->attach ? attach(args, q.r.asked->attach, &q.r.err) : record(&q);
	code = recording_release(&q.r, code);
	if (q.r.session.why != SESSION_INTERRUPTED)
		relay_finish(&q.relay, -1);
	relay_release(&q.relay);
	line_release(&q.line);
	buf_release(&q.plugin);
	return code;
}

const struct command record_qemu = {
	.name = "qemu",
	.usage = "qemu [OPTIONS] [--] QEMU...",
	.about = "A guest of QEMU, unmodified.\n"
		 "QEMU... is the usual QEMU command line. kscope adds its plugin, takes the "
		 "kernel's symbols\n"
		 "from -kernel, and writes the output when the guest ends. Ctrl-C ends the guest.",
	.examples =
		"  kscope record qemu -- qemu-system-x86_64 -kernel vmlinuz -nographic\n"
		"  kscope record qemu -F 5000 --until 'login:' -o boot.svg -- qemu-system-aarch64 "
		"...\n"
		"  kscope record qemu --clock instructions --period 10000 -- qemu-riscv64 "
		"./program\n"
		"  kscope record qemu --alloc kmalloc --free kfree --elf init -- ./run-qemu.sh\n"
		"  kscope record qemu --paused --control ctl -- qemu-system-x86_64 ... &\n"
		"  kscope record qemu --attach ctl start\n",
	.options = OPTION_USES({ &record_output_table, 0 }, { &what_table, 0 },
			       { &record_duration_table, 0 }, { &record_until_table, 0 },
			       { &control_table, 0 }, RECORDING_NAMES),
	.state_size = sizeof(struct record_options),
	.missing = "no QEMU command: use kscope record qemu [OPTIONS] -- qemu-system-...",
	.runs = true,
	.run = run,
};

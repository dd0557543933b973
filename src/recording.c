// SPDX-License-Identifier: GPL-2.0-or-later
#include "recording.h"

#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/log.h"
#include "base/mem.h"
#include "cmd.h"
#include "sym/sym.h"
#include "viewer.h"

/* ---- options ---- */

#define OWNER struct record_options

static const char *const raw_format[] = { RAW, NULL };

/* clang-format off: tables are read by the row. */
const struct option_table record_output_table = {
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

const struct option_table record_duration_table = {
	"When to stop",
	(const struct option_row[]){
		{ "duration", 0, "SECONDS", "end the recording after this time",
		  OPTION_SECONDS(OWNER, duration) },
		{ 0 },
	},
};

const struct option_table record_until_table = {
	"When to stop",
	(const struct option_row[]){
		{ "until", 0, "TEXT", "end the recording when the target prints TEXT",
		  OPTION_TEXT(OWNER, until) },
		{ 0 },
	},
};
/* clang-format on */

/* ---- outputs ---- */

void recording_init(struct recording *r, struct args *args)
{
	*r = (struct recording){
		.args = args,
		.asked = args->state,
		.what = args->command->name,
		.top = args->verb == &cmd_top,
	};
}

int recording_release(struct recording *r, int code)
{
	if (code < 0) {
		log_error("%s", r->err.msg);
		code = r->err.code;
	}
	files_release(&r->files);
	free(r->outputs);
	return code;
}

static bool is_raw(const struct output_option *option)
{
	size_t len = strlen(option->path);

	return option->writer ? !strcmp(option->writer, RAW)
			      : len > 7 && !strcmp(option->path + len - 7, "." RAW);
}

static int add_output(struct recording *r, const struct output_option *option, bool to_stdout)
{
	struct output *output = &r->outputs[r->nr_outputs];

	if (!strcmp(option->path, "-") && !to_stdout)
		return err_set(&r->err, ERR_USAGE,
			       "standard output belongs to the guest: use -o FILE");
	if (!strcmp(option->path, "-") && is_raw(option))
		return err_set(&r->err, ERR_USAGE, "the raw stream needs a file: use -o FILE");
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

int recording_outputs(struct recording *r, bool to_stdout)
{
	struct args *args = r->args;
	const struct output_option unnamed = { "perf.data", args->writer };
	const struct output_option *options = args->nr_outputs ? args->outputs : &unnamed;
	size_t nr = args->nr_outputs ? args->nr_outputs : r->top ? 0 : 1;

	r->raw = r->asked->keep;
	r->outputs = xcalloc(nr + 1, sizeof(*r->outputs));
	for (size_t i = 0; i < nr; i++) {
		if (add_output(r, &options[i], to_stdout) < 0)
			return -1;
	}
	return 0;
}

bool recording_can_read(const char *path, struct err *err)
{
	struct symfile *file = symfile_open(path, NULL, err);

	symfile_close(file);
	return file;
}

/* Report a wrong binary now, not after an hour of recording. */
static int check_binaries(const struct options *options, struct err *err)
{
	if (options->kernel && !recording_can_read(options->kernel, err))
		return -1;
	for (size_t i = 0; i < options->nr_elfs; i++) {
		if (!recording_can_read(options->elfs[i].path, err))
			return -1;
	}
	return 0;
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

int recording_prepare(struct recording *r)
{
	if (r->asked->until && !*r->asked->until)
		return err_set(&r->err, ERR_USAGE, "--until expects text");
	if (check_binaries(&r->args->options, &r->err) < 0 || try_outputs(r) < 0)
		return -1;
	return files_prepare(&r->files, r->raw, r->nr_outputs ? r->outputs[0].path : NULL, &r->err);
}

/* ---- the run ---- */

/* A trace is too much to be read while it is made. */
static int start_viewer(struct recording *r, struct viewer *viewer, struct job *like)
{
	if (!r->top && (!r->session.live || r->asked->trace))
		return 0;
	recording_job(r, like, NULL);
	like->nr_inputs = 0;
	if (viewer_start(viewer, like, r->files.raw, r->top ? r->what : NULL, &r->err) < 0)
		return -1;
	viewer->counted = r->source.counts;
	r->session.watcher = &viewer->watcher;
	return 0;
}

int recording_run(struct recording *r)
{
	struct viewer viewer = { 0 };
	int ret, level = log_level;
	struct job like;

	r->session.source = &r->source;
	r->session.duration = r->asked->duration;
	r->session.live = !r->unseen && !r->top && log_level > 0 && isatty(STDERR_FILENO);
	r->source.until = r->asked->until;
	if (start_viewer(r, &viewer, &like) < 0)
		return -1;
	/* The view shows the state of the source; messages would overwrite it. */
	if (r->top)
		log_level = 0;
	ret = session_run(&r->session, &r->err);
	log_level = level;
	viewer_end(&viewer, ret < 0 || r->session.why == SESSION_INTERRUPTED);
	return ret;
}

static int receive(struct recording *r)
{
	int ret;

	r->stream = (struct raw){ .path = r->files.raw };
	r->stream.fd = files_create_raw(&r->files, &r->err);
	if (r->stream.fd < 0)
		return -1;
	ret = recording_run(r);
	close(r->stream.fd);
	if (ret == 0 && !r->stream.bytes && !r->stream.err.code)
		return err_set(&r->err, ERR_INPUT, "%s: received no data", r->target);
	return ret;
}

int recording_receive(struct recording *r, const struct source_ops *ops, void *priv)
{
	int ret;

	r->source = (struct record_source){ .ops = ops, .priv = priv, .raw = &r->stream };
	ret = receive(r);
	if (ret < 0)
		files_restore(&r->files);
	return ret;
}

int recording_address(struct recording *r, const char **address)
{
	const struct args *args = r->args;

	*address = args->inputs[0];
	r->target = *address;
	return args->nr_inputs == 1 ? 0
				    : err_set(&r->err, ERR_USAGE,
					      "unexpected argument '%s': give only one address",
					      args->inputs[1]);
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

int recording_count(struct job *job, bool until_first)
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

void recording_job(const struct recording *r, struct job *job, const char *const *input)
{
	args_job(r->args, job);
	job->inputs = input;
	job->nr_inputs = 1;
	job->reader = r->format;
	job->name = r->raw ? NULL : r->target; /* a raw stream without a name will not stay */
	job->buildid_cache = r->asked->buildid_cache;
	job->selection = (struct selection){ 0 }; /* the source has applied --level already */
}

/* ---- results ---- */

static void say_counts(const struct recording *r, const struct job *job)
{
	uint64_t samples = job_samples(job), others = job_others(job);
	const uint64_t *by_cpu = job->count.by_cpu;
	double took = (double)r->session.took / 1e9;
	struct buf text = { 0 };
	unsigned cpus = 0, last = 0;

	for (unsigned i = 0; i < COUNT_CPUS; i++) {
		if (by_cpu[i]) {
			cpus++;
			last = i;
		}
	}
	/* A trace that is not converted was not read either: reading takes longer than recording. */
	if (r->asked->trace && !r->nr_outputs) {
		log_say("%.1f MB of trace in %.1f s", (double)files_written(&r->files) / 1e6, took);
		return;
	}
	buf_addf(&text, "%" PRIu64 " samples", samples);
	for (unsigned i = 0; cpus > 1 && i <= last; i++)
		buf_addf(&text, "%s%" PRIu64,
			 i		 ? " "
			 : r->source.raw ? " (by cpu: "
					 : " (by vCPU: ",
			 by_cpu[i]);
	buf_adds(&text, cpus > 1 ? ")" : "");
	if (others)
		buf_addf(&text, ", %" PRIu64 " %s", others,
			 r->asked->trace ? "jumps" : "allocations");
	buf_addf(&text, ", %" PRIu64 " lost, %s, in %.1f s", job->lost,
		 r->clock ? r->clock : r->what, took);
	log_say("%s", text.data);
	buf_release(&text);
	if (!samples && !others)
		log_warn("nothing was recorded: %s",
			 r->source.raw ? "the data has no samples"
				       : "the guest ended too early, or ran no code that "
					 "the options select");
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

/* Whether all that the source could deliver is there. */
static int check_end(struct recording *r)
{
	const struct record_source *source = &r->source;
	int code = ERR_NONE;

	if (r->session.why == SESSION_NO_ROOM)
		code = ERR_OUTPUT;
	else if (source->breaks || source->partial)
		code = ERR_PARTIAL;
	if (source->until && !source->found && r->session.why != SESSION_INTERRUPTED) {
		log_warn("the %s did not print '%s'", source->raw ? "target" : "guest",
			 source->until);
		code = code ? code : ERR_PARTIAL;
	}
	return code;
}

static int write_outputs(struct recording *r, struct job *job)
{
	const char *input = r->files.raw;

	recording_job(r, job, &input);
	/* Like perf record, add the binaries of a perf.data to perf's cache by default. */
	job->cache_rule = r->asked->no_buildid_cache ? CACHE_NOTHING : CACHE_ALL;
	return r->nr_outputs ? convert_files(job, r->outputs, r->nr_outputs)
			     : recording_count(job, r->asked->trace);
}

int recording_finish(struct recording *r)
{
	struct job job;
	int code, end;

	signal(SIGPIPE, SIG_IGN); /* the result counts, even if nobody reads the messages */
	if (r->session.why == SESSION_NO_ROOM)
		log_error("%s; the recording ended early", r->source.raw->err.msg);
	if (r->top && !r->nr_outputs && !r->raw)
		return check_end(r);
	files_keep(&r->files); /* now: the conversion may take long, and be interrupted */
	code = write_outputs(r, &job);
	if (code > ERR_PARTIAL) {
		r->files.raw_stays = true;
		log_say("kept the raw stream: %s (see kscope convert)", r->files.raw);
		return code;
	}
	say_counts(r, &job);
	say_next(r, &job);
	end = check_end(r);
	return end > code ? end : code;
}

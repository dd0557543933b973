// SPDX-License-Identifier: GPL-2.0-or-later
#include "convert.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mapped.h"
#include "base/mem.h"
#include "base/progress.h"
#include "base/store.h"
#include "base/text.h"
#include "effect.h"
#include "verify.h"

/* ret: whether the inputs are open. */
static int open_readers(struct job *job, struct strtab *strings, int ret)
{
	const struct options *options = job->options;

	job->where = (struct image_search){
		.build_dir = options->build_dir,
		.symfs = options->symfs,
		.kernel = options->kernel,
		.debug = { .symfs = options->symfs,
			   .folder = options->build_dir,
			   .store = job->list ? job->list : job->merge.archives },
	};
	world_init(&job->world, strings, &job->where);
	return ret < 0 ? -1 : merge_open(&job->merge, options, &job->world, &job->err);
}

int job_open(struct job *job, struct strtab *strings)
{
	int ret = merge_find(&job->merge, job->inputs, job->nr_inputs, job->reader, job->list,
			     &job->err);

	if (ret == 0 && job->merge.archives) {
		ret = archived_merge(&job->archived, job->options, job->merge.archives, &job->err);
		job->options = &job->archived.options;
	}
	for (size_t i = 0; i < job->merge.nr; i++)
		job->merge.inputs[i].expects = job->expects;
	if (ret == 0 && job->name)
		in_rename(&job->merge.inputs[0].in, job->name);
	return open_readers(job, strings, ret);
}

int job_open_in(struct job *job, struct strtab *strings, struct in *in)
{
	merge_take(&job->merge, in, job->reader);
	return open_readers(job, strings, 0);
}

void job_release(struct job *job)
{
	chain_release(&job->chain);
	verify_free(job->chain.verify);
	merge_close(&job->merge);
	world_release(&job->world);
	archived_release(&job->archived);
	free(job->to);
}

/* ---- the end of the chain: the writers ---- */

static bool wants(const struct writer *writer, const struct event *ev)
{
	const struct writer_ops *ops = writer->ops;

	if (ev->outside && !(ops->needs & WRITER_OUTSIDE))
		return false;
	return stage_gives(ops->takes, ev->made_of, EVENT_BIT(ev->kind));
}

static bool is_slice(const struct event *ev)
{
	return ev->kind == EVENT_SLICE || ev->kind == EVENT_STRETCH;
}

static bool is_split(const struct event *ev)
{
	return is_slice(ev) && ev->slice.kind == SLICE_SPLIT;
}

/* Counters have only times: a timeline with another axis has no place for them. */
static bool has_place(const struct chain *chain, const struct writer *writer,
		      const struct event *ev)
{
	return ev->kind != EVENT_COUNTER || !(writer->ops->takes & EVENT_BIT(EVENT_SLICE)) ||
	       chain->options->timeline.axis == AXIS_TIME;
}

static int put(struct writer *writer, const struct event *ev)
{
	if (is_split(ev))
		return writer->next_part ? writer->next_part(writer) : 0;
	return writer->ops->put(writer, ev);
}

/* Stages that make slices do not agree on when a part ends. */
static int check_split(struct stage *s, struct job_sink *sink, const struct event *ev)
{
	if (sink->splits && sink->splits != ev->made_of)
		return err_set(
			&s->chain->err, ERR_USAGE,
			"--split needs inputs that are all traces, or all calls, or all samples");
	sink->splits = ev->made_of;
	return 0;
}

static int sink_push(struct stage *s, struct event *ev)
{
	struct job_sink *sink = s->priv;
	struct verify *verify = s->chain->verify;

	s->chain->slices += is_slice(ev) && !ev->outside;
	if (verify)
		verify_reached(verify, ev);
	if (is_split(ev) && check_split(s, sink, ev) < 0)
		return -1;
	for (size_t i = 0; i < sink->nr; i++) {
		struct writer *writer = sink->writers[i];

		if (!wants(writer, ev) || !has_place(s->chain, writer, ev))
			continue;
		if (verify)
			verify_put(verify, i, ev);
		if (put(writer, ev) < 0) {
			s->chain->err = writer->err;
			return -1;
		}
	}
	return 0;
}

static int finish_writers(struct job *job, const struct job_sink *sink)
{
	for (size_t i = 0; i < sink->nr; i++) {
		struct writer *writer = sink->writers[i];

		if (writer->ops->finish && writer->ops->finish(writer) < 0) {
			job->err = writer->err;
			return -1;
		}
	}
	return 0;
}

/* Called before waiting for more input: the output so far must not stay in a buffer. */
static void flush_writers(const struct job_sink *sink)
{
	for (size_t i = 0; i < sink->nr; i++) {
		if (sink->writers[i]->out)
			out_share(sink->writers[i]->out);
	}
}

static bool has_failed(const struct writer *writer)
{
	if (writer->folder)
		return writer->folder->failed;
	return writer->out && out_failed(writer->out);
}

static bool all_failed(const struct job_sink *sink)
{
	for (size_t i = 0; i < sink->nr; i++) {
		if (!has_failed(sink->writers[i]))
			return false;
	}
	return true;
}

/* ---- files that the user named ---- */

/* Where a file of --elf is: at its path, or in the folders of the user; NULL: nowhere. */
static char *find_named(const struct job *job, const char *path)
{
	const char *folders[] = { job->where.symfs, job->where.build_dir };
	char *real = store_real(job->where.debug.store, path);

	for (size_t i = 0; i < 2 && !real; i++) {
		char *below = folders[i] ? xasprintf("%s/%s", folders[i], path) : NULL;

		real = below ? store_real(job->where.debug.store, below) : NULL;
		free(below);
	}
	return real;
}

static bool is_unusable(struct job *job, const char *path)
{
	char *real = find_named(job, path);
	struct symfile *symfile = real ? library_try(&job->world.images.library, real) : NULL;

	if (!real && !job->partial)
		log_warn("%s: no such file", path);
	free(real);
	return !symfile || symfile_is_cut(symfile);
}

/* Whether one is not usable, even if the data does not need it. */
static bool lacks_named(struct job *job)
{
	const struct options *options = job->options;
	bool lacks = options->kernel && is_unusable(job, options->kernel);

	for (size_t i = 0; i < options->nr_elfs; i++)
		lacks |= is_unusable(job, options->elfs[i].path);
	return lacks;
}

/* ---- the run ---- */

static void show_progress(struct progress *progress, const struct merge *merge)
{
	uint64_t taken = 0, all = 0;

	for (size_t i = 0; i < merge->nr; i++) {
		taken += merge->inputs[i].in.taken;
		all += merge->inputs[i].in.size;
	}
	progress_show(progress, taken, all);
}

static void count_read(struct job *job, const struct event *events, size_t nr)
{
	job->read[events->kind] += nr;
	for (size_t i = 0; i < nr && events->kind == EVENT_MASK; i++)
		job->masks += events[i].mask.context == IP_KERNEL &&
			      events[i].mask.interrupts != INTERRUPTS_UNKNOWN;
	for (size_t i = 0; i < nr && events->kind == EVENT_LOST; i++) {
		job->lost += events[i].lost.count;
		if (events[i].lost.damage)
			job->damaged_bytes += events[i].lost.bytes;
	}
}

static void verify_read(struct job *job, const struct event *events, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		verify_came(job->chain.verify, &events[i],
			    world_source(&job->world, events[i].input, events[i].sample.source));
}

int job_push(struct job *job, struct event *events, size_t nr)
{
	count_read(job, events, nr);
	if (job->chain.verify && (events->kind == EVENT_SAMPLE || events->kind == EVENT_CHAIN))
		verify_read(job, events, nr);
	for (size_t i = 0; i < nr && job->selection.relative; i++)
		select_begin(&job->selection, &events[i]);
	if (chain_push(&job->chain, events, nr) < 0) {
		job->err = job->chain.err;
		return -1;
	}
	return 0;
}

/* 1: go on, 0: the end, -1: job->err. */
static int run_step(struct job *job, const struct job_sink *sink)
{
	struct event *events;
	size_t nr;
	int ret = merge_next(&job->merge, &events, &nr);

	if (ret == MERGE_AGAIN) {
		flush_writers(sink);
		merge_wait(&job->merge);
		return 1;
	}
	if (ret <= 0) {
		job->err = job->merge.err;
		return ret;
	}
	return job_push(job, events, nr) < 0 ? -1 : 1;
}

static int run_loop(struct job *job, const struct job_sink *sink)
{
	struct progress progress;
	int ret;

	progress_start(&progress, "reading");
	while ((ret = run_step(job, sink)) > 0) {
		if (!progress_due(&progress))
			continue;
		show_progress(&progress, &job->merge);
		if (all_failed(sink))
			break;
	}
	progress_end(&progress);
	return ret < 0 || job->err.code ? -1 : 0;
}

static void gather_results(struct job *job)
{
	const struct sample_count *count = chain_find(&job->chain, &stage_count);

	for (size_t i = 0; i < job->merge.nr; i++) {
		job->damaged += job->merge.inputs[i].reader.nr_damaged;
		job->partial |= job->merge.inputs[i].reader.partial;
	}
	job->partial |= job->damaged > 0 || job->chain.partial;
	if (count)
		job->count = *count;
	effect_mark(job);
}

/* The tests verify every run. */
static bool wants_verify(void)
{
	const char *set = getenv("KSCOPE_VERIFY");

	return set && *set;
}

void job_begin(struct job *job, struct writer *const *to, size_t nr)
{
	uint32_t *takes = xcalloc(nr, sizeof(*takes));

	job->sink = (struct job_sink){ .writers = to, .nr = nr };
	job->to = xcalloc(nr, sizeof(*job->to));
	job->nr_to = nr;
	for (size_t i = 0; i < nr; i++) {
		takes[i] = to[i]->ops->takes;
		job->to[i] = to[i]->ops;
	}
	job->chain.world = &job->world;
	job->chain.options = job->options;
	job->chain.selection = &job->selection;
	job->chain.merge = &job->merge;
	chain_init(&job->chain, sink_push, &job->sink, takes, nr);
	if (job->options->verify || wants_verify())
		job->chain.verify = verify_new(nr);
	free(takes);
	for (size_t i = 0; i < job->merge.nr; i++) {
		job->merge.inputs[i].reader.decodes = job->chain.decodes;
		job->merge.inputs[i].reader.all_branches = job->chain.all_branches;
	}
}

int job_end(struct job *job, int ret)
{
	uint32_t takes = job->chain.sink.takes;

	if (ret == 0 && chain_flush(&job->chain, UINT64_MAX) < 0) {
		job->err = job->chain.err;
		ret = -1;
	}
	gather_results(job);
	if (ret < 0 || finish_writers(job, &job->sink) < 0)
		return -1;
	/* Before the output gets its name: this may need much memory. */
	job->partial |= lacks_named(job);
	if (!job->chain.verify)
		return 0;
	if (chain_has(&job->chain, &stage_split))
		takes |= EVENT_BIT(EVENT_CHAIN);
	return verify_end(job->chain.verify, &job->world, takes, job->sink.writers,
			  job->options->verify, &job->err);
}

int job_run(struct job *job, struct writer *const *to, size_t nr)
{
	job_begin(job, to, nr);
	return job_end(job, run_loop(job, &job->sink));
}

/* ---- results ---- */

const char *job_name(const struct job *job)
{
	const char *name = job->name ? job->name : job->nr_inputs ? job->inputs[0] : NULL;

	return name && strcmp(name, "-") ? text_last_part(name) : NULL;
}

uint64_t job_samples(const struct job *job)
{
	return job->count.samples + job->chain.unselected;
}

uint64_t job_others(const struct job *job)
{
	return job->read[EVENT_ALLOC] + job->read[EVENT_CALL] + job->read[EVENT_BRANCH] +
	       job->read[EVENT_NOTE];
}

static bool has_cut_binaries(const struct images *images)
{
	for (size_t i = 1; i < images->nr; i++) {
		const struct image *image = &images->all[i];

		if (image->symfile && !image->unused && symfile_is_cut(image->symfile))
			return true;
	}
	return false;
}

int job_summary(struct job *job)
{
	uint64_t others = job_others(job), samples = job_samples(job);
	/* A timeline made of samples does not count them. */
	uint64_t read = others ? others : samples ? samples : job->read[EVENT_SAMPLE];

	job->partial |= has_cut_binaries(&job->world.images);
	job->partial |= mapped_warn();
	if (job->damaged)
		log_warn("%" PRIu64 " damaged place%s: %" PRIu64 " %s read, %" PRIu64
			 " lost, %" PRIu64 " byte%s skipped",
			 job->damaged, job->damaged == 1 ? "" : "s", read,
			 others ? "events" : "samples", job->lost, job->damaged_bytes,
			 job->damaged_bytes == 1 ? "" : "s");
	else if (job->lost && job->read[EVENT_BRANCH] && !job->read[EVENT_SAMPLE])
		log_warn("the recording itself lost parts of the trace, in %" PRIu64 " place%s",
			 job->lost, job->lost == 1 ? "" : "s");
	else if (job->lost)
		log_warn("the recording itself lost %" PRIu64 " sample%s", job->lost,
			 job->lost == 1 ? "" : "s");
	if (samples && !job->count.samples && !job->chain.slices)
		log_warn("none of the %" PRIu64 " samples matches the selection", samples);
	else if (!samples && others && job->chain.outside == others && !job->chain.slices)
		log_warn("none of the %" PRIu64 " events matches the selection", others);
	effect_warn(job);
	return job->partial ? ERR_PARTIAL : ERR_NONE;
}

int job_result(struct job *job, int ret)
{
	if (ret == 0)
		return job_summary(job);
	log_error("%s", job->err.msg);
	return job->err.code;
}

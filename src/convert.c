// SPDX-License-Identifier: GPL-2.0-or-later
#include "convert.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/progress.h"
#include "pass/split.h"
#include "buildid_cache.h"

static uint64_t function_at(void *data, uint64_t address, uint64_t context, uint32_t pid)
{
	return world_function(data, pid, context, address);
}

int job_open(struct job *job, struct strtab *strings)
{
	const struct options *options = job->options;

	job->where = (struct image_search){
		.build_dir = options->build_dir,
		.symfs = options->symfs,
		.kernel = options->kernel,
		.debug = { .symfs = options->symfs, .folder = options->build_dir },
	};
	world_init(&job->world, strings, &job->where);
	alloc_init(&job->allocs);
	calls_init(&job->flow);
	job->flow.function = function_at;
	job->flow.data = &job->world;
	job->unwind.world = &job->world;
	job->unwind.method = options->unwind;
	if (merge_open(&job->merge, job->inputs, job->nr_inputs, job->reader, options,
		       &job->world.frames, &job->err) < 0)
		return -1;
	for (size_t i = 0; i < job->merge.nr; i++) {
		if (job->merge.inputs[i].reader.no_kernel)
			job->where.kernel = NULL;
	}
	return 0;
}

void job_release(struct job *job)
{
	merge_close(&job->merge);
	hash_release(&job->whole);
	alloc_release(&job->allocs);
	calltime_release(&job->calls);
	calls_release(&job->flow);
	unwind_release(&job->unwind);
	world_release(&job->world);
}

/* Adds what still fits into 64 bits, so that no sum of it, whoever makes it, can be too large. */
static uint64_t add_up(struct job *job, uint64_t *sum, uint64_t more)
{
	if (more > UINT64_MAX - *sum) {
		if (!job->overflowed)
			log_warn("the samples add up to more than 64 bits hold: from here on they "
				 "count for nothing");
		job->overflowed = job->partial = true;
		more = UINT64_MAX - *sum;
	}
	*sum += more;
	return more;
}

static int put(struct job *job, struct writer *writer, struct event *ev)
{
	world_apply(&job->world, ev);
	if (ev->kind == EVENT_SAMPLE) {
		ev->sample.count = add_up(job, &job->samples, ev->sample.count + !ev->sample.count);
		ev->sample.weight = add_up(job, &job->weight, ev->sample.weight);
		if (ev->cpu < JOB_CPUS)
			job->by_cpu[ev->cpu] += ev->sample.count;
		if (!select_keeps(job->selection, &job->world, ev))
			return 0;
		job->selected += ev->sample.count;
		unwind_event(&job->unwind, ev);
	} else if (ev->kind == EVENT_LOST) {
		job->lost += ev->lost.count;
		if (ev->lost.damage)
			job->damaged_bytes += ev->lost.bytes;
	}
	return writer->ops->put(writer, ev);
}

/* Two recordings may give the same number to different tasks; then they cannot be merged. */
static int check_pid(struct job *job, const struct event *whole)
{
	uint32_t path = str_intern_z(job->world.strings, whole->map.path);
	uint32_t *known = hash_at(&job->whole, (struct hash_key){ whole->pid, 0 });
	uint32_t before = *known, *input;

	*known = path;
	input = hash_at(&job->whole, (struct hash_key){ whole->pid, 1 });
	if (before && before != path && *input != whole->input + 1)
		return err_set(&job->err, ERR_INPUT,
			       "pid %" PRIu32
			       " is %s in %s and %s in %s: their samples cannot be told "
			       "apart; convert them one by one",
			       whole->pid, str_text(job->world.strings, before),
			       job->merge.inputs[*input - 1].in.path, whole->map.path,
			       job->merge.inputs[whole->input].in.path);
	*input = whole->input + 1;
	return 0;
}

static void warn_of_missing(const struct job *job, const struct event *whole)
{
	if (job->options->build_dir)
		log_warn("no usable binary %s for pid %" PRIu32
			 " in %s: its samples have no names; give one with --elf %" PRIu32 "=FILE",
			 whole->map.path, whole->pid, job->options->build_dir, whole->pid);
	else
		log_warn("no usable binary %s for pid %" PRIu32
			 ": its samples have no names; say where it is with --build-dir",
			 whole->map.path, whole->pid);
}

static int put_whole_map(struct job *job, struct writer *writer, const struct event *whole)
{
	struct event ev;

	if (check_pid(job, whole) < 0)
		return -1;

	for (size_t n = 0; world_segment(&job->world, whole, n, &ev); n++) {
		if (ev.map.as_linked) {
			warn_of_missing(job, whole);
			job->partial = true;
		}
		if (put(job, writer, &ev) < 0)
			return -1;
	}
	return 0;
}

static int put_parts(struct job *job, struct writer *writer, const struct event *whole)
{
	struct event part;
	uint32_t at = 0;

	while (split_next(&job->world, whole, &at, &part)) {
		if (put(job, writer, &part) < 0)
			return -1;
	}
	return 0;
}

/* The time since the last call, as a sample of the stack it was spent in. */
static int put_call(struct job *job, struct writer *writer, const struct event *call)
{
	struct event source, sample;

	if (!job->calls.told) {
		calltime_source(&job->calls, &source);
		source.input = (uint32_t)job->merge.nr;
		if (put(job, writer, &source) < 0)
			return -1;
	}
	if (!calltime_next(&job->calls, call, &sample))
		return 0;
	sample.input = (uint32_t)job->merge.nr;
	return put(job, writer, &sample);
}

/* The instructions of a trace, summed up by the stacks that they were run in. */
static int put_flow(struct job *job, struct writer *writer)
{
	struct event ev;

	if (!job->flow.stats.branches)
		return 0;
	if (!job->flow.told) {
		calls_source(&job->flow, &ev);
		ev.input = (uint32_t)job->merge.nr;
		if (put(job, writer, &ev) < 0)
			return -1;
	}
	while (calls_sample(&job->flow, &ev)) {
		ev.input = (uint32_t)job->merge.nr;
		if (put(job, writer, &ev) < 0)
			return -1;
	}
	return 0;
}

/* The way of an event to the writer: through the passes that it needs, if the writer wants them. */
static int pass_on(struct job *job, struct writer *writer, struct event *ev)
{
	bool raw = writer->ops->needs & WRITER_RAW;

	job->others +=
		ev->kind == EVENT_ALLOC || ev->kind == EVENT_CALL || ev->kind == EVENT_BRANCH;
	if (ev->kind == EVENT_MAP && ev->map.whole)
		return put_whole_map(job, writer, ev);
	if (ev->kind == EVENT_SAMPLE && ev->sample.split_unknown && !raw && !job->options->no_split)
		return put_parts(job, writer, ev);
	if (ev->kind == EVENT_CALL && !raw)
		return put_call(job, writer, ev);
	if (ev->kind == EVENT_BRANCH && !raw) {
		calls_add(&job->flow, ev);
		return calls_full(&job->flow) ? put_flow(job, writer) : 0;
	}
	if (ev->kind == EVENT_ALLOC)
		unwind_event(&job->unwind, ev);
	if (ev->kind == EVENT_ALLOC && !raw) {
		alloc_add(&job->allocs, ev);
		return 0;
	}
	return put(job, writer, ev);
}

static void warn_of_findings(const struct job *job, const struct alloc_heap *heap)
{
	const struct alloc_finding *first = heap->findings;
	uint64_t all = 0;

	for (unsigned i = 0; i < FINDING_KINDS; i++)
		all += heap->found[i];
	if (all)
		log_warn("%s: byte %" PRIu64 ": %s: %s 0x%" PRIx64 ", the first of %" PRIu64
			 " findings; kscope alloc tells the others",
			 job->merge.inputs[first->input].in.path, first->offset, heap->name,
			 finding_names[first->kind], first->ptr, all);
}

/* What was allocated reaches writers as samples, at the end. */
static int put_allocs(struct job *job, struct writer *writer)
{
	struct event ev;

	if (!job->allocs.events)
		return 0;
	alloc_finish(&job->allocs);
	for (size_t i = 1; i < job->allocs.nr_heaps; i++)
		warn_of_findings(job, job->allocs.heaps[i]);
	while (alloc_sample(&job->allocs, job->options->value, &ev)) {
		ev.input = (uint32_t)job->merge.nr; /* its sources are no input's */
		if (put(job, writer, &ev) < 0)
			return -1;
	}
	return 0;
}

static uint64_t bytes_taken(const struct job *job, uint64_t *all)
{
	uint64_t taken = 0;

	*all = 0;
	for (size_t i = 0; i < job->merge.nr; i++) {
		taken += job->merge.inputs[i].in.taken;
		*all += job->merge.inputs[i].in.size;
	}
	return taken;
}

static int run_loop(struct job *job, struct writer *writer)
{
	struct progress progress;
	struct event *ev;
	int ret;

	progress_start(&progress, "reading");
	while ((ret = merge_next(&job->merge, &ev)) > 0) {
		ret = pass_on(job, writer, ev);
		if (ret < 0) {
			if (!job->err.code)
				job->err = writer->err;
			break;
		}
		if (progress_due(&progress)) {
			uint64_t all, taken = bytes_taken(job, &all);

			progress_show(&progress, taken, all);
			if (writer->out && out_failed(writer->out))
				break;
		}
	}
	progress_end(&progress);
	if (job->merge.err.code && !job->err.code)
		job->err = job->merge.err;
	return ret < 0 ? -1 : 0;
}

int job_run(struct job *job, struct writer *writer)
{
	int ret = run_loop(job, writer);

	for (size_t i = 0; i < job->merge.nr; i++) {
		job->damaged += job->merge.inputs[i].reader.nr_damaged;
		job->partial |= job->merge.inputs[i].reader.partial;
	}
	job->partial |= job->damaged > 0;
	if (ret == 0 && (put_flow(job, writer) < 0 || put_allocs(job, writer) < 0)) {
		job->err = writer->err;
		ret = -1;
	}
	if (ret == 0 && writer->ops->finish && writer->ops->finish(writer) < 0) {
		job->err = writer->err;
		ret = -1;
	}
	return ret;
}

int job_summary(const struct job *job)
{
	if (job->damaged)
		log_warn("%" PRIu64 " damaged place%s: %" PRIu64 " %s read, %" PRIu64
			 " lost, %" PRIu64 " bytes skipped",
			 job->damaged, job->damaged == 1 ? "" : "s",
			 job->others ? job->others : job->samples,
			 job->others ? "events" : "samples", job->lost, job->damaged_bytes);
	else if (job->lost)
		log_warn("the recording itself lost %" PRIu64 " samples", job->lost);
	if (job->samples && !job->selected)
		log_warn("none of the %" PRIu64 " samples is selected", job->samples);
	return job->partial ? ERR_PARTIAL : ERR_NONE;
}

int job_result(const struct job *job, int ret)
{
	if (ret == 0)
		return job_summary(job);
	log_error("%s", job->err.msg);
	return job->err.code;
}

static int fill_cache(struct job *job)
{
	const struct images *images = &job->world.images;
	int nr = buildid_cache_fill(&job->world.images, job->buildid_cache, &job->err);

	if (nr < 0)
		return -1;
	for (size_t i = 1; i < images->nr; i++)
		job->kernel_cached |= images->all[i].kernel && images->all[i].symfile &&
				      images->all[i].build_id_len;
	if (!nr && !job->cache_unasked)
		log_warn("no binary for the build-id cache: none was found that has a build id");
	return 0;
}

int convert_file(struct job *job, const struct writer_ops *ops, const char *path)
{
	struct out out = { .fd = -1 };
	struct writer writer = {
		.ops = ops,
		.options = job->options,
		.world = &job->world,
		.out = &out,
		.priv = xcalloc(1, ops->priv_size),
	};
	struct strtab strings;
	bool opened = false;
	int ret;

	strtab_init(&strings);
	ret = !(ops->needs & WRITER_TEXT) && !strcmp(path, "-") && isatty(STDOUT_FILENO)
		      ? err_set(&job->err, ERR_USAGE,
				"%s is not for a terminal: name a file with -o, or use a pipe",
				ops->name)
		      : job_open(job, &strings);
	if (ret == 0)
		ret = out_open(&out, path, ops->needs & WRITER_SEEK, &job->err);
	if (ret == 0) {
		opened = true;
		ret = ops->open ? ops->open(&writer) : 0;
		if (ret < 0)
			job->err = writer.err;
	}
	if (ret == 0)
		ret = job_run(job, &writer);
	if (ret == 0)
		ret = out_commit(&out, &job->err);
	if (ret == 0 && job->buildid_cache)
		ret = fill_cache(job);
	out_abandon(&out);
	if (opened && ops->close)
		ops->close(&writer);
	ret = job_result(job, ret);
	free(writer.priv);
	job_release(job);
	strtab_release(&strings);
	return ret;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/* info: shows what a file contains. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json_out.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/store.h"
#include "base/text.h"
#include "cmd.h"
#include "model/source.h"
#include "pass/calls.h"
#include "unwind/unwind.h"

struct count {
	uint64_t samples, weight;
};

struct info {
	struct job *job;
	uint64_t first, last; /* times of samples */
	uint32_t max_cpu;
	bool cpu_seen, time_seen;
	struct count *sources; /* by handle */
	size_t nr_sources, cap_sources;
	struct task_count {
		uint32_t pid, tid;
		struct count count;
	} * tasks; /* in order of appearance; task_index holds positions + 1 */
	size_t nr_tasks, cap_tasks;
	struct hash task_index;
	struct counted { /* of one event on one cpu */
		uint32_t source, boot;
		uint64_t before, last; /* before: the machine started over */
	} * counters;
	size_t nr_counters, cap_counters;
	struct hash counter_index; /* positions + 1 */
	bool *hit;		   /* by image: a sample has a frame in it */
	bool *again;		   /* by image: an earlier one has the same line */
	struct buf text, scratch;
};

static struct count *source_count(struct info *info, uint32_t source)
{
	while (info->nr_sources <= source) {
		GROW(info->sources, info->nr_sources + 1, info->cap_sources);
		info->sources[info->nr_sources++] = (struct count){ 0 };
	}
	return &info->sources[source];
}

static struct count *task_count(struct info *info, uint32_t pid, uint32_t tid)
{
	uint32_t *place = hash_at(&info->task_index, (struct hash_key){ pid, tid });

	if (!*place) {
		GROW(info->tasks, info->nr_tasks + 1, info->cap_tasks);
		info->tasks[info->nr_tasks] = (struct task_count){ .pid = pid, .tid = tid };
		*place = (uint32_t)++info->nr_tasks;
	}
	return &info->tasks[*place - 1].count;
}

static void add(struct count *count, const struct event_sample *sample)
{
	count->samples += sample->count;
	count->weight += sample->weight;
}

static void put_counter(struct info *info, const struct event *ev)
{
	uint32_t *place = hash_at(&info->counter_index,
				  (struct hash_key){ ev->counter.source,
						     (uint64_t)ev->input << 32 | ev->cpu });
	struct counted *counter;

	if (!*place) {
		GROW(info->counters, info->nr_counters + 1, info->cap_counters);
		info->counters[info->nr_counters] =
			(struct counted){ .source = ev->counter.source };
		*place = (uint32_t)++info->nr_counters;
	}
	counter = &info->counters[*place - 1];
	if (ev->counter.boot != counter->boot || ev->counter.value < counter->last)
		counter->before += counter->last;
	counter->boot = ev->counter.boot;
	counter->last = ev->counter.value;
}

/* The sum of all cpus. False: the data has no counter of this event. */
static bool counted(const struct info *info, uint32_t source, uint64_t *sum)
{
	bool found = false;

	*sum = 0;
	for (size_t i = 0; i < info->nr_counters; i++) {
		if (info->counters[i].source != source)
			continue;
		*sum += info->counters[i].before + info->counters[i].last;
		found = true;
	}
	return found;
}

static int info_put(struct writer *w, const struct event *ev)
{
	struct info *info = w->priv;

	if (ev->kind == EVENT_COUNTER) {
		put_counter(info, ev);
		return 0;
	}
	world_stack(w->world, ev); /* keeps its frames, for find_hits() */
	add(source_count(info, ev->sample.source), &ev->sample);
	add(task_count(info, ev->pid, ev->tid), &ev->sample);
	if (ev->cpu != NO_CPU) {
		info->cpu_seen = true;
		info->max_cpu = ev->cpu > info->max_cpu ? ev->cpu : info->max_cpu;
	}
	if (ev->time != NO_TIME) {
		if (!info->time_seen || ev->time < info->first)
			info->first = ev->time;
		if (!info->time_seen || ev->time > info->last)
			info->last = ev->time;
		info->time_seen = true;
	}
	return 0;
}

static const struct writer_ops info_ops = {
	.name = "info", .takes = EVENT_BIT(EVENT_SAMPLE) | EVENT_BIT(EVENT_COUNTER), .put = info_put
};

static const char *text_of(const struct info *info, uint32_t handle)
{
	return str_text(info->job->world.strings, handle);
}

/* Names come from the data and may contain terminal escapes. */
static const char *plain_of(struct info *info, uint32_t handle)
{
	return text_plain(&info->scratch, text_of(info, handle));
}

static const char *task_name(const struct info *info, const struct task_count *task)
{
	uint32_t comm = world_comm(&info->job->world, task->pid, task->tid);

	return comm ? text_of(info, comm) : "[no name]";
}

static void find_hits(struct info *info)
{
	const struct world *world = &info->job->world;

	info->hit = xcalloc(world->images.nr, sizeof(*info->hit));
	for (size_t i = 1; i < world->frames.nr; i++) {
		const struct frame *frame = &world->frames.all[i];

		if (!(frame->flags & (FRAME_NAMED | FRAME_UNMAPPED)))
			info->hit[frame->image] = true;
	}
}

/* A binary that was not found may be in the table twice: as a file and as an address range. */
static void find_same(struct info *info)
{
	const struct images *images = &info->job->world.images;
	struct hash paths = { 0 }; /* to the first image */

	info->again = xcalloc(images->nr, sizeof(*info->again));
	for (uint32_t i = 1; i < images->nr; i++) {
		uint32_t *first;

		if (images->all[i].file)
			continue;
		first = hash_at(&paths, (struct hash_key){ images->all[i].path, 0 });
		info->again[i] = *first;
		if (!*first)
			*first = i;
		info->hit[*first] |= info->hit[i];
	}
	hash_release(&paths);
}

/* Opens the binaries, those that no sample hit only if they are shown. */
static void open_binaries(struct info *info, bool all)
{
	struct images *images = &info->job->world.images;

	find_hits(info);
	for (uint32_t i = 1; i < images->nr; i++) {
		if (info->hit[i])
			image_symfile(images, i);
		else if (all)
			image_unused(images, i);
	}
	find_same(info);
}

static const struct unwind *unwind_of(const struct job *job)
{
	static const struct unwind nothing;
	const struct unwind *unwind = chain_find(&job->chain, &stage_unwind);

	return unwind ? unwind : &nothing;
}

static const struct calls *calls_of(const struct job *job)
{
	static const struct calls nothing;
	const struct calls *calls = chain_find(&job->chain, &stage_calls);

	return calls ? calls : &nothing;
}

static void print_unwound(struct buf *to, const char *what, const struct unwind_count *count)
{
	if (count->chains)
		buf_addf(to, "unwound   %-24s %10" PRIu64 " stacks, %" PRIu64 " to the end\n", what,
			 count->chains, count->ended);
}

static void print_checks(struct buf *to, const struct calls_checks *checks)
{
	uint64_t all = checks->equal + checks->partial + checks->different;

	if (all)
		buf_addf(to,
			 "checks    %" PRIu64 " samples inside the trace, %" PRIu64
			 " of them agree with its stacks, %" PRIu64 " do not\n",
			 all, checks->equal + checks->partial, checks->different);
}

static void print_notes(struct buf *to, const uint64_t notes[NOTE_KINDS])
{
	for (unsigned i = 0; i < NOTE_KINDS; i++) {
		if (notes[i])
			buf_addf(to, "note      %-24s %10" PRIu64 "\n", note_names[i], notes[i]);
	}
}

static void print_flow(struct buf *to, const struct calls *calls)
{
	const struct track_stats *flow = &calls->track.stats;

	if (!flow->branches)
		return;
	buf_addf(to,
		 "traced    %" PRIu64 " branches, %" PRIu64 " instructions, %" PRIu64
		 " in stacks with a known root\n",
		 flow->branches, flow->instructions, flow->rooted);
	buf_addf(to, "returns   %" PRIu64 ", %" PRIu64 " of them without a matching call\n",
		 flow->returns, flow->returns - flow->found);
	if (flow->doubtful)
		buf_addf(to, "doubtful  %" PRIu64 " instructions, in stacks that may be wrong\n",
			 flow->doubtful);
	print_checks(to, &calls->checks);
}

static void add_place(const struct info *info, struct buf *to, const struct image *image)
{
	char *place = image->file ? store_place(info->job->merge.archives, image->file) : NULL;

	text_add_plain(to, place ? place : "(not found)");
	free(place);
}

static void print_binaries(struct info *info)
{
	struct images *images = &info->job->world.images;
	struct buf *to = &info->text;
	size_t hidden = 0;

	open_binaries(info, log_level > 1);
	for (uint32_t i = 1; i < images->nr; i++) {
		const struct image *image = &images->all[i];
		bool hit = info->hit[i];

		if (info->again[i] || (image->one_symbol && image->symbol != image->path))
			continue;
		if (!hit && log_level <= 1) {
			hidden++;
			continue;
		}
		buf_addf(to, "%-9s %-24s ", hit ? "binary" : "unused", plain_of(info, image->path));
		add_place(info, to, image);
		buf_addc(to, '\n');
	}
	if (hidden)
		buf_addf(to, "unused    %zu binar%s that no sample hit (-v shows them)\n", hidden,
			 hidden == 1 ? "y" : "ies");
}

static void print_text(struct info *info)
{
	struct job *job = info->job;
	struct world *world = &job->world;
	struct buf *to = &info->text;

	for (const struct store *at = job->merge.archives; at; at = at->next)
		buf_addf(to, "archive   %s\n", text_plain(&info->scratch, at->archive));
	for (size_t i = 0; i < job->merge.nr; i++)
		buf_addf(to, "file      %s (%s)\n",
			 text_plain(&info->scratch, job->merge.inputs[i].in.path),
			 job->merge.inputs[i].reader.ops->name);
	for (size_t i = 0; i < world->nr_facts; i++) {
		buf_addf(to, "%-9s ", plain_of(info, world->facts[i].key));
		buf_addf(to, "%s\n", plain_of(info, world->facts[i].value));
	}
	if (*world_arch(world) && !world_fact(world, "arch"))
		buf_addf(to, "arch      %s\n", text_plain(&info->scratch, world_arch(world)));
	buf_addf(to, "samples   %" PRIu64, job->count.samples);
	if (job->chain.unselected)
		buf_addf(to, " of %" PRIu64 " in the input", job_samples(job));
	buf_addc(to, '\n');
	buf_addf(to, "lost      %" PRIu64 "\n", job->lost);
	buf_addf(to, "damage    %" PRIu64 " places, %" PRIu64 " bytes\n", job->damaged,
		 job->damaged_bytes);
	if (info->time_seen)
		buf_addf(to, "time      %.9f to %.9f s (%.3f s)\n", (double)info->first / 1e9,
			 (double)info->last / 1e9, (double)(info->last - info->first) / 1e9);
	if (info->cpu_seen)
		buf_addf(to, "cpus      %" PRIu32 "\n", info->max_cpu + 1);
	print_unwound(to, "kernel", &unwind_of(job)->kernel);
	print_unwound(to, "user", &unwind_of(job)->user);
	print_unwound(to, "unknown binaries", &unwind_of(job)->elsewhere);
	print_flow(to, calls_of(job));
	print_notes(to, calls_of(job)->notes);
	for (uint32_t i = 1; i < world->nr_sources; i++) {
		struct count c = i < info->nr_sources ? info->sources[i] : (struct count){ 0 };
		uint64_t sum;

		buf_addf(to, "event     %-24s %10" PRIu64 " samples %16" PRIu64 " total",
			 plain_of(info, source_name(world, i)), c.samples, c.weight);
		if (counted(info, i, &sum))
			buf_addf(to, " %16" PRIu64 " counted", sum);
		buf_addc(to, '\n');
	}
	for (size_t i = 0; i < info->nr_tasks; i++) {
		const struct task_count *task = &info->tasks[i];

		buf_addf(to, "task      %-24s %10" PRIu64 " samples",
			 text_plain(&info->scratch, task_name(info, task)), task->count.samples);
		if (task->pid != NO_TASK)
			buf_addf(to, "  pid %" PRIu32 " tid %" PRIu32, task->pid, task->tid);
		buf_addc(to, '\n');
	}
	print_binaries(info);
}

static void json_facts(struct info *info, struct json_out *to)
{
	struct world *world = &info->job->world;

	json_out_object(to, "facts");
	for (size_t i = 0; i < world->nr_facts; i++)
		json_out_text(to, text_of(info, world->facts[i].key),
			      text_of(info, world->facts[i].value));
	json_out_end(to);
}

static void json_inputs(struct info *info, struct json_out *to)
{
	struct merge *merge = &info->job->merge;

	json_out_array(to, "inputs");
	for (size_t i = 0; i < merge->nr; i++) {
		json_out_object(to, NULL);
		json_out_text(to, "path", merge->inputs[i].in.path);
		json_out_text(to, "format", merge->inputs[i].reader.ops->name);
		json_out_end(to);
	}
	json_out_end(to);
}

static void json_sources(struct info *info, struct json_out *to)
{
	struct world *world = &info->job->world;

	json_out_array(to, "events");
	for (uint32_t i = 1; i < world->nr_sources; i++) {
		struct count c = i < info->nr_sources ? info->sources[i] : (struct count){ 0 };
		uint64_t sum;

		json_out_object(to, NULL);
		json_out_text(to, "name", text_of(info, source_name(world, i)));
		json_out_u64(to, "samples", c.samples);
		json_out_u64(to, "weight", c.weight);
		if (counted(info, i, &sum))
			json_out_u64(to, "counted", sum);
		json_out_end(to);
	}
	json_out_end(to);
}

static void json_tasks(struct info *info, struct json_out *to)
{
	json_out_array(to, "tasks");
	for (size_t i = 0; i < info->nr_tasks; i++) {
		const struct task_count *task = &info->tasks[i];

		json_out_object(to, NULL);
		json_out_text(to, "comm", task_name(info, task));
		if (task->pid != NO_TASK) {
			json_out_u64(to, "pid", task->pid);
			json_out_u64(to, "tid", task->tid);
		}
		json_out_u64(to, "samples", task->count.samples);
		json_out_end(to);
	}
	json_out_end(to);
}

static void json_binaries(struct info *info, struct json_out *to)
{
	struct images *images = &info->job->world.images;
	char build_id[BUILD_ID_TEXT];

	open_binaries(info, true);
	json_out_array(to, "binaries");
	for (uint32_t i = 1; i < images->nr; i++) {
		struct image *image = &images->all[i];

		if (info->again[i])
			continue;
		image_build_id(image, build_id);
		json_out_object(to, NULL);
		json_out_text(to, "path", text_of(info, image->path));
		json_out_text(to, "file", image->file ? image->file : "");
		json_out_text(to, "build_id", build_id);
		json_out_bool(to, "hit", info->hit[i]);
		json_out_end(to);
	}
	json_out_end(to);
}

static void json_unwound(struct json_out *to, const struct unwind *unwind)
{
	json_out_u64(to, "unwound",
		     unwind->kernel.chains + unwind->user.chains + unwind->elsewhere.chains);
	json_out_u64(to, "unwound_to_end",
		     unwind->kernel.ended + unwind->user.ended + unwind->elsewhere.ended);
	json_out_u64(to, "kernel_unwound", unwind->kernel.chains);
	json_out_u64(to, "kernel_unwound_to_end", unwind->kernel.ended);
}

static void json_flow(struct json_out *to, const struct calls *calls)
{
	const struct track_stats *flow = &calls->track.stats;

	json_out_u64(to, "branches", flow->branches);
	json_out_u64(to, "instructions", flow->instructions);
	json_out_u64(to, "rooted", flow->rooted);
	json_out_u64(to, "returns", flow->returns);
	json_out_u64(to, "unmatched_returns", flow->returns - flow->found);
	json_out_u64(to, "doubtful", flow->doubtful);
	json_out_u64(to, "strayed", flow->strayed);
	json_out_u64(to, "checks_equal", calls->checks.equal);
	json_out_u64(to, "checks_partial", calls->checks.partial);
	json_out_u64(to, "checks_different", calls->checks.different);
}

static void json_notes(struct json_out *to, const struct calls *calls)
{
	json_out_object(to, "notes");
	for (unsigned i = 0; i < NOTE_KINDS; i++) {
		if (calls->notes[i])
			json_out_u64(to, note_names[i], calls->notes[i]);
	}
	json_out_end(to);
}

static void print_json(struct info *info)
{
	struct json_out json = { .to = &info->text };
	struct json_out *to = &json;
	struct job *job = info->job;

	json_out_object(to, NULL);
	json_out_u64(to, "samples", job->count.samples);
	json_out_u64(to, "unselected", job->chain.unselected);
	json_out_u64(to, "lost", job->lost);
	json_out_u64(to, "damaged", job->damaged);
	json_out_u64(to, "damaged_bytes", job->damaged_bytes);
	if (info->time_seen) {
		json_out_u64(to, "first_ns", info->first);
		json_out_u64(to, "last_ns", info->last);
	}
	json_unwound(to, unwind_of(job));
	json_flow(to, calls_of(job));
	json_notes(to, calls_of(job));
	json_out_u64(to, "cpus", info->cpu_seen ? info->max_cpu + 1 : 0);
	json_out_text(to, "arch", world_arch(&job->world));
	json_facts(info, to);
	json_inputs(info, to);
	json_sources(info, to);
	json_tasks(info, to);
	json_binaries(info, to);
	json_out_end(to);
}

struct info_options {
	bool json;
};

static const struct option_table info_table = {
	"Output",
	(const struct option_row[]){ OPTION_JSON(struct info_options), { 0 } },
};

static int run(struct args *args)
{
	const struct info_options *asked = args->state;
	struct job job;
	struct info info = { .job = &job };
	struct writer writer = { .ops = &info_ops, .world = &job.world, .priv = &info };
	struct strtab strings;
	int ret;

	strtab_init(&strings);
	args_job(args, &job);
	ret = job_open(&job, &strings);
	if (ret == 0)
		ret = job_run(&job, (struct writer *[]){ &writer }, 1);
	if (ret == 0) {
		if (asked->json)
			print_json(&info);
		else
			print_text(&info);
		fwrite(info.text.data, 1, info.text.len, stdout);
	}
	ret = job_result(&job, ret);
	free(info.sources);
	free(info.tasks);
	free(info.counters);
	free(info.hit);
	free(info.again);
	hash_release(&info.counter_index);
	hash_release(&info.task_index);
	buf_release(&info.text);
	buf_release(&info.scratch);
	job_release(&job);
	strtab_release(&strings);
	return ret;
}

const struct command cmd_info = {
	.name = "info",
	.usage = "info INPUT... [OPTIONS]",
	.about =
		"Show what a file contains: format, events, tasks, binaries, time, losses, damage.",
	.examples = "  kscope info samples.json --build-dir build\n"
		    "  kscope info perf.data --json\n",
	.options = OPTION_USES({ &info_table, 0 }),
	.state_size = sizeof(struct info_options),
	.reads = true,
	.writers = (const struct writer_ops *const[]){ &info_ops, NULL },
	.run = run,
};

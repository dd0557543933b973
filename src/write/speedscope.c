// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * speedscope: JSON for speedscope.app. Each thread has a profile of samples for each event, in order of time, and one
 * of calls that begin and end if the input is a trace; cpus have profiles of what ran on them. All share one table of
 * frames.
 *
 * The format is one JSON object, with one profile after the other. So samples and slices wait in rows until the end.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/hash.h"
#include "base/json_out.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/rows.h"
#include "format.h"
#include "model/source.h"
#include "write/speedscope.h"
#include "write/timeline.h"

#define CHUNK ((size_t)64 << 10)

/* In the order of the output. */
enum profile_kind { OF_SAMPLES, OF_CALLS, OF_CPU, OF_MASK };

/* Samples with the same stack, one after the other, or the begin or end of a slice. */
struct row {
	uint64_t number; /* their weight, or the time */
	uint64_t samples;
	uint32_t what; /* a stack, or a frame */
	uint32_t leave;
};

struct profile {
	enum profile_kind kind;
	uint32_t pid, tid, cpu, source;
	uint32_t group; /* of its rows; the next one has callers that turned up late */
	struct row last;
	bool has_last;	       /* `last` is not among the rows yet */
	uint64_t size;	       /* in samples or slices */
	uint64_t weight;       /* of samples */
	uint64_t first, until; /* times of slices */
	uint32_t *open;	       /* the frames of those that have not ended */
	size_t nr_open, cap_open;
};

struct piece { /* the functions at a place, as text */
	uint32_t at, len;
};

struct speedscope {
	struct options given; /* only the axis */
	struct tally_options options;
	struct speedscope_frames frames;
	struct rows rows;
	struct profile *profiles;
	size_t nr, cap;
	struct hash index;
	uint8_t *used; /* stacks: 1 */
	size_t cap_used;
	uint64_t lost, lost_bytes;
	/* At the end: */
	struct sum {
		uint64_t samples, weight;
		bool weighs;  /* numbers of samples are their weights */
	} * sums;	      /* of each event */
	uint32_t no_stack;    /* a frame */
	struct piece *pieces; /* of each place in used stacks */
	struct buf texts;
	uint32_t *path; /* the places of a stack, leaf first */
	size_t cap_path;
	struct buf line;
	bool comma; /* the next slice needs one before it */
};

/* Profiles */

static struct profile *profile_of(struct speedscope *ss, const struct profile *like)
{
	uint64_t words[] = { (uint64_t)like->kind << 32 | like->source,
			     (uint64_t)like->pid << 32 | like->tid, like->cpu };
	uint32_t *known = hash_at(&ss->index, hash_words(words, 3, 0));

	if (!*known) {
		GROW(ss->profiles, ss->nr + 1, ss->cap);
		ss->profiles[ss->nr] = *like;
		ss->profiles[ss->nr].group = (uint32_t)ss->nr * 2;
		*known = (uint32_t)++ss->nr;
	}
	return &ss->profiles[*known - 1];
}

static void use_stack(struct speedscope *ss, uint32_t stack)
{
	size_t had = ss->cap_used;

	GROW(ss->used, (size_t)stack + 1, ss->cap_used);
	memset(ss->used + had, 0, ss->cap_used - had);
	ss->used[stack] = 1;
}

static void push_last(struct speedscope *ss, struct profile *profile)
{
	if (!profile->has_last)
		return;
	rows_add(&ss->rows, profile->group, &profile->last);
	use_stack(ss, profile->last.what);
	profile->has_last = false;
}

/* Samples */

static void put_sample(struct writer *w, const struct event *ev)
{
	struct speedscope *ss = w->priv;
	struct profile *profile = profile_of(ss, &(struct profile){ .kind = OF_SAMPLES,
								    .pid = ev->pid,
								    .tid = ev->tid,
								    .source = ev->sample.source });
	struct row *last = &profile->last;
	uint64_t samples = ev->sample.count + !ev->sample.count;
	uint32_t stack = world_stack(w->world, ev);

	profile->size += samples;
	profile->weight += ev->sample.weight;
	if (profile->has_last && last->what != stack)
		push_last(ss, profile);
	if (!profile->has_last)
		*last = (struct row){ .what = stack };
	profile->has_last = true;
	last->number += ev->sample.weight;
	last->samples += samples;
}

/* Slices */

static void name_task(struct writer *w, struct buf *to, uint32_t pid, uint32_t tid)
{
	uint32_t comm = world_comm(w->world, pid, tid);

	if (!comm)
		comm = world_comm(w->world, pid, pid);
	buf_adds(to, comm ? str_text(w->world->strings, comm) : "?");
	if (pid != NO_TASK)
		buf_addf(to, " %" PRIu32, pid);
	if (tid != NO_TASK && pid != NO_TASK)
		buf_addf(to, "/%" PRIu32, tid);
}

static uint32_t frame_of_slice(struct writer *w, const struct event *ev)
{
	struct speedscope *ss = w->priv;

	if (ev->slice.kind == SLICE_GAP)
		return speedscope_name(&ss->frames, "[gap]");
	if (ev->slice.kind != SLICE_RUN)
		return speedscope_function(&ss->frames, ev->slice.frame);
	buf_clear(&ss->line);
	name_task(w, &ss->line, ev->pid, ev->tid);
	return speedscope_name(&ss->frames, ss->line.data);
}

static void push_frame(struct profile *profile, uint32_t frame)
{
	GROW(profile->open, profile->nr_open + 1, profile->cap_open);
	profile->open[profile->nr_open++] = frame;
}

static void put_slice(struct writer *w, const struct event *ev)
{
	struct speedscope *ss = w->priv;
	bool on_cpu = timeline_on_cpu(ev);
	struct profile *profile =
		profile_of(ss, &(struct profile){ .kind = !on_cpu ? OF_CALLS
							  : ev->slice.kind == SLICE_MASKED ? OF_MASK
											   : OF_CPU,
						  .pid = on_cpu ? 0 : ev->pid,
						  .tid = on_cpu ? 0 : ev->tid,
						  .cpu = on_cpu ? ev->cpu : 0 });
	struct row row = { .number = ev->time, .leave = ev->slice.leave };
	bool late;

	/* A task may have another name at the end of a slice than at its begin. */
	if (ev->slice.leave)
		row.what = profile->open[--profile->nr_open];
	else
		push_frame(profile, row.what = frame_of_slice(w, ev));
	if (!profile->size || ev->time < profile->first)
		profile->first = ev->time;
	profile->size += !ev->slice.leave;
	late = ev->time < profile->until;
	if (!late)
		profile->until = ev->time;
	rows_add(&ss->rows, profile->group + late, &row);
}

/* The writer: samples */

static void sum_up(const struct writer *w)
{
	struct speedscope *ss = w->priv;

	ss->sums = xcalloc(w->world->nr_sources, sizeof(*ss->sums));
	for (size_t i = 0; i < ss->nr; i++) {
		const struct profile *profile = &ss->profiles[i];

		if (profile->kind != OF_SAMPLES)
			continue;
		ss->sums[profile->source].samples += profile->size;
		ss->sums[profile->source].weight += profile->weight;
	}
	for (uint32_t i = 0; i < w->world->nr_sources; i++)
		ss->sums[i].weighs = ss->options.measure != MEASURE_SAMPLES &&
				     source_has_weights(w->world, i, ss->sums[i].weight);
}

/* Makes the text of every place in the stacks. */
static void name_places(struct writer *w)
{
	struct speedscope *ss = w->priv;
	const struct stacks *stacks = &w->world->stacks;
	size_t nr = w->world->frames.nr;

	ss->pieces = xcalloc(nr + 1, sizeof(*ss->pieces));
	if (ss->cap_used && ss->used[0])
		ss->no_stack = speedscope_name(&ss->frames, "[no stack]");
	for (size_t stack = ss->cap_used; stack-- > 1;) {
		if (ss->used[stack])
			ss->used[stacks->all[stack].parent] = 1;
	}
	for (size_t stack = 1; stack < ss->cap_used; stack++) {
		uint32_t place = ss->used[stack] ? stacks->all[stack].frame : 0;
		struct piece *piece = &ss->pieces[place];

		if (!place || piece->len)
			continue;
		piece->at = (uint32_t)ss->texts.len;
		speedscope_functions(&ss->frames, place, &ss->texts);
		piece->len = (uint32_t)ss->texts.len - piece->at;
	}
}

static void flush(struct writer *w, size_t least)
{
	struct speedscope *ss = w->priv;

	if (ss->line.len < least)
		return;
	out_write(w->out, ss->line.data, ss->line.len);
	buf_clear(&ss->line);
}

/* From the root on. */
static void add_stack(struct writer *w, uint32_t stack)
{
	struct speedscope *ss = w->priv;
	const struct stack *all = w->world->stacks.all;
	size_t nr = 0;

	if (!stack)
		buf_addu(&ss->line, ss->no_stack);
	for (; stack; stack = all[stack].parent) {
		GROW(ss->path, nr + 1, ss->cap_path);
		ss->path[nr++] = all[stack].frame;
	}
	while (nr--) {
		const struct piece *piece = &ss->pieces[ss->path[nr]];

		buf_add(&ss->line, ss->texts.data + piece->at, piece->len);
		if (nr)
			buf_addc(&ss->line, ',');
	}
}

static void add_weight(struct writer *w, const struct row *row, bool weighs)
{
	struct speedscope *ss = w->priv;

	buf_addu(&ss->line, weighs ? row->number : row->samples);
	w->written.weight += row->number;
	w->written.samples += row->samples;
}

static const char *unit_of(const struct writer *w, const struct profile *profile)
{
	const struct speedscope *ss = w->priv;
	const struct source *source = &w->world->sources[profile->source];
	const struct sum *sum = &ss->sums[profile->source];

	if (!sum->weighs)
		return "none";
	if (source_sum_is_time(w->world, profile->source, sum->samples, sum->weight))
		return "nanoseconds";
	if (source->unit && !strcmp(str_text(w->world->strings, source->unit), "bytes"))
		return "bytes";
	return "none";
}

static void write_samples(struct writer *w, const struct profile *profile)
{
	struct speedscope *ss = w->priv;
	bool weighs = ss->sums[profile->source].weighs;
	struct rows_reader reader;
	const struct row *row;

	w->written.knows |= weighs ? WROTE_WEIGHT : WROTE_SAMPLES;
	buf_addf(&ss->line,
		 "\"type\":\"sampled\",\"unit\":\"%s\",\"startValue\":0,\"endValue\":%" PRIu64
		 ",\n\"samples\":[",
		 unit_of(w, profile), weighs ? profile->weight : profile->size);
	rows_begin(&reader, &ss->rows, profile->group);
	for (const char *before = "["; (row = rows_next(&reader)); before = ",[") {
		buf_adds(&ss->line, before);
		add_stack(w, row->what);
		buf_addc(&ss->line, ']');
		flush(w, CHUNK);
	}
	rows_end(&reader);
	buf_adds(&ss->line, "],\n\"weights\":[");
	rows_begin(&reader, &ss->rows, profile->group);
	for (const char *before = ""; (row = rows_next(&reader)); before = ",") {
		buf_adds(&ss->line, before);
		add_weight(w, row, weighs);
		flush(w, CHUNK);
	}
	rows_end(&reader);
	buf_addc(&ss->line, ']');
}

/* The writer: slices */

static void write_slice(struct writer *w, const struct profile *profile, const struct row *row)
{
	struct speedscope *ss = w->priv;

	buf_adds(&ss->line, ss->comma ? ",\n" : "\n");
	ss->comma = true;
	buf_adds(&ss->line,
		 row->leave ? "{\"type\":\"C\",\"frame\":" : "{\"type\":\"O\",\"frame\":");
	buf_addu(&ss->line, row->what);
	buf_adds(&ss->line, ",\"at\":");
	buf_addu(&ss->line, row->number - profile->first);
	buf_addc(&ss->line, '}');
	flush(w, CHUNK);
	w->written.begins += !row->leave;
	w->written.ends += row->leave;
}

/*
 * Reads callers that turned up late in order of time. The rows of one stack go from the innermost caller, which begins
 * last, to the outermost one; the stacks are in order of time.
 */
struct late {
	struct rows_reader reader;
	struct row next; /* the first one of the next stack */
	bool has_next;
	struct row *all; /* of one stack */
	size_t nr, cap;
};

static void late_read(struct late *late)
{
	const struct row *row = rows_next(&late->reader);

	late->has_next = row;
	if (row)
		late->next = *row;
}

/* The first caller; the user removes it by `nr--`. NULL: there is none. */
static const struct row *late_first(struct late *late)
{
	if (!late->nr && !late->has_next)
		return NULL;
	while (!late->nr ||
	       (late->has_next && late->next.number < late->all[late->nr - 1].number)) {
		GROW(late->all, late->nr + 1, late->cap);
		late->all[late->nr++] = late->next;
		late_read(late);
	}
	return &late->all[late->nr - 1];
}

static void write_rows(struct writer *w, const struct profile *profile)
{
	struct speedscope *ss = w->priv;
	struct late late = { 0 };
	struct rows_reader reader;
	const struct row *row, *caller;

	rows_begin(&late.reader, &ss->rows, profile->group + 1);
	late_read(&late);
	rows_begin(&reader, &ss->rows, profile->group);
	while ((row = rows_next(&reader))) {
		for (; (caller = late_first(&late)) && caller->number < row->number; late.nr--)
			write_slice(w, profile, caller);
		write_slice(w, profile, row);
	}
	rows_end(&reader);
	rows_end(&late.reader);
	free(late.all);
}

/* Times are relative, because times since 1970 in ns do not fit into JavaScript's numbers. */
static void write_slices(struct writer *w, const struct profile *profile)
{
	struct speedscope *ss = w->priv;
	bool is_time = ss->given.timeline.axis == AXIS_TIME;

	buf_addf(&ss->line,
		 "\"type\":\"evented\",\"unit\":\"%s\",\"startValue\":0,\"endValue\":%" PRIu64
		 ",\n\"events\":[",
		 is_time ? "nanoseconds" : "none", profile->until - profile->first);
	ss->comma = false;
	write_rows(w, profile);
	buf_addc(&ss->line, ']');
}

/* The writer: all */

static void add_losses(const struct speedscope *ss, struct buf *to, bool samples)
{
	if (ss->lost)
		buf_addf(to, " (%" PRIu64 "%s lost)", ss->lost,
			 !samples	 ? ""
			 : ss->lost == 1 ? " sample"
					 : " samples");
	else if (ss->lost_bytes)
		buf_addf(to, " (%" PRIu64 " bytes lost)", ss->lost_bytes);
}

static void name_profile(struct writer *w, const struct profile *profile, struct buf *to)
{
	const struct speedscope *ss = w->priv;
	bool samples = profile->kind == OF_SAMPLES;
	char cpu[TIMELINE_CPU_NAME];

	if (profile->kind == OF_CPU || profile->kind == OF_MASK) {
		timeline_cpu_name(cpu, profile->cpu, profile->kind == OF_MASK);
		buf_adds(to, cpu);
	} else if (!samples || profile->pid != NO_TASK || profile->tid != NO_TASK) {
		name_task(w, to, profile->pid, profile->tid);
	}
	if (samples) {
		uint32_t event = source_name(w->world, profile->source);

		buf_addf(to, "%s%s%s", to->len ? ": " : "", str_text(w->world->strings, event),
			 ss->sums[profile->source].weighs ? "" : " (samples)");
	}
	add_losses(ss, to, samples);
}

static int by_place(const void *va, const void *vb)
{
	const struct profile *a = va, *b = vb;

	bool cpu_a = a->kind > OF_CALLS, cpu_b = b->kind > OF_CALLS;

	if (cpu_a != cpu_b)
		return cpu_a ? 1 : -1;
#define ORDER(field)              \
	if (a->field != b->field) \
	return a->field < b->field ? -1 : 1
	ORDER(pid);
	ORDER(tid);
	ORDER(cpu);
	ORDER(kind);
	ORDER(source);
#undef ORDER
	return 0;
}

/* The profile to show first: the one with most samples or slices, but not of an idle task. */
static size_t active_profile(const struct speedscope *ss)
{
	size_t best = 0;
	uint64_t most = 0;

	for (size_t i = 0; i < ss->nr; i++) {
		const struct profile *profile = &ss->profiles[i];
		bool idle = profile->kind > OF_CALLS || (!profile->pid && !profile->tid);

		if (!idle && profile->size > most) {
			best = i;
			most = profile->size;
		}
	}
	return best;
}

static void write_head(struct writer *w)
{
	struct speedscope *ss = w->priv;
	const char *cmdline = world_fact(w->world, "cmdline");
	struct buf name = { 0 };

	buf_adds(&name, cmdline ? cmdline : "kscope");
	add_losses(ss, &name, false);
	buf_adds(&ss->line, "{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\","
			    "\"exporter\":\"kscope\",\"name\":");
	json_out_string(&ss->line, name.data);
	buf_addf(&ss->line,
		 ",\"activeProfileIndex\":%zu,\n\"shared\":{\"frames\":", active_profile(ss));
	speedscope_frames_json(&ss->frames, &ss->line);
	buf_adds(&ss->line, "},\n\"profiles\":[");
	buf_release(&name);
}

static void write_profile(struct writer *w, const struct profile *profile)
{
	struct speedscope *ss = w->priv;
	struct buf name = { 0 };

	name_profile(w, profile, &name);
	buf_adds(&ss->line, profile == ss->profiles ? "\n{\"name\":" : ",\n{\"name\":");
	json_out_string(&ss->line, name.data);
	buf_addc(&ss->line, ',');
	if (profile->kind == OF_SAMPLES)
		write_samples(w, profile);
	else
		write_slices(w, profile);
	buf_addc(&ss->line, '}');
	buf_release(&name);
}

static int speedscope_open(struct writer *w)
{
	struct speedscope *ss = w->priv;

	ss->frames = (struct speedscope_frames){ .world = w->world, .options = &ss->options };
	rows_init(&ss->rows, sizeof(struct row));
	return 0;
}

static int speedscope_put(struct writer *w, const struct event *ev)
{
	struct speedscope *ss = w->priv;

	if (ev->kind == EVENT_SAMPLE)
		put_sample(w, ev);
	else if (ev->kind == EVENT_SLICE && ev->slice.kind < SLICE_NOTE)
		put_slice(w, ev);
	if (ev->kind != EVENT_LOST)
		return 0;
	ss->lost += ev->lost.count;
	ss->lost_bytes += ev->lost.bytes;
	return 0;
}

static int speedscope_finish(struct writer *w)
{
	struct speedscope *ss = w->priv;

	for (size_t i = 0; i < ss->nr; i++)
		push_last(ss, &ss->profiles[i]);
	sum_up(w);
	name_places(w);
	if (ss->nr)
		qsort(ss->profiles, ss->nr, sizeof(*ss->profiles), by_place);
	buf_clear(&ss->line);
	write_head(w);
	for (size_t i = 0; i < ss->nr; i++)
		write_profile(w, &ss->profiles[i]);
	buf_adds(&ss->line, "\n]}\n");
	flush(w, 0);
	w->written.knows |= WROTE_SLICES;
	if (!(w->written.knows & WROTE_WEIGHT))
		w->written.knows |= WROTE_SAMPLES;
	if (!ss->nr)
		log_warn("%s has no profiles, so speedscope cannot open it: the input has no "
			 "samples or calls, or none is selected",
			 strcmp(w->out->path, "-") ? w->out->path : "standard output");
	return rows_check(&ss->rows, &w->err);
}

static void speedscope_close(struct writer *w)
{
	struct speedscope *ss = w->priv;

	speedscope_frames_release(&ss->frames);
	rows_release(&ss->rows);
	hash_release(&ss->index);
	for (size_t i = 0; i < ss->nr; i++)
		free(ss->profiles[i].open);
	free(ss->profiles);
	free(ss->used);
	free(ss->sums);
	free(ss->pieces);
	free(ss->path);
	buf_release(&ss->texts);
	buf_release(&ss->line);
}

const struct writer_ops write_speedscope = {
	.name = "speedscope",
	.about = "samples of each thread in order of time, and calls of traces, for speedscope",
	.extension = ".speedscope.json",
	.needs = WRITER_TEXT,
	.takes = EVENT_BIT(EVENT_SAMPLE) | EVENT_BIT(EVENT_SLICE) | EVENT_BIT(EVENT_LOST),
	.next = "open it in speedscope.app",
	.options = OPTION_USES({ &count_table, offsetof(struct speedscope, options) },
			       { &no_inline_table, offsetof(struct speedscope, options) },
			       { &timeline_table, offsetof(struct speedscope, given) },
			       { &inlines_table, OPTION_ELSEWHERE },
			       { &gate_table, OPTION_ELSEWHERE }),
	.priv_size = sizeof(struct speedscope),
	.open = speedscope_open,
	.put = speedscope_put,
	.finish = speedscope_finish,
	.close = speedscope_close,
};

// SPDX-License-Identifier: GPL-2.0-or-later
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "live_parts.h"
#include "model/role.h"
#include "model/source.h"

/* ---- sums ---- */

static unsigned tally_keys(const struct live *live)
{
	return tally_by_options(&live->options) | BY_SOURCE | BY_COMM | BY_PID | BY_CPU;
}

/* NULL: there are too many events; its samples are only counted. */
static struct live_sum *sum_of(struct live *live, uint32_t source)
{
	struct live_sum *sum;

	for (size_t i = 0; i < live->nr_sums; i++) {
		if (live->sums[i].source == source)
			return &live->sums[i];
	}
	if (live->nr_sums >= LIVE_SOURCES)
		return NULL;
	GROW(live->sums, live->nr_sums + 1, live->cap_sums);
	sum = &live->sums[live->nr_sums++];
	*sum = (struct live_sum){ .source = source };
	tally_init(&sum->all, &live->job.world, tally_keys(live));
	return sum;
}

static void add_lately(struct live *live, struct live_sum *sum, const struct event *ev)
{
	uint64_t second = live->now / LIVE_SECOND;
	struct live_slot *slot = &sum->slots[second % LIVE_SECONDS];

	if (slot->second != second) {
		tally_release(&slot->tally);
		tally_init(&slot->tally, &live->job.world, tally_keys(live));
		slot->second = second;
	}
	tally_add(&slot->tally, ev);
}

static void count_cpu(struct live *live, uint32_t cpu, uint64_t samples, uint64_t lost)
{
	if (cpu >= LIVE_CPUS)
		return;
	GROW(live->cpus, cpu + 1, live->cap_cpus);
	while (live->nr_cpus <= cpu)
		live->cpus[live->nr_cpus++] = (struct live_cpu){ 0 };
	live->cpus[cpu].samples += samples;
	live->cpus[cpu].lost += lost;
}

int live_put(struct writer *w, const struct event *ev)
{
	struct live *live = w->priv;
	struct live_sum *sum;

	if (ev->kind == EVENT_LOST) {
		count_cpu(live, ev->cpu, 0, ev->lost.count);
		return 0;
	}
	count_cpu(live, ev->cpu, ev->sample.count, 0);
	live->samples += ev->sample.count;
	live->weight += ev->sample.weight;
	sum = sum_of(live, ev->sample.source);
	if (sum) {
		tally_add(&sum->all, ev);
		add_lately(live, sum, ev);
	}
	return 0;
}

void live_forget(struct live *live)
{
	for (size_t i = 0; i < live->nr_sums; i++) {
		tally_release(&live->sums[i].all);
		for (size_t n = 0; n < LIVE_SECONDS; n++)
			tally_release(&live->sums[i].slots[n].tally);
	}
	live->nr_sums = live->nr_cpus = live->shown = 0;
	live->samples = live->weight = 0;
}

static uint64_t damaged(const struct live *live)
{
	return live->job_opened ? live->job.merge.inputs[0].reader.nr_damaged : 0;
}

void live_reset(struct live *live)
{
	live_forget(live);
	live->began = live_clock();
	live->base_lost = live->job.lost;
	live->base_damaged = damaged(live);
	live->base_others = job_others(&live->job);
}

void live_next_source(struct live *live)
{
	live->shown = live->nr_sums ? (live->shown + 1) % live->nr_sums : 0;
}

const struct strtab *live_names(const struct live *live)
{
	return &live->strings;
}

/* ---- views ---- */

/* After the end, the last seconds of the recording stay the last seconds. */
static uint64_t time_of_view(const struct live *live)
{
	return live->state < LIVE_ENDED ? live_clock() : live->now;
}

/* All entries of the last seconds; several may have the same keys. The caller frees the entries. */
static struct tally lately(struct live *live, const struct live_sum *sum)
{
	uint64_t second = time_of_view(live) / LIVE_SECOND;
	struct tally all = { .world = &live->job.world, .by = tally_keys(live) };

	for (size_t i = 0; i < LIVE_SECONDS; i++) {
		const struct tally *slot = &sum->slots[i].tally;

		if (!slot->nr || sum->slots[i].second + LIVE_SECONDS <= second)
			continue;
		GROW(all.entries, all.nr + slot->nr, all.cap);
		memcpy(all.entries + all.nr, slot->entries, slot->nr * sizeof(*slot->entries));
		all.nr += slot->nr;
	}
	return all;
}

static bool is_idle(struct live *live, const struct tally_entry *entry)
{
	struct world *world = &live->job.world;
	size_t nr;

	if (entry->comm && role_idle_task(str_text(&live->strings, entry->comm)))
		return true;
	if (!entry->stack)
		return false;
	return role_idle(
		str_text(&live->strings,
			 frame_symbols(world, world->stacks.all[entry->stack].frame, &nr)->name));
}

static void look_at_cpus(struct live *live, struct live_view *view, const struct tally *now)
{
	bool weigh = tally_counts_weight(now, &live->options, MEASURE_WEIGHT);
	size_t nr = live->nr_cpus;

	GROW(view->cpus, nr, view->cap_cpus);
	view->nr_cpus = nr;
	for (size_t i = 0; i < nr; i++)
		view->cpus[i] = live->cpus[i];
	for (size_t i = 0; i < now->nr; i++) {
		const struct tally_entry *entry = &now->entries[i];
		uint64_t value = weigh ? entry->weight : entry->samples;

		if (entry->cpu >= nr)
			continue;
		view->cpus[entry->cpu].all += value;
		if (!is_idle(live, entry))
			view->cpus[entry->cpu].busy += value;
	}
}

static double rate(const struct live *live, const struct tally *now)
{
	uint64_t time = time_of_view(live);
	uint64_t since = (time / LIVE_SECOND - LIVE_SECONDS + 1) * LIVE_SECOND;

	if (since < live->began)
		since = live->began;
	return (double)tally_total(now, false) * 1e9 / (double)(time - since + 1);
}

static void look_at_counts(struct live *live, struct live_view *view, const struct tally *now)
{
	const struct in *in = live->job_opened ? &live->job.merge.inputs[0].in : &live->in;

	view->counts = (struct live_counts){
		.bytes = in->taken,
		.samples = live->samples,
		.weight = live->weight,
		.others = job_others(&live->job) - live->base_others,
		.lost = live->job.lost - live->base_lost,
		.damaged = damaged(live) - live->base_damaged,
		.rate = rate(live, now),
		.sources = live->nr_sums,
	};
}

static void look_at_rows(struct live *live, struct live_view *view, const struct live_sum *sum,
			 const struct tally *now)
{
	struct flat all, recent;

	flat_make(&all, &sum->all, view->by, &live->options);
	flat_make(&recent, now, view->by, &live->options);
	GROW(view->rows, all.nr, view->cap_rows);
	view->nr_rows = all.nr;
	view->weight = all.weight;
	view->now = recent.weight;
	for (size_t i = 0; i < all.nr; i++) {
		const struct flat_row *row = flat_find(&recent, &all.rows[i]);

		view->rows[i] = (struct live_row){ .sum = all.rows[i], .now = row ? row->self : 0 };
	}
	flat_release(&all);
	flat_release(&recent);
	if (view->by == FLAT_TASK) {
		view->counts.tasks = view->nr_rows;
		return;
	}
	flat_make(&all, &sum->all, FLAT_TASK, &live->options);
	view->counts.tasks = all.nr;
	flat_release(&all);
}

/* tally_tree() sorts the entries, and so has to get a copy. */
static void look_at_tree(struct live *live, struct live_view *view, const struct live_sum *sum,
			 unsigned columns)
{
	struct tally copy = sum->all;
	struct tally_view wanted = {
		.options = &live->options,
		.weight = tally_counts_weight(&copy, &live->options, MEASURE_WEIGHT),
	};

	wanted.min = tally_total(&copy, wanted.weight) / columns;
	copy.entries = xcalloc(copy.nr + 1, sizeof(*copy.entries));
	memcpy(copy.entries, sum->all.entries, copy.nr * sizeof(*copy.entries));
	copy.index = (struct hash){ 0 };
	tally_tree(&copy, &view->tree, &wanted);
	tree_finish(&view->tree);
	free(copy.entries);
}

void live_look(struct live *live, struct live_view *view, enum flat_by by, unsigned columns)
{
	const struct live_sum *sum = live->nr_sums ? &live->sums[live->shown] : NULL;
	struct tally now = { .world = &live->job.world };

	if (sum)
		now = lately(live, sum);
	view->by = by;
	view->time = time_of_view(live);
	view->nr_rows = 0;
	view->weight = view->now = view->source = 0;
	view->unit = "samples";
	look_at_counts(live, view, &now);
	look_at_cpus(live, view, &now);
	tree_release(&view->tree);
	tree_init(&view->tree, &live->strings);
	if (sum) {
		view->source = source_name(&live->job.world, sum->source);
		view->unit = tally_unit(&sum->all, tally_counts_weight(&sum->all, &live->options,
								       MEASURE_WEIGHT));
		look_at_rows(live, view, sum, &now);
	}
	if (sum && columns)
		look_at_tree(live, view, sum, columns);
	free(now.entries);
}

void live_view_release(struct live_view *view)
{
	tree_release(&view->tree);
	free(view->cpus);
	free(view->rows);
	memset(view, 0, sizeof(*view));
}

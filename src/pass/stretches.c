// SPDX-License-Identifier: GPL-2.0-or-later
#include "pass/stretches.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "pass/track.h"

#define MAX_WAITING 32768		  /* entries of the queue */
#define MAX_WIDTH ((uint64_t)10000000000) /* ns: no sample stands for more */
#define FEW 64				  /* threads: too few to tidy up */

/*
 * By how much two samples of a thread that runs all the time may be further apart than usual. If no other thread
 * was sampled on the same cpu in between, it is more likely that it ran all the time.
 */
#define SLACK_ALONE(width) (3 * (width))
#define SLACK(width) ((width) + (width) / 2)

/* Entries of the same time are done in this order, so that a stretch that goes on is not ended. */
enum stretch_kind { STRETCH_BEGINS, STRETCH_RUNS, STRETCH_ENDS, STRETCH_LOST };

struct stretch_entry {
	uint64_t time;
	uint64_t number; /* of its sample */
	enum stretch_kind kind;
	bool runs;		     /* with STRETCH_BEGINS: also do what STRETCH_RUNS does */
	bool lost;		     /* with STRETCH_RUNS: samples before it are missing */
	struct stretch_track *track; /* NULL: STRETCH_LOST */
	struct stretch_sample sample;
};

struct stretch_track { /* the time axis of a thread */
	uint64_t key_task, key_cpu;
	uint32_t pid, tid; /* of its slices */
	uint32_t handle;
	uint64_t id;		    /* unique */
	uint32_t waiting;	    /* entries in the queue */
	uint64_t last;		    /* the time of its last sample */
	uint64_t number;	    /* of the sample whose stretch is shown; 0: none */
	struct stretch_sample due;  /* the one to be counted where that stretch ends */
	struct slices_task *slices; /* NULL: none yet */
};

struct stretch_cpu {
	uint32_t cpu;
	uint64_t last;	      /* the time of its last sample */
	uint64_t number;      /* of the sample whose task is shown to run */
	uint64_t track;	      /* the id of the last sample's */
	bool known;	      /* it had a sample */
	bool lost, was_here;  /* samples since then are missing; it is selected */
	uint64_t lost_before; /* a time, if known */
};

/* Queue */

static bool is_before(const struct stretch_entry *a, const struct stretch_entry *b)
{
	if (a->time != b->time)
		return a->time < b->time;
	if (a->kind != b->kind)
		return a->kind < b->kind;
	return a->number < b->number;
}

static void push(struct stretches *st, struct stretch_entry entry)
{
	size_t at = st->nr++;

	GROW(st->queue, st->nr, st->cap);
	while (at && is_before(&entry, &st->queue[(at - 1) / 2])) {
		st->queue[at] = st->queue[(at - 1) / 2];
		at = (at - 1) / 2;
	}
	st->queue[at] = entry;
	if (entry.track)
		entry.track->waiting++;
}

void stretches_forget(struct stretches *st, struct stretch_pace *pace)
{
	struct stretch_pace **link = &st->unknown;
	struct stretch_entry *old = st->queue;
	size_t nr = st->nr;

	while (*link && *link != pace)
		link = &(*link)->next;
	if (*link)
		*link = pace->next;
	memset(pace, 0, sizeof(*pace));
	st->queue = NULL;
	st->nr = st->cap = 0;
	for (size_t i = 0; i < nr; i++) {
		if (old[i].track) {
			old[i].track->waiting--;
			old[i].track->last = NO_TIME;
		}
		if (old[i].sample.pace != pace)
			push(st, old[i]);
	}
	for (size_t i = 0; i < st->nr_cpus; i++)
		st->cpus[i].known = false;
	free(old);
}

static struct stretch_entry pop(struct stretches *st)
{
	struct stretch_entry first = st->queue[0], last = st->queue[--st->nr];
	size_t at = 0, child;

	while ((child = 2 * at + 1) < st->nr) {
		if (child + 1 < st->nr && is_before(&st->queue[child + 1], &st->queue[child]))
			child++;
		if (!is_before(&st->queue[child], &last))
			break;
		st->queue[at] = st->queue[child];
		at = child;
	}
	st->queue[at] = last;
	if (first.track)
		first.track->waiting--;
	return first;
}

/* Threads */

static struct hash_key key_of(const struct stretch_track *track)
{
	return (struct hash_key){ track->key_task, track->key_cpu };
}

/* Removes the threads that are gone from the index. */
static void tidy_tracks(struct stretches *st)
{
	size_t nr = 0;

	if (st->nr_tracks < FEW || st->nr_tracks < 2 * st->nr_live)
		return;
	hash_release(&st->track_by_key);
	for (size_t i = 0; i < st->nr_tracks; i++) {
		if (!st->tracks[i])
			continue;
		st->tracks[nr] = st->tracks[i];
		st->tracks[nr]->handle = (uint32_t)nr + 1;
		*hash_at(&st->track_by_key, key_of(st->tracks[nr])) = (uint32_t)nr + 1;
		nr++;
	}
	st->nr_tracks = nr;
}

/* The tid that slices have. Threads that share one get another one for each cpu. */
static uint32_t shown_tid(struct stretches *st, const struct stretch_sample *sample)
{
	struct hash_key key = { (uint64_t)sample->pid << 32 | sample->tid, sample->cpu };
	uint32_t *handle;

	if (!sample->shared)
		return sample->tid;
	handle = hash_at(&st->shared_by_key, key);
	if (!*handle) {
		GROW(st->shared, st->nr_shared + 1, st->cap_shared);
		st->shared[st->nr_shared++] =
			(struct stretch_shared){ sample->pid, sample->tid, sample->cpu };
		*handle = (uint32_t)st->nr_shared;
	}
	return SLICES_SHARED_TID + *handle - 1;
}

const struct stretch_shared *stretches_shared(const struct stretches *st, uint32_t tid)
{
	return tid >= SLICES_SHARED_TID && tid - SLICES_SHARED_TID < st->nr_shared
		       ? &st->shared[tid - SLICES_SHARED_TID]
		       : NULL;
}

static struct stretch_track *track_of(struct stretches *st, const struct stretch_sample *sample)
{
	struct stretch_track key = { .key_task = (uint64_t)sample->pid << 32 | sample->tid,
				     .key_cpu = sample->shared ? sample->cpu : (uint64_t)1 << 32 };
	struct stretch_track *track;
	uint32_t *handle;

	tidy_tracks(st);
	handle = hash_at(&st->track_by_key, key_of(&key));
	if (*handle && st->tracks[*handle - 1])
		return st->tracks[*handle - 1];
	track = xcalloc(1, sizeof(*track));
	*track = key;
	track->pid = sample->pid;
	track->tid = shown_tid(st, sample);
	track->last = NO_TIME;
	track->id = ++st->last_track;
	GROW(st->tracks, st->nr_tracks + 1, st->cap_tracks);
	st->tracks[st->nr_tracks++] = track;
	st->nr_live++;
	track->handle = *handle = (uint32_t)st->nr_tracks;
	return track;
}

static void drop_track(struct stretches *st, struct stretch_track *track)
{
	if (track->slices)
		slices_end_task(st->slices, track->slices);
	st->tracks[track->handle - 1] = NULL;
	st->nr_live--;
	free(track);
}

/* NULL: it is unknown. Valid until the next call. */
static struct stretch_cpu *cpu_of(struct stretches *st, uint32_t number)
{
	uint32_t cpu = track_cpu_number(number), *handle;

	if (number == NO_CPU)
		return NULL;
	handle = hash_at(&st->cpu_by_number, (struct hash_key){ cpu, 0 });
	if (!*handle) {
		GROW(st->cpus, st->nr_cpus + 1, st->cap_cpus);
		st->cpus[st->nr_cpus++] = (struct stretch_cpu){ .cpu = number };
		*handle = (uint32_t)st->nr_cpus;
	}
	return &st->cpus[*handle - 1];
}

/* What leaves the queue */

/* The sample counts where its stretch ends, which is at its own time. */
static void count_due(struct stretches *st, struct stretch_track *track)
{
	const struct stretch_sample *due = &track->due;

	if (due->selected && due->count)
		slices_sample(st->slices, track->slices, due->cpu, due->count, due->instructions);
	track->due.count = 0;
}

static void follow(struct stretches *st, struct slices_task *task, uint32_t stack)
{
	const uint32_t *functions;
	size_t nr = st->functions(st->data, stack, &functions), same = 0;

	while (same < nr && same < task->nr && task->open[same].frame == functions[same])
		same++;
	slices_close(st->slices, task, same);
	for (; same < nr; same++)
		slices_open(st->slices, task,
			    (struct slice){ .time = st->slices->now,
					    .frame = functions[same],
					    .kind = SLICE_SAMPLED });
}

static void run(struct stretches *st, const struct stretch_entry *entry)
{
	const struct stretch_sample *sample = &entry->sample;
	struct stretch_cpu *cpu = cpu_of(st, sample->cpu);

	cpu->number = entry->number;
	if (!sample->here)
		return;
	if (entry->lost)
		slices_gap(st->slices, sample->cpu);
	slices_run(st->slices, sample->cpu, sample->selected ? entry->track->slices : NULL, true);
}

/* The task of a sample no longer runs on its cpu, unless a later sample says that it does. */
static void stop(struct stretches *st, const struct stretch_sample *sample, uint64_t number)
{
	struct stretch_cpu *cpu = cpu_of(st, sample->cpu);

	if (!cpu || cpu->number != number)
		return;
	cpu->number = 0;
	if (sample->here)
		slices_run(st->slices, sample->cpu, NULL, true);
}

static void begin(struct stretches *st, const struct stretch_entry *entry)
{
	struct stretch_track *track = entry->track;
	const struct stretch_sample *sample = &entry->sample;

	count_due(st, track);
	/* It leaves a cpu before it runs on another one. */
	if (track->number && track->due.cpu != sample->cpu)
		stop(st, &track->due, track->number);
	track->number = entry->number;
	track->due = *sample;
	if (sample->selected && !track->slices)
		track->slices = slices_task(st->slices, track->pid, track->tid, sample->cpu);
	if (track->slices && sample->selected)
		follow(st, track->slices, sample->stack);
	else if (track->slices)
		slices_close(st->slices, track->slices, 0);
	if (entry->runs)
		run(st, entry);
	else if (track->slices)
		slices_show(st->slices, track->slices, true);
}

static void end(struct stretches *st, const struct stretch_entry *entry)
{
	struct stretch_track *track = entry->track;
	bool over = track->number == entry->number;

	if (over) {
		count_due(st, track);
		track->number = 0;
		if (track->slices)
			slices_close(st->slices, track->slices, 0);
	}
	stop(st, &entry->sample, entry->number);
	if (over && !track->waiting)
		drop_track(st, track);
}

static void show_first(struct stretches *st)
{
	struct stretch_entry entry = pop(st);

	st->done = entry.time;
	st->started = true;
	slices_advance(st->slices, entry.time);
	switch (entry.kind) {
	case STRETCH_BEGINS: begin(st, &entry); break;
	case STRETCH_RUNS: run(st, &entry); break;
	case STRETCH_ENDS: end(st, &entry); break;
	case STRETCH_LOST: slices_gap(st->slices, entry.sample.cpu); break;
	}
}

/* Samples */

static int by_size(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/*
 * The lower quartile of the last distances: they are longer where the thread waited, or where the event was
 * rare, but hardly shorter.
 */
static void learn(struct stretch_pace *pace, uint64_t distance)
{
	uint64_t sorted[STRETCH_DISTANCES];
	size_t nr;

	if (!distance)
		return;
	pace->distances[pace->nr++ % STRETCH_DISTANCES] = distance;
	nr = pace->nr < STRETCH_DISTANCES ? pace->nr : STRETCH_DISTANCES;
	memcpy(sorted, pace->distances, nr * sizeof(*sorted));
	qsort(sorted, nr, sizeof(*sorted), by_size);
	pace->typical = sorted[nr / 4];
}

static uint64_t width_of(const struct stretch_sample *sample, const struct stretch_track *track,
			 const struct stretch_cpu *cpu)
{
	uint64_t since = cpu && cpu->known ? cpu->last : cpu ? NO_TIME : track->last, width;

	if (sample->pace && since != NO_TIME && since <= sample->time)
		learn(sample->pace, sample->time - since);
	width = sample->width ? sample->width : sample->pace ? sample->pace->typical : 0;
	return width < MAX_WIDTH ? width : MAX_WIDTH;
}

/* Where the stretch of a sample begins. */
static uint64_t begin_of(const struct stretches *st, const struct stretch_sample *sample,
			 const struct stretch_track *track, const struct stretch_cpu *cpu)
{
	uint64_t width = width_of(sample, track, cpu), time = sample->time;
	uint64_t from = time > width ? time - width : 0;
	bool alone = !cpu || cpu->track == track->id;

	if (track->last != NO_TIME) {
		uint64_t most = alone ? SLACK_ALONE(width) : SLACK(width);

		if (time - track->last <= most || from < track->last)
			from = track->last;
	}
	return from < st->done ? st->done : from;
}

/* Queues that the task runs on the cpu, where no earlier sample says something else. */
static void queue_run(struct stretches *st, struct stretch_entry *begins, struct stretch_cpu *cpu)
{
	struct stretch_entry runs = *begins;
	uint64_t time = begins->sample.time;

	if (cpu->known && runs.time < cpu->last)
		runs.time = cpu->last;
	if (runs.time > time)
		return;
	runs.kind = STRETCH_RUNS;
	runs.lost = cpu->lost && runs.time > cpu->last;
	begins->runs = runs.time == begins->time;
	begins->lost = runs.lost;
	if (!begins->runs)
		push(st, runs);
	cpu->known = true;
	cpu->lost = false;
	cpu->last = time;
	cpu->track = begins->track->id;
	cpu->was_here = begins->sample.here;
}

static void add(struct stretches *st, const struct stretch_sample *sample)
{
	struct stretch_track *track;
	struct stretch_cpu *cpu;
	struct stretch_entry entry = { .kind = STRETCH_BEGINS, .sample = *sample };

	if (sample->time < st->done) {
		st->late += sample->count;
		return;
	}
	track = track_of(st, sample);
	cpu = cpu_of(st, sample->cpu);
	if (track->last != NO_TIME && sample->time <= track->last) {
		st->late += sample->count;
		return;
	}
	entry.number = ++st->number;
	entry.track = track;
	entry.time = begin_of(st, sample, track, cpu);
	if (cpu)
		queue_run(st, &entry, cpu);
	push(st, entry);
	entry.kind = STRETCH_ENDS;
	entry.time = track->last = sample->time;
	push(st, entry);
	while (st->nr > (st->max_waiting ? st->max_waiting : MAX_WAITING))
		show_first(st);
}

/* Learns the distance of the first samples from all of them, and adds them. */
static void end_wait(struct stretches *st, struct stretch_pace *pace)
{
	pace->known = true;
	for (size_t i = 1; i < pace->nr_first; i++) {
		const struct stretch_sample *of = &pace->first[i];
		size_t at = i;

		while (at-- > 0) {
			const struct stretch_sample *before = &pace->first[at];

			if (before->cpu != of->cpu || (of->cpu == NO_CPU && before->tid != of->tid))
				continue;
			if (before->time <= of->time)
				learn(pace, of->time - before->time);
			break;
		}
	}
	for (size_t i = 0; i < pace->nr_first; i++)
		add(st, &pace->first[i]);
}

void stretches_add(struct stretches *st, const struct stretch_sample *sample)
{
	struct stretch_pace *pace = sample->pace;

	if (!pace || pace->known || (sample->width && !pace->nr_first)) {
		add(st, sample);
		return;
	}
	if (!pace->nr_first) {
		pace->next = st->unknown;
		st->unknown = pace;
	}
	pace->first[pace->nr_first++] = *sample;
	if (pace->nr_first == STRETCH_DISTANCES)
		end_wait(st, pace);
}

void stretches_lost(struct stretches *st, uint32_t number, uint64_t time)
{
	for (size_t i = 0; i < st->nr_cpus; i++) {
		struct stretch_cpu *cpu = &st->cpus[i];

		if (number != NO_CPU && cpu->cpu != number)
			continue;
		cpu->lost = true;
		cpu->lost_before = time == NO_TIME ? cpu->last : time;
	}
}

/* Samples are missing at the end. */
static void queue_lost(struct stretches *st)
{
	for (size_t i = 0; i < st->nr_cpus; i++) {
		const struct stretch_cpu *cpu = &st->cpus[i];

		if (cpu->lost && cpu->was_here && cpu->lost_before > cpu->last)
			push(st, (struct stretch_entry){ .time = cpu->lost_before,
							 .number = ++st->number,
							 .kind = STRETCH_LOST,
							 .sample.cpu = cpu->cpu });
	}
}

void stretches_finish(struct stretches *st)
{
	for (struct stretch_pace *pace = st->unknown; pace; pace = pace->next) {
		if (!pace->known)
			end_wait(st, pace);
	}
	st->unknown = NULL;
	queue_lost(st);
	while (st->nr)
		show_first(st);
}

void stretches_release(struct stretches *st)
{
	for (size_t i = 0; i < st->nr_tracks; i++)
		free(st->tracks[i]);
	free(st->tracks);
	free(st->queue);
	free(st->cpus);
	hash_release(&st->track_by_key);
	hash_release(&st->cpu_by_number);
	free(st->shared);
	hash_release(&st->shared_by_key);
	memset(st, 0, sizeof(*st));
}

// SPDX-License-Identifier: GPL-2.0-or-later
/* Takes the events, and keeps rows of them until the end. */
#include "base/mem.h"
#include "model/role.h"
#include "write/firefox.h"

/* ---- threads ---- */

/* Data may be out of order. */
static void widen(uint64_t *first, uint64_t *last, uint64_t time)
{
	if (time == NO_TIME)
		return;
	if (*first == NO_TIME) {
		*first = *last = time;
		return;
	}
	if (time < *first)
		*first = time;
	if (time > *last)
		*last = time;
}

static void see_time(struct firefox *ff, uint64_t time)
{
	widen(&ff->first, &ff->last, time);
}

static uint32_t find_thread(struct firefox *ff, const struct firefox_thread *want, bool *added)
{
	uint64_t words[] = { want->kind, (uint64_t)want->pid << 32 | want->tid,
			     (uint64_t)want->source << 32 | want->cpu, want->heap };
	uint32_t *number = hash_at(&ff->thread_index, hash_words(words, 4, 0));

	*added = !*number;
	if (!*number) {
		GROW(ff->threads, ff->nr_threads + 1, ff->cap_threads);
		ff->threads[ff->nr_threads++] = *want;
		*number = (uint32_t)ff->nr_threads;
	}
	return *number - 1;
}

static struct firefox_thread new_thread(enum firefox_thread_kind kind)
{
	return (struct firefox_thread){ .kind = kind,
					.pid = NO_TASK,
					.tid = NO_TASK,
					.cpu = NO_CPU,
					.first = NO_TIME,
					.run_cpu = NO_CPU,
					.run_begin = NO_TIME };
}

/* Each cpu has an idle task, and all of them have the id 0. If the data has no ids, each cpu may run another thread. */
static bool is_shared(const struct event *ev)
{
	return ev->tid == NO_TASK || (!ev->pid && !ev->tid);
}

/* The thread of the event's task; source 0: the one with its markers. */
static uint32_t task_thread(struct firefox *ff, const struct event *ev, uint32_t source)
{
	struct firefox_thread want = new_thread(THREAD_TASK);
	uint64_t words[3];
	uint32_t *main, number;
	bool added;

	want.pid = ev->pid;
	want.tid = ev->tid;
	want.cpu = is_shared(ev) ? ev->cpu : NO_CPU;
	words[0] = want.pid;
	words[1] = want.tid;
	words[2] = want.cpu;
	main = hash_at(&ff->task_index, hash_words(words, 3, 0));
	if (*main && (!source || ff->threads[*main - 1].source == source))
		return *main - 1;
	if (*main && !ff->threads[*main - 1].source) { /* it had only markers */
		ff->threads[*main - 1].source = source;
		return *main - 1;
	}
	want.source = source;
	number = find_thread(ff, &want, &added);
	if (!*main)
		*main = number + 1;
	ff->threads[number].main = *main - 1;
	return number;
}

static uint32_t cpu_thread(struct firefox *ff, uint32_t cpu)
{
	struct firefox_thread want = new_thread(THREAD_CPU);
	uint32_t number;
	bool added;

	want.cpu = cpu;
	number = find_thread(ff, &want, &added);
	ff->threads[number].main = number;
	return number;
}

/* ---- samples ---- */

/* Ends the stretch of samples of a thread on one cpu. */
void firefox_end_run(struct firefox *ff, uint32_t number)
{
	struct firefox_thread *thread = &ff->threads[number];
	struct firefox_marker marker = { .type = MARKER_CPU,
					 .begin = thread->run_begin,
					 .end = thread->run_end,
					 .samples = thread->run_samples,
					 .cpu = thread->run_cpu };

	if (thread->run_samples && thread->run_cpu != NO_CPU && thread->cpu == NO_CPU)
		rows_add(&ff->markers, number, &marker);
	thread->run_samples = 0;
	thread->run_begin = NO_TIME;
}

static void see_cpu(struct firefox *ff, uint32_t number, const struct event *ev)
{
	struct firefox_thread *thread = &ff->threads[number];

	if (ev->time == NO_TIME)
		return;
	if (ev->cpu != thread->run_cpu)
		firefox_end_run(ff, number);
	thread->run_cpu = ev->cpu;
	thread->run_samples++;
	widen(&thread->run_begin, &thread->run_end, ev->time);
}

void firefox_put_sample(struct writer *w, const struct event *ev)
{
	struct firefox *ff = w->priv;
	uint32_t comm = world_comm(w->world, ev->pid, ev->tid);
	uint32_t number = task_thread(ff, ev, ev->sample.source);
	struct firefox_thread *thread = &ff->threads[number];
	struct firefox_sample row = {
		.time = ev->time,
		.weight = ev->sample.weight,
		.count = ev->sample.count + !ev->sample.count,
		.stack = world_stack(w->world, ev),
		.idle = comm && role_idle_task(str_text(w->world->strings, comm)),
	};

	see_time(ff, ev->time);
	firefox_use(&ff->tables, row.stack, row.idle);
	widen(&thread->first, &thread->last, ev->time);
	thread->timed += ev->time != NO_TIME;
	thread->nr++;
	thread->busy += !row.idle;
	thread->count += row.count;
	thread->weight += row.weight;
	thread->weighs |= row.weight != 1 || row.count != 1;
	rows_add(&ff->samples, number, &row);
	see_cpu(ff, thread->main, ev);
}

/* ---- slices, losses and tasks ---- */

static void begin_slice(struct firefox *ff, uint32_t number, bool before)
{
	struct firefox_thread *thread = &ff->threads[number];

	GROW(thread->open, thread->nr_open + 1, thread->cap_open);
	thread->open[thread->nr_open++] = before;
}

void firefox_put_slice(struct firefox *ff, const struct event *ev)
{
	const struct event_slice *slice = &ev->slice;
	uint32_t number = timeline_on_cpu(ev) ? cpu_thread(ff, ev->cpu) : task_thread(ff, ev, 0);
	struct firefox_thread *thread = &ff->threads[number];
	struct firefox_marker marker = {
		.type = MARKER_CALL,
		.begin = slice->began,
		.end = slice->ended,
		.instructions = slice->instructions,
		.own = slice->own,
		.cycles = slice->cycles,
		.own_cycles = slice->own_cycles,
		.samples = slice->samples,
		.lines = slice->lines,
		.own_lines = slice->own_lines,
		.frame = slice->frame,
		.cpu = ev->cpu,
		.pid = ev->pid,
		.tid = ev->tid,
		.kind = (uint8_t)slice->kind,
		.knows = slice->knows,
		.goes_on = slice->cut,
	};

	if (slice->kind == SLICE_NOTE) {
		marker.type = MARKER_NOTE;
		marker.kind = (uint8_t)slice->note->kind;
		marker.value = slice->note->value;
		marker.address = slice->note->address;
		marker.end = marker.begin;
	} else if (!slice->leave) {
		begin_slice(ff, number, slice->cut);
		return;
	} else if (thread->nr_open) {
		marker.began_before = thread->open[--thread->nr_open];
	}
	thread->calls += thread->kind == THREAD_TASK;
	thread->losses += slice->kind == SLICE_GAP;
	see_time(ff, marker.begin);
	see_time(ff, marker.end);
	rows_add(&ff->markers, number, &marker);
}

void firefox_put_lost(struct firefox *ff, const struct event *ev)
{
	uint64_t time = ev->time == NO_TIME && ff->first != NO_TIME ? ff->last : ev->time;
	struct firefox_marker marker = { .type = MARKER_LOST,
					 .begin = time,
					 .end = time,
					 .samples = ev->lost.count,
					 .value = ev->lost.bytes,
					 .cpu = ev->cpu,
					 .damage = ev->lost.damage };
	uint32_t number = ev->tid != NO_TASK ? task_thread(ff, ev, 0) : cpu_thread(ff, ev->cpu);

	ff->lost += ev->lost.count;
	ff->threads[number].losses++;
	see_time(ff, time);
	rows_add(&ff->markers, number, &marker);
}

void firefox_put_life(struct firefox *ff, const struct event *ev)
{
	uint32_t *number = hash_at(&ff->life_index, (struct hash_key){ ev->pid, ev->tid });
	struct firefox_life *life;

	if (!*number) {
		GROW(ff->lives, ff->nr_lives + 1, ff->cap_lives);
		ff->lives[ff->nr_lives++] = (struct firefox_life){ NO_TIME, NO_TIME };
		*number = (uint32_t)ff->nr_lives;
	}
	life = &ff->lives[*number - 1];
	if (ev->kind == EVENT_EXIT) {
		life->ended = ev->time;
		return;
	}
	life->ended = NO_TIME; /* of an earlier thread with the same id */
	if (!ev->fork.fresh && life->began == NO_TIME)
		life->began = ev->time;
}

const struct firefox_life *firefox_life(const struct firefox *ff, uint32_t pid, uint32_t tid)
{
	uint32_t number = hash_get(&ff->life_index, (struct hash_key){ pid, tid });

	return number ? &ff->lives[number - 1] : NULL;
}

/* ---- allocations ---- */

static uint32_t heap_thread(struct firefox *ff, uint32_t heap)
{
	struct firefox_thread want = new_thread(THREAD_HEAP);
	uint32_t number;
	bool added;

	want.heap = str_intern_z(ff->heaps.world->strings, ff->heaps.heaps[heap]->name);
	number = find_thread(ff, &want, &added);
	ff->threads[number].main = number;
	return number;
}

static void add_row(struct firefox *ff, const struct alloc_site *site, uint32_t part, bool freed)
{
	uint32_t number = heap_thread(ff, site->allocator);
	struct firefox_thread *thread = &ff->threads[number];
	struct firefox_alloc row = { .time = ff->alloc_time,
				     .size = ff->parts[part].size,
				     .stack = site->stack,
				     .tid = ff->alloc_tid,
				     .part = part,
				     .freed = freed };

	see_time(ff, row.time);
	firefox_use(&ff->tables, row.stack, false);
	thread->allocs++;
	thread->allocs_timed += row.time != NO_TIME;
	rows_add(&ff->allocs, number, &row);
}

static void add_part(struct firefox *ff, uint32_t *last, uint32_t owner, uint64_t size)
{
	uint32_t part = ff->free_part;

	if (part) {
		ff->free_part = ff->parts[part].before;
	} else {
		part = (uint32_t)ff->nr_parts++;
		GROW(ff->parts, ff->nr_parts, ff->cap_parts);
	}
	ff->parts[part] = (struct firefox_part){ size, *last };
	*last = part;
	add_row(ff, &ff->heaps.sites[owner], part, false);
}

static uint64_t free_part(struct firefox *ff, uint32_t *last, uint32_t by)
{
	uint32_t part = *last;

	add_row(ff, &ff->heaps.sites[by], part, true);
	*last = ff->parts[part].before;
	ff->parts[part].before = ff->free_part;
	ff->free_part = part;
	return ff->parts[part].size;
}

void firefox_change_block(void *arg, uint32_t block, uint32_t by, uint64_t was, uint64_t now)
{
	struct firefox *ff = arg;
	uint32_t owner = ff->heaps.blocks[block].site, *last;

	while (ff->nr_blocks <= block) {
		GROW(ff->blocks, ff->nr_blocks + 1, ff->cap_blocks);
		ff->blocks[ff->nr_blocks++] = 0;
	}
	last = &ff->blocks[block];
	while (*last && was > now)
		was -= free_part(ff, last, by);
	if (was < now)
		add_part(ff, last, owner, now - was);
}

void firefox_put_alloc(struct firefox *ff, const struct event *ev)
{
	ff->alloc_time = ev->time;
	ff->alloc_tid = ev->tid;
	alloc_add(&ff->heaps, ev);
}

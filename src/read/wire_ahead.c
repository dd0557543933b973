// SPDX-License-Identifier: GPL-2.0-or-later
#include "read/wire_ahead.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/worker.h"

#define INLINE_MAX ((size_t)1 << 18) /* up to this many bytes, a thread does not pay off */
#define BATCHES_ALL 256		     /* of all cpus together, if each has two or more */

static void lock(struct wire_ahead *ahead)
{
	if (ahead->threaded)
		pthread_mutex_lock(&ahead->lock);
}

static void unlock(struct wire_ahead *ahead)
{
	if (ahead->threaded)
		pthread_mutex_unlock(&ahead->lock);
}

/* ---- decoding: by the thread, without the lock, or by the caller ---- */

static bool has_trace(const struct wire_ahead_cpu *cpu)
{
	return cpu->piece.data || cpu->next < cpu->nr;
}

static size_t nr_ready(const struct wire_ahead_cpu *cpu)
{
	return cpu->filled - cpu->dropped;
}

static struct wire_batch **batch_at(struct wire_ahead_cpu *cpu, size_t number)
{
	return &cpu->batches[number % WIRE_BATCHES];
}

/* Prepares the next batch of a cpu that has a trace, with the lock held. */
static struct wire_batch *take_work(struct wire_ahead_cpu *cpu)
{
	struct wire_batch **batch = batch_at(cpu, cpu->decoded);

	if (!*batch)
		*batch = xmalloc(sizeof(**batch));
	if (!cpu->piece.data) {
		cpu->piece = cpu->pieces[cpu->next++];
		if (cpu->next == cpu->nr)
			cpu->nr = cpu->next = 0;
		if (cpu->piece.hole)
			wire_trace_hole(&cpu->trace);
		wire_trace_feed(&cpu->trace, cpu->piece.data, cpu->piece.len, cpu->piece.time);
	}
	return *batch;
}

/* Decodes into a batch. Returns whether the piece is finished. */
static bool fill_batch(struct wire_ahead_cpu *cpu, struct wire_batch *batch)
{
	int ret;
	size_t left;

	batch->time = cpu->trace.time;
	batch->pace = 0;
	ret = wire_trace_run(&cpu->trace, batch->events, WIRE_BATCH, &batch->nr);
	left = wire_trace_left(&cpu->trace);
	batch->offset = cpu->piece.offset;
	batch->place = cpu->trace.place;
	batch->place_offset = cpu->piece.offset + cpu->piece.len - left;
	batch->wrong = ret < 0 ? cpu->trace.wrong : NULL;
	batch->wrong_bytes = left;
	batch->wrong_offset = batch->place_offset;
	return ret <= 0;
}

/* Adds the instructions of a batch to those since the last time. */
static void add_instructions(struct wire_ahead_cpu *cpu, const struct wire_batch *batch)
{
	for (size_t i = 0; i < batch->nr; i++) {
		if (batch->events[i].kind != EVENT_BRANCH)
			continue;
		if (!cpu->begun)
			cpu->first = batch->events[i].branch.instructions;
		cpu->begun = true;
		cpu->instructions += batch->events[i].branch.instructions;
	}
}

/* The batches since the last time are ready, with the lock held. now: the time after them. */
static void fill_to(struct wire_ahead_cpu *cpu, uint64_t now)
{
	double all = (double)cpu->instructions;

	for (; cpu->filled < cpu->decoded; cpu->filled++) {
		struct wire_batch *batch = *batch_at(cpu, cpu->filled);

		if (now > batch->time && cpu->instructions && cpu->trace.info.has_waits)
			batch->pace = (double)(now - batch->time) / all;
		batch->first = cpu->first;
		batch->until = now;
	}
	cpu->instructions = cpu->first = 0;
	cpu->begun = false;
}

static void finish_batch(struct wire_ahead_cpu *cpu, struct wire_batch *batch, bool finished)
{
	batch->instructions = cpu->instructions;
	add_instructions(cpu, batch);
	cpu->decoded++;
	/* Without a time for long, the events keep the last one. This may not depend on the other thread. */
	if (cpu->trace.time != batch->time || finished ||
	    cpu->decoded - cpu->filled >= WIRE_UNTIMED)
		fill_to(cpu, cpu->trace.time);
	if (!finished)
		return;
	free(cpu->piece.data);
	cpu->piece.data = NULL;
}

/* ---- the thread ---- */

static bool can_decode(const struct wire_ahead *ahead, const struct wire_ahead_cpu *cpu)
{
	return cpu && has_trace(cpu) && nr_ready(cpu) < ahead->room;
}

/* Waking the other side is slow, so wait for this many batches to take or to fill. */
static size_t enough(const struct wire_ahead *ahead)
{
	return ahead->room / 2;
}

/* The cpu that the caller waits for, else the next one in turn. NULL: none. */
static struct wire_ahead_cpu *choose(struct wire_ahead *ahead)
{
	if (can_decode(ahead, ahead->wanted))
		return ahead->wanted;
	for (size_t i = 0; i < ahead->nr; i++) {
		struct wire_ahead_cpu *cpu = ahead->cpus[ahead->turn++ % ahead->nr];

		if (can_decode(ahead, cpu))
			return cpu;
	}
	return NULL;
}

static void decode_one(struct wire_ahead *ahead, struct wire_ahead_cpu *cpu)
{
	struct wire_batch *batch = take_work(cpu);
	bool finished;

	pthread_mutex_unlock(&ahead->lock);
	finished = fill_batch(cpu, batch);
	pthread_mutex_lock(&ahead->lock);
	finish_batch(cpu, batch, finished);
	if (ahead->wanted == cpu && (nr_ready(cpu) >= enough(ahead) || !has_trace(cpu)))
		pthread_cond_signal(&ahead->ready);
}

static void *decode_ahead(void *data)
{
	struct wire_ahead *ahead = data;

	pthread_mutex_lock(&ahead->lock);
	while (!ahead->stop) {
		struct wire_ahead_cpu *cpu = choose(ahead);

		if (cpu) {
			decode_one(ahead, cpu);
			continue;
		}
		ahead->idle = true;
		pthread_cond_wait(&ahead->work, &ahead->lock);
		ahead->idle = false;
	}
	pthread_mutex_unlock(&ahead->lock);
	return NULL;
}

/* If there is no thread, decoding only takes longer. */
static void start_thread(struct wire_ahead *ahead)
{
	ahead->tried = true;
	if (worker_cpus() < 2)
		return;
	pthread_mutex_init(&ahead->lock, NULL);
	pthread_cond_init(&ahead->work, NULL);
	pthread_cond_init(&ahead->ready, NULL);
	ahead->threaded = worker_start(&ahead->thread, decode_ahead, ahead);
}

/* ---- the caller ---- */

static void wake(struct wire_ahead *ahead)
{
	if (ahead->threaded && ahead->idle)
		pthread_cond_signal(&ahead->work);
}

static void share_room(struct wire_ahead *ahead)
{
	size_t room = BATCHES_ALL / ++ahead->nr_used;

	ahead->room = room < 2 ? 2 : room > WIRE_READY ? WIRE_READY : room;
}

static struct wire_ahead_cpu *cpu_of(struct wire_ahead *ahead, uint32_t number)
{
	if (number >= ahead->nr) {
		ahead->cpus = xrealloc(ahead->cpus, number + 1, sizeof(*ahead->cpus));
		memset(ahead->cpus + ahead->nr, 0, (number + 1 - ahead->nr) * sizeof(*ahead->cpus));
		ahead->nr = number + 1;
	}
	if (!ahead->cpus[number]) {
		ahead->cpus[number] = xcalloc(1, sizeof(**ahead->cpus));
		wire_trace_init(&ahead->cpus[number]->trace, number, ahead->info);
		share_room(ahead);
	}
	return ahead->cpus[number];
}

void wire_ahead_add(struct wire_ahead *ahead, uint32_t cpu, const uint8_t *data, size_t len,
		    uint64_t time, bool hole, uint64_t offset)
{
	struct wire_piece piece = { xmalloc(len), len, time, offset, hole };
	struct wire_ahead_cpu *at;

	memcpy(piece.data, data, len);
	lock(ahead);
	at = cpu_of(ahead, cpu);
	GROW(at->pieces, at->nr + 1, at->cap);
	at->pieces[at->nr++] = piece;
	wake(ahead);
	unlock(ahead);
	ahead->bytes += len;
	if (!ahead->tried && ahead->bytes > INLINE_MAX)
		start_thread(ahead);
}

static void wait_for(struct wire_ahead *ahead, struct wire_ahead_cpu *cpu)
{
	ahead->wanted = cpu;
	wake(ahead);
	while (!nr_ready(cpu))
		pthread_cond_wait(&ahead->ready, &ahead->lock);
	ahead->wanted = NULL;
}

static void decode_now(struct wire_ahead_cpu *cpu)
{
	while (!nr_ready(cpu)) {
		struct wire_batch *batch = take_work(cpu);

		finish_batch(cpu, batch, fill_batch(cpu, batch));
	}
}

/*
 * Sets the times of a batch's events. The instructions of the first branch after a time were executed before it: the
 * plugin notes the time of a switch of tasks where the next code begins, and only then writes the switch.
 */
static void date(struct wire_batch *batch)
{
	uint64_t done = batch->instructions;

	if (!batch->pace)
		return;
	for (size_t i = 0; i < batch->nr; i++) {
		struct event *ev = &batch->events[i];
		uint64_t part;

		if (ev->kind == EVENT_BRANCH)
			done += ev->branch.instructions;
		if (ev->kind ==
		    EVENT_MASK) /* in a run whose branch may come only after the next time */
			part = ev->mask.instructions;
		else
			part = 0;
		part += done;
		part -= part < batch->first ? part : batch->first;
		ev->time = batch->time + (uint64_t)((double)part * batch->pace);
		if (ev->time > batch->until)
			ev->time = batch->until;
	}
	batch->pace = 0;
}

struct wire_batch *wire_ahead_first(struct wire_ahead *ahead, struct wire_ahead_cpu *cpu)
{
	struct wire_batch *first = NULL;

	lock(ahead);
	if (!nr_ready(cpu) && has_trace(cpu)) {
		if (ahead->threaded)
			wait_for(ahead, cpu);
		else
			decode_now(cpu);
	}
	if (nr_ready(cpu))
		first = *batch_at(cpu, cpu->dropped);
	unlock(ahead);
	if (first)
		date(first);
	return first;
}

void wire_ahead_drop(struct wire_ahead *ahead, struct wire_ahead_cpu *cpu)
{
	lock(ahead);
	cpu->dropped++;
	if (nr_ready(cpu) <= enough(ahead))
		wake(ahead);
	unlock(ahead);
}

static void stop_thread(struct wire_ahead *ahead)
{
	if (!ahead->threaded)
		return;
	pthread_mutex_lock(&ahead->lock);
	ahead->stop = true;
	wake(ahead);
	pthread_mutex_unlock(&ahead->lock);
	pthread_join(ahead->thread, NULL);
	pthread_mutex_destroy(&ahead->lock);
	pthread_cond_destroy(&ahead->work);
	pthread_cond_destroy(&ahead->ready);
}

static void release_cpu(struct wire_ahead_cpu *cpu)
{
	if (!cpu)
		return;
	for (size_t i = cpu->next; i < cpu->nr; i++)
		free(cpu->pieces[i].data);
	for (size_t i = 0; i < WIRE_BATCHES; i++)
		free(cpu->batches[i]);
	free(cpu->piece.data);
	free(cpu->pieces);
	wire_trace_release(&cpu->trace);
	free(cpu);
}

void wire_ahead_release(struct wire_ahead *ahead)
{
	stop_thread(ahead);
	for (size_t i = 0; i < ahead->nr; i++)
		release_cpu(ahead->cpus[i]);
	free(ahead->cpus);
	memset(ahead, 0, sizeof(*ahead));
}

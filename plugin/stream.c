// SPDX-License-Identifier: GPL-2.0-or-later
/* See stream.h. */
#include "stream.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <poll.h>
#include <time.h>
#include <unistd.h>

#include "api.h"

#define RECORDS_SIZE (8u << 20) /* one second of samples with stacks, at one per ms */
#define TRACE_SIZE (8u << 20)
#define CHUNK (1u << 20) /* wakes the writer: if QEMU is killed, what is not written is lost */
#define FLUSH_MS 50
#define PATIENCE_NS 2000000000ull /* a vCPU waits at most so long for the disk */
#define HEAD_SIZE 128		  /* more than a chunk needs without its records */

_Static_assert(RECORDS_SIZE + HEAD_SIZE <= WIRE_CHUNK_MAX, "a full ring is one chunk");

static struct {
	int fd, wake;
	bool raw, trace;
	_Atomic bool closed; /* takes no more records */
	_Atomic bool failed; /* writes no more */
	_Atomic bool stopping;
	struct stream_clock clock;
	pthread_t writer;
	bool has_writer;
	pthread_mutex_t lock; /* of the list of tracks and the file */
	_Atomic(struct track *) tracks[WIRE_CPUS_MAX];
	_Atomic unsigned n_tracks; /* the highest one plus 1 */
	uint32_t sequence;	   /* of chunks without a cpu */
	_Atomic uint64_t bytes;
	_Atomic uint64_t homeless; /* lost records of vCPUs without a track */
} stream = { .fd = -1, .wake = -1, .lock = PTHREAD_MUTEX_INITIALIZER };

/* Rings */

static int ring_open(struct ring *ring, size_t size)
{
	int fd = memfd_create("kscope", MFD_CLOEXEC);
	uint8_t *memory = MAP_FAILED;

	if (fd >= 0 && !ftruncate(fd, (off_t)size))
		memory = mmap(NULL, 2 * size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		goto fail;
	for (size_t i = 0; i < 2; i++)
		if (mmap(memory + i * size, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
			 fd, 0) == MAP_FAILED)
			goto unmap;
	close(fd);
	ring->memory = memory;
	ring->size = size;
	return 0;
unmap:
	munmap(memory, 2 * size);
fail:
	if (fd >= 0)
		close(fd);
	return -1;
}

static uint8_t *ring_at(const struct ring *ring, uint64_t place)
{
	return ring->memory + (place & (ring->size - 1));
}

static size_t ring_used(struct ring *ring)
{
	return (size_t)(atomic_load_explicit(&ring->head, memory_order_relaxed) -
			atomic_load_explicit(&ring->tail, memory_order_acquire));
}

static size_t ring_free(struct ring *ring)
{
	return ring->size - ring_used(ring);
}

static void wake_writer(void)
{
	uint64_t one = 1;

	if (write(stream.wake, &one, sizeof(one)) < 0)
		return; /* the counter is full, so it is awake */
}

/* The file. All of this runs with stream.lock held. */

static void fail_writing(void)
{
	api_say("cannot write the recording, which ends here: %s", strerror(errno));
	atomic_store(&stream.failed, true);
}

static void write_all(struct iovec *part, int n)
{
	while (n && !atomic_load(&stream.failed)) {
		ssize_t done = writev(stream.fd, part, n);

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0) {
			fail_writing();
			return;
		}
		atomic_fetch_add(&stream.bytes, (uint64_t)done);
		for (; n && (size_t)done >= part->iov_len; part++, n--)
			done -= (ssize_t)part->iov_len;
		if (n) {
			part->iov_base = (uint8_t *)part->iov_base + done;
			part->iov_len -= (size_t)done;
		}
	}
}

/* Writes a chunk without a cpu and with one record. */
static void write_general(const uint8_t *record, size_t size)
{
	uint8_t head[HEAD_SIZE];
	struct wire w = wire_into(head, sizeof(head));
	uint8_t *opened = wire_chunk(&w, -1, stream.sequence++, 0);
	struct iovec parts[2] = { { head, (size_t)(w.at - head) }, { (void *)record, size } };

	wire_length4(opened - 4, (size_t)(w.at - opened) + size);
	write_all(parts, 2);
}

static void write_round(uint64_t time)
{
	uint8_t record[16];
	struct wire w = wire_into(record, sizeof(record));

	wire_uint(&w, WIRE_CHUNK_ROUND, time);
	write_general(record, (size_t)(w.at - record));
}

/* Writes a chunk of records, or of a trace that begins at `time`. UINT64_MAX: that continues. */
static void write_chunk(struct track *track, struct ring *ring, size_t size, uint64_t time)
{
	uint8_t head[HEAD_SIZE];
	struct wire w = wire_into(head, sizeof(head));
	uint64_t tail = atomic_load(&ring->tail), dropped = atomic_load(&track->dropped);
	uint8_t *opened;

	opened = wire_chunk(&w, track->cpu, track->sequence++, dropped - track->reported_dropped);
	track->reported_dropped = dropped;
	if (ring == &track->trace) {
		if (time != UINT64_MAX)
			wire_number(&w, WIRE_CHUNK_TRACE_TIME, time);
		wire_bytes_head(&w, WIRE_CHUNK_TRACE, size);
	}
	wire_length4(opened - 4, (size_t)(w.at - opened) + size);
	write_all((struct iovec[]){ { head, (size_t)(w.at - head) },
				    { ring_at(ring, tail), size } },
		  2);
	atomic_store_explicit(&ring->tail, tail + size, memory_order_release);
}

static void write_records(struct track *track)
{
	struct ring *ring = &track->records;
	uint64_t head, tail = atomic_load(&ring->tail);

	pthread_mutex_lock(&track->lock); /* all records before now are in the ring */
	head = atomic_load(&ring->head);
	pthread_mutex_unlock(&track->lock);
	if (head == tail)
		return;
	if (!stream.raw) {
		write_chunk(track, ring, (size_t)(head - tail), UINT64_MAX);
		return;
	}
	write_all(&(struct iovec){ ring_at(ring, tail), (size_t)(head - tail) }, 1);
	atomic_store_explicit(&ring->tail, head, memory_order_release);
}

/* Writes the trace in chunks, which start at the marks: at each sync, and every megabyte. */
static void write_trace(struct track *track, uint64_t end)
{
	uint64_t time = UINT64_MAX;

	for (;;) {
		uint32_t at = atomic_load_explicit(&track->marks_tail, memory_order_relaxed);
		uint64_t tail = atomic_load(&track->trace.tail), stop = end;
		bool marked = at != atomic_load_explicit(&track->marks_head, memory_order_acquire);

		if (marked && track->marks[at % TRACE_MARKS].at == tail) {
			if (tail == end)
				return; /* nothing follows the mark yet */
			if (track->marks[at % TRACE_MARKS].time != UINT64_MAX)
				time = track->marks[at % TRACE_MARKS].time;
			atomic_store_explicit(&track->marks_tail, at + 1, memory_order_release);
			continue;
		}
		if (marked && track->marks[at % TRACE_MARKS].at < end)
			stop = track->marks[at % TRACE_MARKS].at;
		if (stop == tail)
			return;
		write_chunk(track, &track->trace, (size_t)(stop - tail), time);
		time = UINT64_MAX;
	}
}

static void write_tracks(void)
{
	uint64_t round = stream.clock.round();
	uint64_t before = atomic_load(&stream.bytes);

	atomic_thread_fence(memory_order_seq_cst); /* the clock was read before what follows */
	for (unsigned cpu = 0; cpu < atomic_load(&stream.n_tracks); cpu++) {
		struct track *track = atomic_load(&stream.tracks[cpu]);
		uint64_t since, traced;

		if (!track)
			continue;
		since = atomic_load(&track->since); /* before its ring's head */
		if (since < round)
			round = since;
		/* The samples to which this part of the trace refers must come before it. */
		traced = atomic_load_explicit(&track->trace.head, memory_order_acquire);
		write_records(track);
		if (stream.trace)
			write_trace(track, traced);
	}
	if (!stream.raw && atomic_load(&stream.bytes) != before)
		write_round(round);
}

static void *writer_main(void *unused)
{
	struct pollfd wait = { .fd = stream.wake, .events = POLLIN };
	uint64_t count;

	(void)unused;
	while (!atomic_load(&stream.stopping)) {
		if (poll(&wait, 1, FLUSH_MS) > 0 && read(stream.wake, &count, sizeof(count)) < 0 &&
		    errno != EAGAIN)
			break;
		pthread_mutex_lock(&stream.lock);
		write_tracks();
		pthread_mutex_unlock(&stream.lock);
	}
	return NULL;
}

/* In a child, no thread that the child does not have may hold the lock. */
static void before_fork(void)
{
	pthread_mutex_lock(&stream.lock);
}

static void in_parent(void)
{
	pthread_mutex_unlock(&stream.lock);
}

static void ring_unshare(struct ring *ring)
{
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;

	if (!ring->memory)
		return;
	if (mmap(ring->memory, 2 * ring->size, PROT_READ | PROT_WRITE, flags, -1, 0) == MAP_FAILED)
		atomic_store(&ring->head, atomic_load(&ring->tail) + ring->size); /* full */
}

/*
 * A child of the emulated program has no writer thread. Its rings are shared memory, so without this
 * its records would appear in those of the parent.
 */
static void in_child(void)
{
	for (unsigned cpu = 0; cpu < atomic_load(&stream.n_tracks); cpu++) {
		struct track *track = atomic_load(&stream.tracks[cpu]);

		if (track) {
			ring_unshare(&track->records);
			ring_unshare(&track->trace);
		}
	}
	pthread_mutex_unlock(&stream.lock);
	atomic_store(&stream.closed, true);
	atomic_store(&stream.failed, true);
	stream.has_writer = false;
}

static int start_writer(void)
{
	stream.has_writer = !api_thread(&stream.writer, writer_main);
	return stream.has_writer ? 0 : -1;
}

static void write_info(const struct wire_info *info)
{
	size_t size = 1024;
	uint8_t *record;
	struct wire w;

	for (size_t i = 0; i < info->n_elf; i++)
		size += strlen(info->elf[i]) + 16;
	size += info->command ? strlen(info->command) : 0;
	size += info->kernel ? strlen(info->kernel) : 0;
	record = malloc(size);
	if (!record)
		return;
	w = wire_into(record, size);
	wire_info(&w, WIRE_CHUNK_INFO, info);
	if (!w.full)
		write_general(record, (size_t)(w.at - record));
	free(record);
}

int stream_open(const char *path, const struct wire_info *info, bool trace, bool raw,
		struct stream_clock clock)
{
	stream.clock = clock;
	stream.trace = trace;
	stream.raw = raw;
	/* For this user alone: the stream may contain the guest's memory. */
	stream.fd = api_above_standard(open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
	if (stream.fd < 0) {
		api_say("cannot write %s: %s", path, strerror(errno));
		return -1;
	}
	stream.wake = api_above_standard(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	if (!raw)
		write_info(info);
	pthread_atfork(before_fork, in_parent, in_child);
	if (stream.wake < 0 || start_writer()) {
		api_say("cannot start a thread to write %s: %s", path, strerror(errno));
		return -1;
	}
	return 0;
}

static void write_end(const char *reason)
{
	unsigned n = 0;
	struct wire_count *counts = calloc(atomic_load(&stream.n_tracks) + 1u, sizeof(*counts));
	size_t size = 256 + (atomic_load(&stream.n_tracks) + 1u) * 80;
	uint8_t *record = malloc(size);
	struct wire w = wire_into(record, record ? size : 0);

	for (unsigned cpu = 0; counts && cpu < atomic_load(&stream.n_tracks); cpu++) {
		const struct track *track = atomic_load(&stream.tracks[cpu]);

		if (track)
			counts[n++] = (struct wire_count){
				track->cpu,	     track->samples,  track->reported_dropped,
				track->instructions, track->sequence, track->allocs
			};
	}
	wire_end(&w, WIRE_CHUNK_END, reason, counts, n);
	if (!w.full)
		write_general(record, (size_t)(w.at - record));
	free(record);
	free(counts);
}

/* Reports the losses after the last chunk of each track. */
static void write_last_drops(void)
{
	for (unsigned cpu = 0; cpu < atomic_load(&stream.n_tracks); cpu++) {
		struct track *track = atomic_load(&stream.tracks[cpu]);

		if (track && atomic_load(&track->dropped) != track->reported_dropped)
			write_chunk(track, &track->records, 0, UINT64_MAX);
	}
}

void stream_close(const char *reason)
{
	if (stream.fd < 0 || atomic_exchange(&stream.closed, true))
		return;
	atomic_store(&stream.stopping, true);
	wake_writer();
	if (stream.has_writer)
		pthread_join(stream.writer, NULL);
	pthread_mutex_lock(&stream.lock);
	write_tracks();
	if (!stream.raw) {
		write_last_drops();
		write_end(reason);
	}
	close(stream.fd);
	stream.fd = -1;
	pthread_mutex_unlock(&stream.lock);
}

bool stream_flush(void)
{
	pthread_mutex_lock(&stream.lock);
	if (!atomic_load(&stream.closed))
		write_tracks();
	pthread_mutex_unlock(&stream.lock);
	return !atomic_load(&stream.failed);
}

/* Tracks */

static struct track *make_track(unsigned cpu)
{
	struct track *track = calloc(1, sizeof(*track));

	if (!track)
		return NULL;
	track->cpu = cpu;
	atomic_store(&track->since, UINT64_MAX);
	pthread_mutex_init(&track->lock, NULL);
	if (ring_open(&track->records, RECORDS_SIZE))
		goto fail;
	if (stream.trace && ring_open(&track->trace, TRACE_SIZE))
		goto fail;
	return track;
fail:
	if (track->records.memory)
		munmap(track->records.memory, 2 * track->records.size);
	free(track);
	return NULL;
}

struct track *stream_known_track(unsigned cpu)
{
	return cpu < WIRE_CPUS_MAX ? atomic_load_explicit(&stream.tracks[cpu], memory_order_acquire)
				   : NULL;
}

struct track *stream_track(unsigned cpu)
{
	struct track *track = stream_known_track(cpu);

	if (track || cpu >= WIRE_CPUS_MAX)
		return track;
	pthread_mutex_lock(&stream.lock);
	track = atomic_load(&stream.tracks[cpu]);
	if (!track) {
		track = make_track(cpu);
		atomic_store(&stream.tracks[cpu], track);
		if (track && cpu >= atomic_load(&stream.n_tracks))
			atomic_store(&stream.n_tracks, cpu + 1);
	}
	pthread_mutex_unlock(&stream.lock);
	return track;
}

static void count_drop(struct track *track)
{
	atomic_fetch_add(track ? &track->dropped : &stream.homeless, 1);
}

static uint64_t host_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* After a timeout, does not wait again until the disk has caught up. */
static bool wait_for_room(struct track *track, struct ring *ring, size_t size)
{
	uint64_t until = host_ns() + PATIENCE_NS;
	struct timespec nap = { .tv_nsec = 200000 };

	while (ring_free(ring) < size) {
		if (track->tired || atomic_load(&stream.closed) || atomic_load(&stream.failed))
			return false;
		track->tired = host_ns() > until;
		wake_writer();
		nanosleep(&nap, NULL);
	}
	track->tired = false;
	return true;
}

uint8_t *track_begin(struct track *track, size_t size)
{
	if (atomic_load(&stream.closed))
		return NULL;
	if (!track || atomic_load(&stream.failed)) {
		count_drop(track);
		return NULL;
	}
	if (stream.clock.patient && ring_free(&track->records) < size)
		wait_for_room(track, &track->records, size);
	pthread_mutex_lock(&track->lock);
	if (atomic_load(&stream.closed)) {
		pthread_mutex_unlock(&track->lock);
		return NULL;
	}
	if (ring_free(&track->records) < size) {
		pthread_mutex_unlock(&track->lock);
		count_drop(track);
		return NULL;
	}
	return ring_at(&track->records, atomic_load(&track->records.head));
}

void track_end(struct track *track, uint8_t *end)
{
	struct ring *ring = &track->records;
	uint64_t head = atomic_load(&ring->head);
	bool was_low = ring_used(ring) < CHUNK;

	atomic_store_explicit(&ring->head, head + (uint64_t)(end - ring_at(ring, head)),
			      memory_order_release);
	if (was_low && ring_used(ring) >= CHUNK)
		wake_writer();
	pthread_mutex_unlock(&track->lock);
}

static size_t sample_size(const struct wire_sample *sample)
{
	return WIRE_SAMPLE_HEAD + 8 * (sample->n_registers + sample->n_chain) + sample->stack_size +
	       sample->outer_size;
}

static void stamp(struct track *track, struct wire_sample *sample)
{
	if (!sample->time)
		sample->time = stream.clock.now();
	if (sample->time < track->last)
		sample->time = track->last;
	/* A weight in time is at most the time since the last sample, idle or skipped. */
	if (!sample->weight || (stream.clock.weighs && sample->weight > sample->time - track->last))
		sample->weight = sample->time - track->last;
	track->last = sample->time;
}

void track_skip(struct track *track)
{
	pthread_mutex_lock(&track->lock);
	track->last = stream.clock.now();
	pthread_mutex_unlock(&track->lock);
}

bool track_put_sample(struct track *track, struct wire_sample *sample)
{
	size_t size = sample_size(sample);
	uint8_t *at = track_begin(track, size);
	struct wire w = wire_into(at, size);

	if (!at) {
		track_skip(track); /* the next one must not include the time of this one */
		return false;
	}
	stamp(track, sample);
	wire_sample(&w, WIRE_CHUNK_SAMPLE, sample);
	track->samples += !w.full;
	track_end(track, w.full ? at : w.at);
	return !w.full;
}

void track_put_alloc(struct track *track, struct wire_alloc *alloc)
{
	size_t size = 64 + (alloc->allocator ? strlen(alloc->allocator) : 0) +
		      (alloc->at ? sample_size(alloc->at) : 0);
	uint8_t *at = track_begin(track, size);
	struct wire w = wire_into(at, size);

	if (!at)
		return;
	if (alloc->at && !alloc->at->time)
		alloc->at->time = stream.clock.now();
	wire_alloc(&w, WIRE_CHUNK_ALLOC, alloc);
	track->allocs += !w.full;
	track_end(track, w.full ? at : w.at);
}

/* Traces */

uint8_t *trace_room(struct track *track, size_t size)
{
	if (atomic_load_explicit(&stream.closed, memory_order_relaxed))
		return NULL;
	if (ring_free(&track->trace) < size && !wait_for_room(track, &track->trace, size)) {
		count_drop(track);
		return NULL;
	}
	return ring_at(&track->trace,
		       atomic_load_explicit(&track->trace.head, memory_order_relaxed));
}

static bool put_mark(struct track *track, uint64_t at, uint64_t time)
{
	uint32_t head = atomic_load_explicit(&track->marks_head, memory_order_relaxed);

	if (head - atomic_load_explicit(&track->marks_tail, memory_order_acquire) == TRACE_MARKS)
		return false;
	track->marks[head % TRACE_MARKS] = (struct trace_mark){ at, time };
	atomic_store_explicit(&track->marks_head, head + 1, memory_order_release);
	track->last_mark = at;
	return true;
}

void trace_commit(struct track *track, size_t size, uint64_t time)
{
	uint64_t head = atomic_load_explicit(&track->trace.head, memory_order_relaxed) + size;

	if (head - track->last_mark >= CHUNK) {
		put_mark(track, head, UINT64_MAX);
		wake_writer();
	}
	atomic_store_explicit(&track->trace.head, head, memory_order_release);
	atomic_store_explicit(&track->since, time, memory_order_release);
}

void trace_sleep(struct track *track)
{
	atomic_store_explicit(&track->since, UINT64_MAX, memory_order_release);
}

void trace_wake(struct track *track, uint64_t time)
{
	atomic_store(&track->since, time);
	atomic_thread_fence(memory_order_seq_cst); /* the clock is read after this */
}

bool trace_sync(struct track *track, uint64_t time)
{
	return put_mark(track, atomic_load_explicit(&track->trace.head, memory_order_relaxed),
			time);
}

void stream_count(struct stream_totals *totals)
{
	*totals = (struct stream_totals){ .bytes = atomic_load(&stream.bytes),
					  .dropped = atomic_load(&stream.homeless) };
	for (unsigned cpu = 0; cpu < atomic_load(&stream.n_tracks); cpu++) {
		struct track *track = atomic_load(&stream.tracks[cpu]);

		if (!track)
			continue;
		pthread_mutex_lock(&track->lock);
		totals->samples += track->samples;
		totals->allocs += track->allocs;
		pthread_mutex_unlock(&track->lock);
		totals->branches += atomic_load(&track->branches);
		totals->dropped += atomic_load(&track->dropped);
		totals->instructions += atomic_load(&track->instructions);
		totals->cpus++;
	}
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * stream: writes the recording. Each vCPU has a track: a ring of records (samples, allocations, code),
 * which several threads write under a lock, and in trace mode a ring of trace bytes, which only the
 * thread of the vCPU writes, without a lock. A writer thread empties the rings every 50 ms, or sooner. A
 * guest never waits long for the disk: records without room are dropped and counted.
 *
 * Tracks live until the process ends.
 */
#ifndef KSCOPE_PLUGIN_STREAM_H
#define KSCOPE_PLUGIN_STREAM_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/wire.h"

/*
 * A ring of bytes. Its memory is mapped twice, one copy after the other, so that every part of the ring
 * is contiguous. head and tail only grow.
 */
struct ring {
	uint8_t *memory;
	size_t size;	       /* a power of two */
	_Atomic uint64_t head; /* end of what the producer has written */
	_Atomic uint64_t tail; /* end of what is in the file */
};

/* A position in the trace where a chunk has to start. */
struct trace_mark {
	uint64_t at;
	uint64_t time; /* for trace_time; UINT64_MAX: none */
};

#define TRACE_MARKS 256

struct track {
	unsigned cpu;
	pthread_mutex_t lock; /* of `records`, `samples`, `allocs` and `last` */
	struct ring records;
	uint64_t samples, allocs;      /* in the file or in the ring */
	uint64_t last;		       /* time of the last sample, where the next weight begins */
	_Atomic uint64_t instructions; /* traced or counted */
	_Atomic uint64_t branches;     /* in the trace, for the status line */
	_Atomic uint64_t dropped;

	struct ring trace;
	struct trace_mark marks[TRACE_MARKS];
	_Atomic uint32_t marks_head, marks_tail;
	uint64_t last_mark;
	_Atomic uint64_t since; /* no trace beyond its ring's head is older; UINT64_MAX: asleep */
	bool tired;		/* the last wait for the disk timed out */

	/* Only for the writer thread. */
	uint32_t sequence;
	uint64_t reported_dropped;
};

struct stream_clock {
	uint64_t (*now)(void);	 /* the time of a record */
	uint64_t (*round)(void); /* no later record is older; for any thread */
	bool patient;		 /* the guest may wait for the disk */
	bool weighs;		 /* weights of samples are in this time */
};

/*
 * Opens the file and writes its first chunk. 0, or -1 after a message. raw: writes only the records,
 * without chunks (format=maestro).
 */
int stream_open(const char *path, const struct wire_info *info, bool trace, bool raw,
		struct stream_clock clock);
/* Writes all pending records and the end. Later records are ignored. */
void stream_close(const char *reason);
/* Writes all pending records. False: the file cannot be written. */
bool stream_flush(void);

/* The track of a vCPU, created by the first call. NULL without memory, or beyond WIRE_CPUS_MAX. */
struct track *stream_track(unsigned cpu);
/* The track, or NULL if there is none yet. */
struct track *stream_known_track(unsigned cpu);

/*
 * Locks the track and returns room for a record of at most `size` bytes. NULL: there is no room, the loss
 * is counted, and the track is not locked. Get the time of the record after this call, so that no
 * record is older than an earlier `round`. Write the record, a field of Chunk, with wire.h, and pass its
 * end to track_end(), or its start to discard it.
 */
uint8_t *track_begin(struct track *track, size_t size);
void track_end(struct track *track, uint8_t *end);
/*
 * Write a record and count it. A record without a time gets the current one; a sample without a weight
 * gets the time since the last sample of this track. False: there was no room.
 */
bool track_put_sample(struct track *track, struct wire_sample *sample);
void track_put_alloc(struct track *track, struct wire_alloc *alloc);
/* The next sample does not count the time up to now: the guest was stopped, or not recorded. */
void track_skip(struct track *track);

/*
 * Trace bytes, for the thread of the vCPU: trace_room() returns room for `size` bytes, trace_commit()
 * hands `size` bytes, the last of which has this time, to the writer. Chunks end only at a commit. NULL:
 * there is no room even after a short wait; the loss is counted, and the trace has to start afresh with
 * trace_sync().
 */
uint8_t *trace_room(struct track *track, size_t size);
void trace_commit(struct track *track, size_t size, uint64_t time);
/*
 * No `round` is later than uncommitted trace, however long the host delays the vCPU. A sleeping vCPU has
 * no such trace, and must wake before it reads the clock. vCPUs start asleep.
 */
void trace_sleep(struct track *track);
void trace_wake(struct track *track, uint64_t time);
/*
 * Starts a chunk with trace_time: the trace that follows begins at `time` and does not depend on
 * earlier chunks. False: there is no room.
 */
bool trace_sync(struct track *track, uint64_t time);

struct stream_totals {
	unsigned cpus;
	uint64_t samples, allocs, branches, dropped, bytes, instructions;
};
void stream_count(struct stream_totals *totals);

#endif

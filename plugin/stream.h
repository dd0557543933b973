/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * stream: what the plugin gathers, on its way into the file. Each vCPU has a track: a ring of records
 * (samples, allocations, code), which several threads may write under its lock, and in trace mode a
 * ring of trace bytes, which only the thread that runs the vCPU writes and that takes no lock. One
 * writer thread empties them every 50 ms, or sooner. A guest never waits long for a disk: what finds
 * no room is dropped and counted.
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
 * A ring of bytes. Its memory is mapped twice, one behind the other, so that every stretch of it is
 * contiguous. head and tail only grow.
 */
struct ring {
	uint8_t *memory;
	size_t size;	       /* a power of two */
	_Atomic uint64_t head; /* up to here the producer is done */
	_Atomic uint64_t tail; /* up to here it is in the file */
};

/* A place in the trace where a chunk has to begin. */
struct trace_mark {
	uint64_t at;
	uint64_t time; /* UINT64_MAX: the trace goes on here as if nothing was between */
};

#define TRACE_MARKS 256

struct track {
	unsigned cpu;
	pthread_mutex_t lock; /* for records and everything down to `marks` */
	struct ring records;
	uint64_t samples, allocs;      /* in the file or on the way */
	uint64_t last;		       /* when the last sample was: weights count from there */
	_Atomic uint64_t instructions; /* that were traced, or counted */
	_Atomic uint64_t branches;     /* events in the trace, for the status line */
	_Atomic uint64_t dropped;

	struct ring trace;
	struct trace_mark marks[TRACE_MARKS];
	_Atomic uint32_t marks_head, marks_tail;
	uint64_t last_mark;
	bool tired; /* of waiting for the disk */

	/* Of the writer thread. */
	uint32_t sequence;
	uint64_t told_dropped;
};

struct stream_clock {
	uint64_t (*now)(void);	 /* the time of a record */
	uint64_t (*round)(void); /* no record gets a time before this any more; any thread */
	bool patient;		 /* the guest may wait for the disk, a bit */
	bool weighs;		 /* weights of samples are of this time, too */
};

/*
 * Opens the file and writes its first chunk. 0, or -1 after a message on stderr. raw: no chunks, the
 * records go into the file as they are (format=maestro).
 */
int stream_open(const char *path, const struct wire_info *info, bool trace, bool raw,
		struct stream_clock clock);
/* Writes everything that is left, and the end. No record may be put any more. */
void stream_close(const char *reason);
/* Writes everything gathered so far and waits for it. False: the file cannot be written. */
bool stream_flush(void);

/* The track of a vCPU, made when it is first asked for; NULL without memory, or past the limit. */
struct track *stream_track(unsigned cpu);
/* The track if there is one; cheap. */
struct track *stream_known_track(unsigned cpu);

/*
 * Room for a record of at most `size` bytes, with the track locked. NULL: there is none, the loss is
 * counted, and the track is not locked. Take the time of the record after this, not before: then
 * no record is older than a `round` before it. Write the record with wire.h, a whole field of
 * Chunk, and give back where it ends; the same place as it began takes it back.
 */
uint8_t *track_begin(struct track *track, size_t size);
void track_end(struct track *track, uint8_t *end);
/*
 * The same for records that are counted. They get their time here, if they have none yet. A sample
 * without a weight gets the time since the last sample of this track.
 */
void track_put_sample(struct track *track, struct wire_sample *sample);
void track_put_alloc(struct track *track, struct wire_alloc *alloc);
/* The time since the last sample stands for nothing: the guest was stopped, or nobody wants it. */
void track_skip(struct track *track);

/*
 * Trace bytes, from the vCPU's own thread: ask for room, write there, say how much. False/NULL: no
 * room even after a short wait; what is lost was counted once, and the trace has to begin anew with
 * trace_sync() when there is room again. Chunks are cut only where trace_commit() was called.
 */
uint8_t *trace_room(struct track *track, size_t size);
void trace_commit(struct track *track, size_t size);
/*
 * What follows can be read without what was before, and begins at `time`: the next chunk begins here
 * and has trace_time. Every chunk of a track without trace_time goes on where the one before ended.
 */
bool trace_sync(struct track *track, uint64_t time);

struct stream_totals {
	unsigned cpus;
	uint64_t samples, allocs, branches, dropped, bytes, instructions;
};
void stream_count(struct stream_totals *totals);

#endif

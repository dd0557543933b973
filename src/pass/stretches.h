/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * stretches: makes slices of samples. A sample stands for the time before it: since the previous sample of its
 * thread, if that is not much longer than the distance of samples, else for as long as that distance. Functions
 * that consecutive samples have in common, from the root on, are one slice. A thread that has no sample for much
 * longer did not run, so its slices end.
 *
 * A sample tells about the past, but slices come in order of time. So stretches wait in a queue. Its length is
 * limited, and a thread whose last stretch has left the queue is forgotten: memory depends on the number of
 * threads that run, not on the length of the recording.
 */
#ifndef KSCOPE_PASS_STRETCHES_H
#define KSCOPE_PASS_STRETCHES_H

#include "base/hash.h"
#include "pass/slices.h"

#define STRETCH_DISTANCES 32

struct stretch_pace;

struct stretch_sample {
	uint64_t time;
	uint64_t width;		   /* the time that it stands for; 0: see pace */
	struct stretch_pace *pace; /* also learns from the sample; NULL: none */
	uint64_t count;		   /* samples, usually 1 */
	uint64_t instructions;	   /* since the last sample; 0 if unknown */
	uint32_t pid, tid, cpu;
	uint32_t stack;
	bool shared;   /* several threads have this tid, at most one on each cpu */
	bool here;     /* the cpu is selected */
	bool selected; /* and so is the task */
};

/*
 * The typical distance of samples, for those that do not tell what time they stand for. Zeroed: unknown. The first
 * samples wait until it is known. It must stay where it is until stretches_finish() or stretches_forget().
 */
struct stretch_pace {
	uint64_t distances[STRETCH_DISTANCES]; /* the last ones */
	size_t nr;			       /* in total */
	uint64_t typical;
	struct stretch_sample first[STRETCH_DISTANCES]; /* those that wait */
	size_t nr_first;
	bool known;
	struct stretch_pace *next; /* whose samples wait */
};

/* A thread that shares its tid with those on other cpus. Its slices have a tid of their own. */
struct stretch_shared {
	uint32_t pid, tid, cpu; /* of its samples */
};

struct stretches {
	struct slices *slices;
	/* Sets *frames to the functions of a stack, from the root on. Returns their number. */
	size_t (*functions)(void *data, uint32_t stack, const uint32_t **frames);
	void *data;
	size_t max_waiting; /* entries of the queue; 0: the usual limit */

	struct stretch_pace *unknown; /* those whose samples wait */
	struct stretch_entry *queue;  /* a heap: the first one is the earliest */
	size_t nr, cap;
	struct stretch_track **tracks;
	size_t nr_tracks, cap_tracks, nr_live;
	struct hash track_by_key; /* handles, + 1 */
	struct stretch_cpu *cpus;
	size_t nr_cpus, cap_cpus;
	struct hash cpu_by_number; /* likewise */
	struct stretch_shared *shared;
	size_t nr_shared, cap_shared;
	struct hash shared_by_key; /* likewise */
	uint64_t number;	   /* of the last sample */
	uint64_t last_track;	   /* its id */
	uint64_t done;		   /* slices up to this time are complete */
	bool started;		   /* there are some */
	uint64_t late; /* samples that are not later than the previous one of their thread */
};

void stretches_add(struct stretches *stretches, const struct stretch_sample *sample);
/* Samples of a cpu are missing before this time. NO_CPU: of any cpu; NO_TIME: before the next sample. */
void stretches_lost(struct stretches *stretches, uint32_t cpu, uint64_t time);
/* Forgets samples whose slices have not begun: those with this pace, which becomes unknown. */
void stretches_forget(struct stretches *stretches, struct stretch_pace *pace);
/* No sample follows. The caller then ends the slices. */
void stretches_finish(struct stretches *stretches);
/* The thread whose slices have this tid; NULL: it is that of its samples. */
const struct stretch_shared *stretches_shared(const struct stretches *stretches, uint32_t tid);
/* Does not release the slices. */
void stretches_release(struct stretches *stretches);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the files of the kpdata reader share.
 *
 *	kpdata		the reader: detection, version, scan for runs, and their merge
 *	kpdata_live	a pipe that somebody watches
 *	kpdata_event	events of records, and the preamble
 *	kpdata_record	one record of the file
 */
#ifndef KSCOPE_READ_KPDATA_PARTS_H
#define KSCOPE_READ_KPDATA_PARTS_H

#include "base/hash.h"
#include "format.h"
#include "read/kpdata_record.h"

#define FIRST_LOOK ((uint64_t)64 << 10) /* bytes at the start that decide the version */
#define PREAMBLE_DONE (UINT32_MAX / 2)
#define MAX_SOURCES 63 /* one more source stands for all others */

struct run {
	uint64_t offset;
	uint64_t end : 63, damaged : 1;
	uint64_t first, last; /* times; last is used only while scanning */
};

struct active {
	uint64_t end;
	bool damaged;
	struct kp_step step;
	struct kp_bytes bytes; /* the window is in `buffer` */
	struct reader *reader;
	uint8_t *buffer;
	size_t cap;

	/* Of a pipe that somebody watches: */
	bool scanned; /* its first bytes */
	bool parsed;  /* `step` is that at the current place */
	bool starved; /* peek() could not go on */
};

/* The position of an active run, ordered by time, then offset. */
struct place {
	uint64_t time, offset;
	struct active *run;
};

struct kp_source {
	uint64_t info;
	char name[40];
	struct event_source event;
	uint64_t weight;
};

struct process {
	uint32_t pid;
	uint32_t path;	    /* handle; 0: no process record yet */
	uint32_t main_path; /* handle of the path of the first map; 0: no maps */
	uint64_t main_addr, main_last;
	uint64_t bare; /* number of samples without maps */
};

struct kpdata {
	const char *event_name; /* --event-name; NULL: not given */
	enum kp_version version;
	bool leaf_twice, has_kernel, has_kernel_task;
	struct kp_source sources[MAX_SOURCES + 1];
	size_t nr_sources, last_source;
	uint32_t nr_opaque;

	struct run *runs; /* sorted by first time; those before next_run have been activated */
	size_t nr_runs, cap_runs, next_run;
	bool too_many;
	struct place *heap; /* active runs; [0] is the earliest */
	size_t nr_active, cap_active;

	struct process *processes; /* [0] is unused */
	size_t nr_processes, cap_processes;
	struct hash by_pid, by_path;
	uint64_t mapped_pid; /* the last pid that was found to have maps; UINT64_MAX: none */

	unsigned preamble;   /* number of preamble events emitted; PREAMBLE_DONE: all */
	bool second;	     /* the current record yields a second event */
	bool busy;	     /* the record at heap[0] has been emitted */
	struct active *live; /* instead of the heap; NULL: read the whole file first */
	uint64_t live_time;  /* of its last record */
	uint64_t *ips;
	size_t cap_ips;
};

/* The source of a trace; NULL: one of those beyond MAX_SOURCES. */
struct kp_source *kp_source_of(struct kpdata *p, uint64_t info);

/* Adds a source. False: it is known. */
bool kp_note_source(struct reader *r, uint64_t info);
/* Finds version, sources, leaf and runs. Returns the number of records. */
uint64_t kp_scan(struct reader *r);

/* kpdata_live.c */
void kp_live_open(struct reader *r);
int kp_live_next(struct reader *r, struct event *ev);

/* kpdata_event.c: the event of the record at `place`; sets p->second and p->busy. */
void kp_record_event(struct reader *r, struct place *place, struct event *ev);
/* Emits facts that the file does not contain. Returns false after the last one. */
bool kp_preamble_event(struct reader *r, struct event *ev);
/* Warns of processes whose samples have no maps. */
void kp_warn_of_bare(struct reader *r);

#endif

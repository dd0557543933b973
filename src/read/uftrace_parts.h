/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Interfaces between the files of the uftrace reader.
 *
 *	uftrace_tasks	task.txt and the maps: what begins when
 *	uftrace_records	the records of one thread, with the calls that are open
 */
#ifndef KSCOPE_READ_UFTRACE_PARTS_H
#define KSCOPE_READ_UFTRACE_PARTS_H

#include "base/hash.h"
#include "base/mem.h"
#include "format.h"

/* Reports damage to a file, and counts it. */
void uftrace_damage(struct reader *r, const char *path, uint64_t offset, uint64_t bytes,
		    const char *why);

/* ---- tasks ---- */

struct uftrace_map {
	uint64_t start, end, offset;
	const char *path;
	const char *names; /* its .sym file; NULL: none */
	bool foreign;	   /* the path is not one of this machine */
};

struct uftrace_session { /* a file sid-ID.map */
	const char *id;
	struct uftrace_map *maps;
	size_t nr, cap;
};

enum uftrace_begin { BEGIN_PROGRAM, BEGIN_THREAD, BEGIN_PROCESS, BEGIN_LIBRARY, BEGIN_NAME };

struct uftrace_entry { /* a line of task.txt, or the name of a thread */
	enum uftrace_begin kind;
	uint64_t time;
	size_t order;	   /* in the file */
	uint32_t pid, tid; /* of a process that is forked, pid is its parent's */
	uint32_t session;  /* index, + 1 */
	const char *name;  /* of the program, the library or the thread */
	uint64_t base;	   /* of a library */
};

struct uftrace_tasks {
	const char *folder; /* with a slash at its end; borrowed */
	struct store *store;
	struct arena arena;
	struct uftrace_entry *entries; /* by time */
	size_t nr, cap;
	struct uftrace_session *sessions;
	size_t nr_sessions, cap_sessions;
	struct hash session_by_id;
	struct uftrace_measured { /* a file of symbols */
		const char *names;
		uint64_t last; /* address in it */
	} * measured;
	size_t nr_measured, cap_measured;
};

/* Reads task.txt, the maps and the names of threads. What is damaged or missing is reported, and left out. */
void uftrace_read_tasks(struct uftrace_tasks *tasks, struct reader *r);
void uftrace_release_tasks(struct uftrace_tasks *tasks);
/* A library that a program loads: where it ends, by its symbols. Its map has a name and a start. */
void uftrace_measure(struct uftrace_tasks *tasks, struct uftrace_map *map);

/* ---- records ---- */

struct uftrace_thread {
	uint32_t pid, tid;
	char *path; /* of its file */
	struct store *store;
	uint8_t *data; /* a part of the file, from `offset` on */
	uint64_t offset;
	size_t at, len, room;
	bool ended; /* the part reaches the end of the file */
	/* The next record, if `ready`. */
	bool ready;
	uint64_t time, word;
	/* Functions that were entered, by depth; 0: unknown. */
	uint64_t *open;
	size_t nr, cap;
};

/*
 * Makes the next record ready. Returns 1, 0 at the end of the file, or -1 after damage: *from is where, *bytes
 * how much is skipped, and *why the reason. Go on after that.
 */
int uftrace_ready(struct uftrace_thread *thread, uint64_t *from, uint64_t *bytes, const char **why);
/*
 * The call that the next record, an entry or an exit, stands for, or one that has to end before: see the depth.
 * The record is taken when it has none left. False: it stands for none.
 */
bool uftrace_take_call(struct uftrace_thread *thread, struct event_call *call);
/* Takes a record that is not a call. */
void uftrace_take(struct uftrace_thread *thread);
void uftrace_release_thread(struct uftrace_thread *thread);

#endif

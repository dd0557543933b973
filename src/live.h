/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * live: a recording while it is made. It reads a pipe that another process still writes to, never blocks, and
 * keeps sums: of all samples, and of those that came in the last seconds. Memory follows the code that ran.
 */
#ifndef KSCOPE_LIVE_H
#define KSCOPE_LIVE_H

#include "convert.h"
#include "pass/flat.h"

#define LIVE_SECONDS 5 /* what "now" is */

struct live;

enum live_state {
	LIVE_WAITS, /* too little has arrived to know the format */
	LIVE_READS,
	LIVE_BLIND, /* the format can only be read as a whole: only bytes are counted */
	LIVE_ENDED,
	LIVE_FAILED, /* see live_error() */
};

/* The sums, as a writer that takes samples. Its options are those that change what the sums mean. */
extern const struct writer_ops live_writer;

/*
 * like: options, selection and reader, without inputs; must stay. Takes over fd, the end of a pipe to read from.
 * name: of the stream, for messages; borrowed.
 */
struct live *live_open(const struct job *like, int fd, const char *name, struct err *err);
/*
 * Reads what has arrived, for a few milliseconds. 1: there is more, 0: nothing yet, -1: the stream has
 * ended or cannot be read.
 */
int live_step(struct live *live);
int live_fd(const struct live *live); /* to poll; -1: nothing more comes */
enum live_state live_state(const struct live *live);
const char *live_error(const struct live *live);  /* "" if it did not fail */
const char *live_format(const struct live *live); /* NULL: not known yet */
/* Forgets everything that was counted. */
void live_reset(struct live *live);
/* The next of several events, such as cycles and instructions, in turn. Views are of one of them. */
void live_next_source(struct live *live);
void live_close(struct live *live);

/* ---- what there is to see ---- */

struct live_counts {
	uint64_t bytes;		  /* that arrived */
	uint64_t samples, weight; /* of all events */
	uint64_t others;	  /* allocations, calls, branches; their sums come at the end */
	uint64_t lost, damaged;
	double rate;  /* samples per second, lately */
	size_t tasks; /* with samples */
	size_t sources;
};

struct live_cpu {
	uint64_t samples, lost;
	uint64_t busy, all; /* weight lately; busy: not in the idle task */
};

struct live_row {
	struct flat_row sum;
	uint64_t now; /* self, lately */
};

/* A copy, which stays as it is while the recording goes on. Names are handles of live_names(). */
struct live_view {
	uint64_t time; /* live_clock(); after the end, that of the end */
	struct live_counts counts;
	struct live_cpu *cpus; /* without samples whose cpu is unknown */
	size_t nr_cpus, cap_cpus;
	enum flat_by by;
	struct live_row *rows; /* unsorted */
	size_t nr_rows, cap_rows;
	uint64_t weight, now; /* of all rows */
	uint32_t source;      /* the name of the event; 0: no samples yet */
	const char *unit;     /* of the weights: "samples", "ns", ... */
	struct tree tree;     /* empty unless asked for */
};

/* Makes a view. columns: the width of the call tree, which omits what is narrower; 0: no tree. */
void live_look(struct live *live, struct live_view *view, enum flat_by by, unsigned columns);
void live_view_release(struct live_view *view);
const struct strtab *live_names(const struct live *live);
uint64_t live_clock(void); /* ns, monotonic */

#endif

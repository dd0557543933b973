/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * convert: the one loop. Every verb that reads data runs it with a sink of its own: a writer of
 * the format table, or the tally behind a report.
 */
#ifndef KSCOPE_CONVERT_H
#define KSCOPE_CONVERT_H

#include "format.h"
#include "model/world.h"
#include "pass/alloc.h"
#include "pass/calls.h"
#include "pass/calltime.h"
#include "pass/merge.h"
#include "pass/select.h"
#include "unwind/unwind.h"

#define JOB_CPUS 256

struct job {
	const char *const *inputs;
	size_t nr_inputs;
	const char *reader; /* NULL: guess */
	const struct options *options;
	const struct selection *selection;
	const char *buildid_cache; /* folder for the binaries used; "": perf's own; NULL: none */
	bool cache_unasked;	   /* nobody asked for that: no word if there is nothing to put */

	/* Results. */
	struct world world; /* valid from job_open() to job_release() */
	struct image_search where;
	struct merge merge;
	struct hash whole;	  /* by pid: the binary that an input says it is, and which input */
	struct alloc_pass allocs; /* unless the writer takes them raw */
	struct calltime calls;	  /* likewise */
	struct calls flow;	  /* likewise, of traced branches */
	struct unwind unwind;
	uint64_t samples, selected, lost, damaged_bytes;
	uint64_t weight;	   /* of the samples */
	bool overflowed;	   /* there would be more of them than 64 bits hold */
	uint64_t by_cpu[JOB_CPUS]; /* samples; those of higher numbers are not told apart */
	uint64_t others;	   /* allocations, calls and branches that were read */
	uint64_t damaged;	   /* places */
	bool kernel_cached;	   /* the kernel's symbols are in the build-id cache */
	bool partial;		   /* something was damaged or missing */
	struct err err;
};

/* strings is shared by the worlds of several jobs. */
int job_open(struct job *job, struct strtab *strings);
/* Hands every event that is selected to the writer, then finishes it; commits nothing. */
int job_run(struct job *job, struct writer *writer);
void job_release(struct job *job);
/* One input, one file: open, run, commit, say what happened. Returns the exit code. */
int convert_file(struct job *job, const struct writer_ops *ops, const char *path);
/* What was lost and damaged, on stderr; returns ERR_PARTIAL if the result is not whole. */
int job_summary(const struct job *job);
/* Of a job that came to this: the error if it is -1, else the summary. Returns the exit code. */
int job_result(const struct job *job, int ret);

#endif

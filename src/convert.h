/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * convert: a run, which passes inputs through the chain of stages to one or more writers. Every
 * verb that reads data does a run, with writers from the format table or with its own.
 */
#ifndef KSCOPE_CONVERT_H
#define KSCOPE_CONVERT_H

#include "archived.h"
#include "format.h"
#include "model/world.h"
#include "pass/count.h"
#include "pass/merge.h"
#include "pass/select.h"
#include "stage.h"

struct job_sink { /* the end of the chain */
	struct writer *const *writers;
	size_t nr;
	uint32_t splits; /* EVENT_BIT()s of what the parts of a timeline are made of */
};

/* What a run does so that perf finds the symbols of a perf.data in its cache, unless the user asked for a cache. */
enum cache_rule {
	CACHE_NOTHING,
	CACHE_HINT, /* say what to do if perf does not find the kernel's symbols */
	CACHE_KERNEL, /* add the binaries if perf does not find the kernel's symbols; if that fails, CACHE_HINT */
	CACHE_ALL, /* add the binaries */
};

struct job {
	const char *const *inputs;
	size_t nr_inputs;
	const char *name;	    /* of a single input in messages; NULL: its path */
	const char *reader;	    /* NULL: detect */
	const char *const *expects; /* formats that the inputs should have; NULL: any */
	const struct options *options;
	struct selection selection; /* its lists are borrowed */
	const char *buildid_cache;  /* add the binaries to this cache; "": ~/.debug; NULL: none */
	enum cache_rule cache_rule; /* if buildid_cache is NULL */
	struct store *list;	    /* gets the files that the run uses (base/store.h); or NULL */

	/* Valid from job_open() to job_release(). */
	struct world world;
	struct image_search where;
	struct merge merge;
	struct archived archived; /* if an input is an archive: `options` points into it */
	struct chain chain;
	struct job_sink sink;
	const struct writer_ops **to; /* the writers of the run */
	size_t nr_to;

	/* Results. */
	struct sample_count count;  /* of the samples that reached the writers */
	uint64_t read[EVENT_KINDS]; /* events */
	uint64_t masks;		    /* events that say whether a kernel's interrupts are on */
	uint64_t lost, damaged_bytes;
	uint64_t damaged;   /* places */
	bool kernel_cached; /* the kernel's symbols are in the build-id cache */
	bool partial;	    /* something was damaged or missing */
	struct err err;
};

/* Several jobs may share `strings`. */
int job_open(struct job *job, struct strtab *strings);
/* The same for one input that is already open, in place of job->inputs. Takes it over. */
int job_open_in(struct job *job, struct strtab *strings, struct in *in);
/* Passes every selected event to the writers, then finishes them. Does not commit the output. */
int job_run(struct job *job, struct writer *const *to, size_t nr);
/*
 * The same in steps, for events that do not come from an input: job_begin(), any number of job_push(), and
 * job_end() with the result so far. `to` must stay until then.
 */
void job_begin(struct job *job, struct writer *const *to, size_t nr);
int job_push(struct job *job, struct event *events, size_t nr);
int job_end(struct job *job, int ret);
void job_release(struct job *job);
/* The name of the first input, without folders, for titles; NULL: it has none. */
const char *job_name(const struct job *job);
/* Samples that were read or that stages made, selected or not. */
uint64_t job_samples(const struct job *job);
/* Allocations, calls, branches and notes that were read. */
uint64_t job_others(const struct job *job);
/*
 * Warns of lost and damaged data, of binaries that are not usable and of options without effect. Returns ERR_PARTIAL if the result
 * is not complete.
 */
int job_summary(struct job *job);
/* Prints the error if `ret` is negative, else the summary. Returns the exit code. */
int job_result(struct job *job, int ret);

#endif

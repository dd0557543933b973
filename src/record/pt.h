/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * pt: `kscope record pt`. Checks that this machine can record Intel PT and says what to do if not, and runs
 * `perf record` with the right options.
 */
#ifndef KSCOPE_RECORD_PT_H
#define KSCOPE_RECORD_PT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct pt_options {
	const char *pid;  /* processes to attach to, as perf expects them; NULL: run a program */
	const char *cpus; /* a list; NULL: not by cpu */
	bool all_cpus;
	bool snapshot;	     /* keep only the latest trace, until a signal or the end */
	const char *trigger; /* a function: each time it is reached, keep the trace before it */
	const char *filter;  /* for perf's --filter; NULL: none */
	uint64_t buffer;     /* bytes per cpu; 0: perf decides */
};

struct pt {
	const struct pt_options *asked;
	const char *level; /* "user", "kernel" or "all" */
	const char *out;
	uint64_t duration;	  /* ns; 0: until the program ends, or Ctrl-C */
	const char *const *words; /* the program and its arguments */
	size_t nr_words;
	const char *root; /* "", or for tests a folder that has /proc and /sys */
	bool privileged;  /* Linux's limits do not apply */
};

/* Options that do not work together. */
int pt_check_options(const struct pt *pt, struct err *err);
/* Whether this machine can do it; if not, the message says what to do. */
int pt_check_machine(const struct pt *pt, struct err *err);
/* The command line of perf, NULL at the end; NULL: see err. pt_free_line() frees it. */
char **pt_line(const struct pt *pt, struct err *err);
void pt_free_line(char **line);
/* Whether this process may do all that perf can do. */
bool pt_is_privileged(void);
/* Becomes perf. Returns only on errors: -1. */
int pt_run(const struct pt *pt, char **line, struct err *err);

#endif

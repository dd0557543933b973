/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * args: the command line. One table (args.c) holds every option, the verbs that take it and the
 * line that --help prints for it.
 */
#ifndef KSCOPE_ARGS_H
#define KSCOPE_ARGS_H

#include "format.h"
#include "output.h"
#include "pass/flat.h"
#include "pass/select.h"
#include "record/record.h"

enum verb {
	VERB_CONVERT = 1,
	VERB_REPORT = 2,
	VERB_FLAME = 4,
	VERB_INFO = 8,
	VERB_FORMATS = 16,
	VERB_RECORD = 32,
	VERB_ALLOC = 64,
};

struct args {
	const char **inputs;
	size_t nr_inputs, cap_inputs;
	const char *reader;
	struct output_option {
		const char *path, *writer; /* writer NULL: by the extension */
	} * outputs;
	size_t nr_outputs, cap_outputs;
	const char *writer; /* -t without an -o that it belongs to */
	struct options options;
	size_t cap_elfs;
	struct selection selection;
	const char *buildid_cache;
	bool no_buildid_cache;
	const char *before; /* flame --diff */
	bool negate;
	bool json;
	enum flat_by by;
	enum flat_sort sort;
	unsigned limit; /* rows of a table; 0: all */
	bool tree, no_tree;
	double min_percent; /* of the call tree */
	unsigned points;    /* alloc --live-over-time */
	struct record_options record;
};

struct command {
	const char *name;
	enum verb verb;
	const char *usage, *about;
	const char *examples; /* shown as they are */
	/*
	 * What the first word names, if the words after the options are a command line of its own,
	 * which begins at the first word that is no option.
	 */
	const char *first;
	int (*run)(struct args *args);
};

/*
 * 0: go on and run the verb. Otherwise the exit code is *code: help was shown, or the command line
 * is wrong and that was said.
 */
int args_parse(struct args *args, const struct command *command, int argc, char **argv, int *code);
/* Folders and files that options name have to be there. For drop-ins, which parse by themselves. */
int args_check(const struct options *options, struct err *err);
void args_release(struct args *args);
/* The writers of the -o options. The array is the caller's to free; NULL: err says why. */
struct output *args_outputs(const struct args *args, struct err *err);
/* Fills a job from the arguments. */
void args_job(const struct args *args, struct job *job);

#endif

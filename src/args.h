/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * args: the command line. The options of a verb are its own, those of all readers if it reads, and
 * those of the writers that it may use and of the stages in front of them: each has a table of them
 * (base/option.h). What --help prints and what a shell completes comes from the same tables.
 */
#ifndef KSCOPE_ARGS_H
#define KSCOPE_ARGS_H

#include "format.h"
#include "output.h"
#include "pass/select.h"

struct args {
	const char **inputs;
	size_t nr_inputs, cap_inputs;
	const char *first; /* word, of a verb that has one */
	struct option_line given;
	const struct command *command;
	void *state;	    /* the verb's own options */
	const char *reader; /* -f; NULL: detect */
	struct output_option {
		const char *path, *writer; /* writer NULL: by the extension */
	} * outputs;
	size_t nr_outputs, cap_outputs;
	const char *writer; /* -t without an -o that it belongs to */
	struct options options;
	struct selection selection;
};

struct command {
	const char *name;
	const char *usage, *about;
	const char *examples; /* shown as they are */
	/* Its own options, which go into args->state. That is a copy of defaults; NULL: zeroed. */
	const struct option_use *options;
	const void *defaults;
	size_t state_size;
	bool reads; /* the words are inputs, at least one */
	/* Those that it may use, ending with NULL; NULL: it has none whose options are its own. */
	const struct writer_ops *const *writers;
	/*
	 * What the first word names, if the words after the options are a command line of its own,
	 * which begins at the first word that is no option.
	 */
	const char *first;
	const char *const *words; /* that it takes in place of files, for completion; NULL: files */
	/* What else may be wrong with the options. May be NULL. */
	int (*check)(const struct args *args, struct err *err);
	int (*run)(struct args *args);
};

/* An option that a verb takes; its old spellings are rows of their own. */
struct offer {
	const char *heading;
	const struct option_row *row;
};

/* All of them, in the order of --help but for the headings. The array is the caller's to free. */
size_t args_offers(const struct command *command, struct offer **offers);

/* The rows of -o and -t, whose place on the command line matters: see args_parse(). */
#define OPTION_OUTPUT(about)                                              \
	{                                                                 \
		"output", 'o', "FILE", about, .completion = COMPLETE_FILE \
	}
#define OPTION_TYPE(...)                                                                  \
	{                                                                                 \
		"type", 't', "FORMAT", "write this format (default: from the extension)", \
			.completion = COMPLETE_OUTPUT_FORMAT, __VA_ARGS__                 \
	}
#define OPTION_JSON(owner)                                              \
	{                                                               \
		"json", 0, NULL, "print JSON", OPTION_FLAG(owner, json) \
	}

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

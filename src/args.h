/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * args: parses the command line. A verb accepts its own options, those of all readers if it reads
 * input, and those of the writers that it may use and of the stages before them. Each of these has
 * a table of its options (base/option.h); --help and shell completion use the same tables. The first
 * word of some verbs selects a command of its own: `kscope record tcp`.
 */
#ifndef KSCOPE_ARGS_H
#define KSCOPE_ARGS_H

#include "format.h"
#include "output.h"
#include "pass/select.h"

struct args {
	const char **inputs;
	size_t nr_inputs, cap_inputs;
	struct option_line given;
	const struct command *verb;    /* as in kscope VERB */
	const struct command *command; /* the same, or one of verb->subs */
	void *state;		       /* the verb's own options */
	const char *reader;	       /* -f; NULL: detect */
	struct output_option {
		const char *path, *writer; /* writer NULL: by the extension */
	} * outputs;
	size_t nr_outputs, cap_outputs;
	const char *writer; /* -t that belongs to no -o */
	struct options options;
	struct selection selection;
};

struct command {
	const char *name;
	const char *usage, *about;
	const char *examples; /* printed unchanged */
	/* Its own options, stored in args->state, which starts as a copy of defaults or zeroed. */
	const struct option_use *options;
	const void *defaults;
	size_t state_size;
	bool reads; /* the words are input files; at least one is required */
	/* The writers whose options the verb accepts, ending with NULL. NULL: none. */
	const struct writer_ops *const *writers;
	uint32_t takes;	    /* of them, only those that take no other events than these; 0: all */
	const char *output; /* written if neither -o nor -t is given; NULL: none */
	const char *
		missing; /* the message if there is no word, though one is required; NULL: about files */
	bool runs; /* the words are a command line of another program, which may have options */
	/* The first word is the name of one of these, with options of its own. Ends with NULL. NULL: none. */
	const struct command *const *subs;
	const char *heading;	  /* of their list */
	const char *const *words; /* completed instead of files; NULL: files */
	/* Further checks of the options. May be NULL. */
	int (*check)(const struct args *args, struct err *err);
	int (*run)(struct args *args);
};

/* An option that a verb accepts. Old spellings are separate rows. */
struct offer {
	const char *heading;
	const struct option_row *row;
};

/* All options of a verb, or of all its subs, not yet grouped by heading as in --help. The caller frees the array. */
size_t args_offers(const struct command *command, struct offer **offers);

/* Whether the verb can use the writer. */
bool args_has_writer(const struct command *command, const struct writer_ops *ops);

/* The rows of -o and -t. Their order matters: -t applies to the -o after it, or to the last -o. */
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
 * Returns 0 if the verb should run. Otherwise it has printed the help or an error message, and
 * *code is the exit code.
 */
int args_parse(struct args *args, const struct command *verb, int argc, char **argv, int *code);
/* Checks that given folders and files are readable. For drop-ins, which have their own parsers. */
int args_check(const struct options *options, struct err *err);
void args_release(struct args *args);
/* Initializes a job from the arguments. */
void args_job(const struct args *args, struct job *job);
/* Runs it with the outputs of the -o options. wrote: gets each file; may be NULL. Returns the exit code. */
int args_convert(const struct args *args, struct job *job, void (*wrote)(const struct output *));

#endif

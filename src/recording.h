/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * recording: what all sources of `kscope record` and `kscope top` share. The source's bytes go to the raw stream, a file
 * that is readable at any time. When the recording ends, it becomes the outputs, as with `kscope convert`.
 */
#ifndef KSCOPE_RECORDING_H
#define KSCOPE_RECORDING_H

#include "args.h"
#include "record/files.h"
#include "record/record.h"
#include "record/session.h"

#define RAW \
	"kscope" /* the format of kscope's own raw streams, and the extension of any raw stream */

struct recording {
	struct args *args;
	const struct record_options *asked; /* args->state */
	const char *what;		    /* for messages: "tcp board:1236" */
	const char *target; /* for messages about its data: "board:1236"; NULL: the file's name */
	const char *clock;  /* for messages: "every 1 ms of host time"; NULL: unknown */
	const char *format; /* of the raw stream; NULL: detect */
	bool top;	    /* `kscope top`: the outputs are optional */
	bool unseen;	    /* a status line would overwrite the guest's own output */
	struct output *outputs; /* to convert to; owned */
	size_t nr_outputs;
	const char *raw; /* keep the raw stream here, by -o or --keep; NULL: remove it */
	struct record_files files;
	struct raw stream; /* the raw stream, if kscope itself writes it */
	struct record_source source;
	struct session session;
	struct err err;
};

/* The tables of options; the values go to struct record_options. */
extern const struct option_table record_output_table;
extern const struct option_table record_duration_table, record_until_table;
/* Binaries and names, into struct options. */
#define RECORDING_NAMES                                                               \
	{ &build_dir_table, OPTION_ELSEWHERE }, { &names_table, OPTION_ELSEWHERE },   \
		{ &elf_table, OPTION_ELSEWHERE }, { &slide_table, OPTION_ELSEWHERE }, \
	{                                                                             \
		&unwind_table, OPTION_ELSEWHERE                                       \
	}

void recording_init(struct recording *r, struct args *args);
/* Prints the error, if code is negative. Returns the exit code. */
int recording_release(struct recording *r, int code);

/* These return 0, or -1 with r->err set. */

/* From -o, -t and --keep. to_stdout: stdout is free for an output. */
int recording_outputs(struct recording *r, bool to_stdout);
/* Fails now if a binary cannot be read, or an output cannot be written later. */
int recording_prepare(struct recording *r);
/* Runs r->source, which writes r->files.raw itself. */
int recording_run(struct recording *r);
/* Runs a source whose bytes kscope writes to the raw stream. Fails if there were none. */
int recording_receive(struct recording *r, const struct source_ops *ops, void *priv);
/* The only word of the command line; -1: there are more. */
int recording_address(struct recording *r, const char **address);

/* Whether a binary's symbols can be read. */
bool recording_can_read(const char *path, struct err *err);
/* A job that reads the raw stream; `input` is its path. */
void recording_job(const struct recording *r, struct job *job, const char *const *input);
/*
 * Counts the events of the raw stream; until_first: only up to the first sample, call, etc. Returns the exit
 * code.
 */
int recording_count(struct job *job, bool until_first);
/* Writes the outputs, and tells the user. Returns the exit code. */
int recording_finish(struct recording *r);

#endif

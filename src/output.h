/* SPDX-License-Identifier: GPL-2.0-or-later */
/* output: a job that reads its inputs once and writes any number of files, never partial ones. */
#ifndef KSCOPE_OUTPUT_H
#define KSCOPE_OUTPUT_H

#include "convert.h"

struct output { /* a file or a folder to write */
	const char *path;
	const struct writer_ops *ops;
	unsigned parts; /* result, with --split: how many files were written */
};

/* Fails if the output would take the place of an input, or of the folder that one is in. */
int output_check_inputs(const struct job *job, const char *path, bool is_folder, struct err *err);
/* Whether the output can be written: opens and discards it. */
int output_try(const struct output *output, struct err *err);
/* A whole run: open, run, commit all outputs, report. Returns the exit code. */
int convert_files(struct job *job, struct output *outputs, size_t nr);
int convert_file(struct job *job, const struct writer_ops *ops, const char *path);
/* The same into an open file, such as a temporary one, which is not committed. */
int convert_into(struct job *job, const struct writer_ops *ops, struct out *out);
/*
 * The same in steps, for events that do not come from an input: job_push() them between the two. Call the second
 * one in any case, with the result so far.
 */
struct conversion;
struct conversion *convert_begin(struct job *job, struct output *outputs, size_t nr, int *ret);
int convert_end(struct conversion *c, int ret);
/* The name of a part of an output that --split cuts, from 1 on. The caller frees it. */
char *output_part(const char *path, unsigned part);

#endif

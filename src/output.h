/* SPDX-License-Identifier: GPL-2.0-or-later */
/* output: a job whose writers write files: one reading, any number of them, all whole or absent. */
#ifndef KSCOPE_OUTPUT_H
#define KSCOPE_OUTPUT_H

#include "convert.h"

struct output { /* a file to write */
	const char *path;
	const struct writer_ops *ops;
};

/* A whole run: open, run, commit all outputs, report. Returns the exit code. */
int convert_files(struct job *job, const struct output *outputs, size_t nr);
int convert_file(struct job *job, const struct writer_ops *ops, const char *path);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * files: where the plugin is, where the raw stream and the control socket go while a guest runs,
 * and what of it is removed again.
 */
#ifndef KSCOPE_RECORD_FILES_H
#define KSCOPE_RECORD_FILES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct record_files {
	char *plugin;
	char *raw;	/* absolute */
	bool raw_stays; /* the user has named it */
	char *control;	/* absolute */
	char *folder;	/* a private one for the socket; NULL: the user has named one */
	char *old;	/* what was under the name of raw before; NULL: nothing */
};

/* $KSCOPE_PLUGIN, beside the program, or where make install puts it. Owned by the caller. */
char *files_plugin(struct err *err);
/* The path from the root on, whether the file is there or not. Owned by the caller. */
char *files_absolute(const char *path);

/*
 * The raw stream goes to `raw`, or beside `output` if that is NULL; the socket to `control`, or to
 * a folder of its own. Says now what could not be written later.
 */
int files_prepare(struct record_files *files, const char *raw, const char *output,
		  const char *control, struct err *err);
/* How much the plugin has written. */
uint64_t files_written(const struct record_files *files);
/* Nothing was recorded: what was under the name before comes back in files_release(). */
void files_restore(struct record_files *files);
/* Removes what the user has not named. */
void files_release(struct record_files *files);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * files: finds the plugin, decides where the raw stream and the control socket go during a recording,
 * and cleans up afterwards.
 */
#ifndef KSCOPE_RECORD_FILES_H
#define KSCOPE_RECORD_FILES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/out.h"

struct record_files {
	char *plugin;
	char *raw;	/* absolute */
	bool raw_stays; /* the user named it */
	char *control;	/* absolute */
	char *folder;	/* a private one for the socket; NULL: the user named the socket */
	char *old;	/* new name of a file that raw replaces; NULL: none */
	struct out_replaced replaced;
};

/* $KSCOPE_PLUGIN, next to the program, or where make install puts it. The caller frees it. */
char *files_plugin(struct err *err);
/* The absolute path, whether the file exists or not. The caller frees it. */
char *files_absolute(const char *path);

/* The raw stream goes to `raw`, or next to `output`, or if that is NULL, too, to $TMPDIR. Fails now if it cannot be written later. */
int files_prepare(struct record_files *files, const char *raw, const char *output, struct err *err);
/* The plugin's socket is `control`, or in a private folder if that is NULL. */
int files_prepare_socket(struct record_files *files, const char *control, struct err *err);
/* Creates the raw stream, for this user alone. Returns the descriptor, or -1 with err set. */
int files_create_raw(const struct record_files *files, struct err *err);
/* How much the plugin has written. */
uint64_t files_written(const struct record_files *files);
/* Nothing was recorded: files_release() brings back the file that raw replaced. */
void files_restore(struct record_files *files);
/* If anything was recorded, removes the file that raw replaces. */
void files_keep(struct record_files *files);
/* Removes the files that the user did not name, and a raw stream without a byte. */
void files_release(struct record_files *files);

#endif

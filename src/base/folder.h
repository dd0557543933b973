/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * folder: an output that is a folder of files, complete or absent. The files are written to a folder with a
 * temporary name, which gets its own name in folder_commit(). Errors stick: keep writing and check only the
 * result of folder_commit(). A killed program leaves the temporary folder behind.
 */
#ifndef KSCOPE_BASE_FOLDER_H
#define KSCOPE_BASE_FOLDER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/out.h"

/* How to recognize an older output, which may be replaced: a file in it begins with these bytes. */
struct folder_mark {
	const char *file, *magic;
};

struct folder {
	const char *path; /* borrowed: must outlive the folder */
	char *target;	  /* `path` with its symbolic links followed */
	char *temp;
	int fd;	    /* of the temporary folder; -1: not open */
	int failed; /* errno of the first failure */
	struct out_replaced replaced;
};

/* Refuses to replace anything but an empty folder or an older output. */
int folder_open(struct folder *folder, const char *path, const struct folder_mark *mark,
		struct err *err);
/* Appends to a file, which is created first. */
void folder_append(struct folder *folder, const char *name, const void *data, size_t len);
/* Opens a file for reading; -1 if that failed. */
int folder_read(struct folder *folder, const char *name);
/* Renames a file; it may take the place of another one. */
void folder_rename(struct folder *folder, const char *from, const char *to);
/* Makes the folder appear. On -1 nothing of it remains. Always releases the folder. */
int folder_commit(struct folder *folder, struct err *err);
/* Discards the output. Harmless after folder_commit() and on a zeroed folder. */
void folder_abandon(struct folder *folder);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * mapped: files in memory. If somebody makes such a file shorter, what was after its new end reads as zeros, instead
 * of ending the program with SIGBUS. All functions are for one thread; any thread may read the files.
 */
#ifndef KSCOPE_BASE_MAPPED_H
#define KSCOPE_BASE_MAPPED_H

#include <stdbool.h>
#include <stddef.h>

/* Maps a whole file, to read it. NULL with errno set; an empty file is EINVAL. */
void *mapped_file(int fd, const char *path, size_t *len);
void mapped_close(void *data, size_t len);
/* The same care for a mapping that a library made. mapped_forget() comes before the library unmaps it. */
void mapped_watch(const void *data, size_t len, const char *path);
void mapped_forget(const void *data);
/* Warns of each file that turned out to be shorter, once. Returns whether there was any. */
bool mapped_warn(void);

#endif

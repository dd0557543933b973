/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * leftover: temporary files and folders with a name, which must not outlive the program. They are removed if a signal
 * ends it, or if memory runs out.
 */
#ifndef KSCOPE_BASE_LEFTOVER_H
#define KSCOPE_BASE_LEFTOVER_H

/* From one thread only. */
void leftover_add(const char *path);
/* It has its final name, or is gone. */
void leftover_forget(const char *path);
/* Removes a folder that has only files. Safe in a signal handler. */
void leftover_remove_folder(const char *path);
/* Removes what this process has added. Safe in a signal handler. */
void leftover_remove_all(void);

#endif

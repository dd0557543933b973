/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * gdb_guard: a small process that lets the target go on if kscope ends without doing so itself, even by SIGKILL. It
 * has a copy of the connection, and the read end of a pipe that only kscope holds open. While kscope is connected, no
 * other child process may inherit the write end: it is closed on exec, and a process that is forked meanwhile has to
 * close it.
 */
#ifndef KSCOPE_RECORD_GDB_GUARD_H
#define KSCOPE_RECORD_GDB_GUARD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* What the target does, as far as kscope knows. Set before kscope sends something, and after the answer. */
enum gdb_moment {
	GDB_STOPPED,
	GDB_CHANGING, /* a request to stop or to go on may be under way */
	GDB_RUNNING,
};

struct gdb_shared;

struct gdb_guard {
	struct gdb_shared *shared; /* NULL: there is no guard */
	int pipe;
	pid_t pid;
};

/* Returns 0, or -1 with errno set. fd: the connection. */
int gdb_guard_start(struct gdb_guard *guard, int fd);
void gdb_guard_set(struct gdb_guard *guard, enum gdb_moment moment);
/* The packet that detaches; at first "D". */
void gdb_guard_set_detach(struct gdb_guard *guard, const char *text);
/* released: the target goes on already. Otherwise the guard does its work when this returns. */
void gdb_guard_end(struct gdb_guard *guard, bool released);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * gdb: `kscope record gdb`: samples anything that speaks gdb's remote protocol, without help from the target: a
 * machine in QEMU, a board behind OpenOCD, a program under gdbserver. It interrupts the target, reads the registers
 * and the stack of every thread (of a machine: every cpu), and lets the target go on. It writes kscope's own stream
 * (wire/README.md), as the plugin for QEMU does.
 *
 * The times of samples are ns of the host's monotonic clock, without the time for which the target was stopped: for
 * the target, time does not jump. The weight of a sample is the time that the target ran since the sample before.
 */
#ifndef KSCOPE_RECORD_GDB_H
#define KSCOPE_RECORD_GDB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "record/source.h"

#define GDB_FREQ 100
#define GDB_STACK 8192
#define GDB_STACK_MAX 65536
#define GDB_MAX_STOP 10

struct gdb;

/* source->priv points to this. */
struct gdb_options {
	const char *address; /* HOST:PORT, the path of a UNIX socket, or a serial device */
	uint64_t freq;	     /* samples of each thread, per second; 0: GDB_FREQ */
	uint64_t stack;	     /* bytes to copy, at most GDB_STACK_MAX; without stack_given: GDB_STACK */
	bool stack_given;
	uint64_t max_stop;  /* percent of the time that the target may be stopped; 0: GDB_MAX_STOP */
	const char *kernel; /* NULL: not given */
	const char *const *elfs;
	size_t nr_elfs;
	struct gdb *gdb; /* belongs to the source */
};

extern const struct source_ops source_gdb;

#endif

/* SPDX-License-Identifier: MIT */
/*
 * system.h: what the profiler's protection domains know about the system that they are part of. tables.py writes these
 * tables, from the system description.
 *
 * All of kscope's protection domains run the same program, and map the region `kscope` at the same address: struct
 * kscope has pointers to functions and names, which must mean the same in all of them.
 */
#ifndef KSCOPE_MICROKIT_SYSTEM_H
#define KSCOPE_MICROKIT_SYSTEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SYSTEM_NONE (-1)

/* A protection domain that is profiled. Its number as a task is its index + 1. */
struct system_child {
	const char *name, *elf;
	unsigned cpu;
	unsigned id; /* for its profiler */
	unsigned priority;
	int time; /* the slot of its scheduling context's capability, or SYSTEM_NONE */
	/* Addresses of the instructions that enter the kernel, ascending. NULL: it runs the profiler's program. */
	const uint64_t *waits;
	size_t n_waits;
};

/* Memory of a child that its profiler has, too. */
struct system_window {
	unsigned child; /* an index */
	uint64_t address, size, here;
};

/* The profiler of a cpu. Channels are its own, except `kick`. */
struct system_profiler {
	const char *name; /* NULL: this cpu has none */
	int timer;	  /* its interrupt, or its driver */
	int counters;	  /* the interrupt of the PMU */
	int tick;	  /* from the profiler that has the timer */
	int client;
	int kick;  /* the client's channel to this profiler */
	int drive; /* the channel to this profiler, of the one that has the timer */
};

extern const struct system_child system_children[];
extern const unsigned system_n_children;
extern const struct system_window system_windows[];
extern const unsigned system_n_windows;
extern const struct system_profiler system_profilers[]; /* by cpu */
extern const unsigned system_n_profilers;

#endif

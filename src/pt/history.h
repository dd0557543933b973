/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * history: which code was mapped where in each process, and which thread ran on each cpu, over the time of
 * a recording. It is complete before the first trace is decoded, and then only read, by several threads at
 * a time. Times are ticks of the TSC.
 */
#ifndef KSCOPE_PT_HISTORY_H
#define KSCOPE_PT_HISTORY_H

#include "base/hash.h"
#include "pt/flow.h"

#define IPT_KERNEL_PID UINT32_MAX

struct ipt_mapping {
	uint64_t start, last; /* both inclusive */
	uint64_t time;
	uint64_t reach; /* the highest `last` of this and the mappings before it */
	struct ipt_code *code;
	struct ipt_bridge *bridge; /* to the code right after it; NULL: there is none */
};

struct ipt_process {
	uint32_t pid, parent; /* parent: 0: none */
	uint64_t forked;
	struct ipt_mapping *maps; /* in order of their starts */
	size_t nr, cap;
	uint64_t *changes; /* their times, in order */
};

struct ipt_switch {
	uint64_t time;
	uint32_t pid, tid;
};

struct ipt_queue_history {
	uint32_t tid; /* NO_TASK: the trace of a cpu */
	struct ipt_switch *switches;
	size_t nr, cap;
};

struct ipt_history { /* zeroed: empty */
	struct ipt_process *processes;
	size_t nr_processes, cap_processes;
	struct hash by_pid, pid_of; /* index + 1; the pid of a tid */
	struct ipt_queue_history *queues;
	size_t nr_queues, cap_queues;
};

/* The code belongs to the caller. pid: IPT_KERNEL_PID for the kernel. */
void ipt_history_map(struct ipt_history *h, uint32_t pid, uint64_t time, uint64_t start,
		     uint64_t len, struct ipt_code *code);
void ipt_history_fork(struct ipt_history *h, uint32_t pid, uint32_t parent, uint64_t time);
void ipt_history_thread(struct ipt_history *h, uint32_t pid, uint32_t tid);
/* A new queue, of a thread or, with tid NO_TASK, of a cpu. Returns its number. */
uint32_t ipt_history_queue(struct ipt_history *h, uint32_t tid);
void ipt_history_switch(struct ipt_history *h, uint32_t queue, uint64_t time, uint32_t pid,
			uint32_t tid);
/* Nothing is added from now on. */
void ipt_history_complete(struct ipt_history *h);
void ipt_history_release(struct ipt_history *h);
/* The functions of struct ipt_world, with the history as data. */
struct ipt_world ipt_history_world(const struct ipt_history *h);

#endif

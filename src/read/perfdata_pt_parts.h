/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Shared by the files of perfdata_pt.
 *
 *	perfdata_pt		what the first reading finds; the traces, merged by time
 *	perfdata_pt_thread	the events of their threads
 */
#ifndef KSCOPE_READ_PERFDATA_PT_PARTS_H
#define KSCOPE_READ_PERFDATA_PT_PARTS_H

#include "pt/ahead.h"
#include "pt/dark.h"
#include "pt/history.h"
#include "read/perfdata_code.h"
#include "read/perfdata_pt.h"

#define PT_BATCH 64 /* events of one call */

/* A thread, over all cpus that it runs on. */
struct pt_thread {
	uint32_t pid, tid;
	uint64_t at;		/* where it went on after its last branch; 0: unknown */
	uint64_t insns, cycles; /* since its last branch */
	bool away;		/* it is in code that is not traced */
	bool entered;		/* its last branch led into the kernel */
	bool blind;		/* it is away in the kernel, whose code is not at hand */
	bool known;		/* its stack is: it has a BEGIN, and no gap since */
};

struct pt_queue {
	uint32_t tid, cpu;
	struct trace trace;
	struct ipt_piece *piece; /* NULL: none yet, or no more */
	size_t at;		 /* the next branch in it */
	uint64_t time;		 /* of that branch, or at most of the next piece */
	uint64_t tsc;		 /* of that branch */
	size_t thread;
	uint64_t
		at_end; /* the address at which the code was at the end of the piece before; 0: none */
	bool goes_on; /* the piece before led to the begin of this one */
	bool begun;
	uint8_t ratio; /* of the core's clock; 0: unknown */
	bool dark;     /* there is no trace between the branch before and the next one */
};

struct pt_gap {
	enum ipt_gap why;
	uint64_t address, position;
	size_t queue;
	bool waits;
};

struct perfdata_pt {
	struct perfdata_code code;
	struct ipt_history history;
	struct ipt_world world;
	struct ipt_clock_info clock;
	struct ipt_ahead ahead;
	struct ipt_dark dark;
	struct ipt_ns time;
	struct pt_queue *queues;
	size_t nr_queues, cap_queues;
	struct hash by_owner; /* of a queue: index + 1 */
	bool by_cpu;	      /* each cpu has a queue */
	bool apart;	      /* snapshots or samples: nothing is lost between parts of a trace */
	struct trace_spool spool; /* of samples in compressed records */
	uint64_t bytes;
	uint64_t lost_pokes;
	size_t *heap; /* queues with something to come, by time */
	size_t nr_heap;
	struct pt_thread *threads;
	size_t nr_threads, cap_threads;
	struct hash by_tid; /* index + 1 */
	struct event events[PT_BATCH];
	/* What all events of a thread on a queue have in common, which events[] need not get again. */
	struct event common;
	uint32_t version, versions[PT_BATCH];
	size_t nr_events, taken;
	struct pt_gap gap;
};

static inline void pt_add_counts(struct pt_thread *thread, uint64_t insns, uint64_t cycles)
{
	thread->insns += insns;
	thread->cycles += cycles;
}

/* Makes at most two events of a branch; usually takes many branches at once. */
void pt_take_branch(struct perfdata_pt *pt, struct pt_queue *q, const struct ipt_branch *b);
/* The trace ends at the address `at`, maybe only for now. */
void pt_put_rest(struct perfdata_pt *pt, struct pt_queue *q, struct pt_thread *thread, uint64_t at);
/*
 * Part of the trace is missing behind the address `at`. The stages after this one learn of it by the next BEGIN: an
 * END would say that the thread is in code that is not traced, and keeps its calls.
 */
void pt_lose_thread(struct perfdata_pt *pt, struct pt_queue *q, struct pt_thread *thread,
		    uint64_t at);
/* The thread of the event exits or calls execve(): ends all its calls. */
void pt_end_thread(struct perfdata_pt *pt, const struct event *ev);

#endif

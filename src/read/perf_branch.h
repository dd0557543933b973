/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * perf_branch: branches of a hardware trace, as perf decodes them. perf describes each by flags; its text, and what
 * it hands to a dlfilter, have the same ones.
 */
#ifndef KSCOPE_READ_PERF_BRANCH_H
#define KSCOPE_READ_PERF_BRANCH_H

#include "model/event.h"

/* Part of perf's interface for dlfilters. */
enum perf_branch_flags {
	PERF_IS_BRANCH = 1 << 0,
	PERF_IS_CALL = 1 << 1,
	PERF_IS_RETURN = 1 << 2,
	PERF_IS_CONDITIONAL = 1 << 3,
	PERF_IS_SYSCALL = 1 << 4, /* or the return from one */
	PERF_IS_ASYNC = 1 << 5,
	PERF_IS_INTERRUPT = 1 << 6, /* or the return from one */
	PERF_IS_ABORT = 1 << 7,
	PERF_IS_BEGIN = 1 << 8,
	PERF_IS_END = 1 << 9,
	PERF_IS_IN_TX = 1 << 10,
	PERF_IS_VMENTRY = 1 << 11,
	PERF_IS_VMEXIT = 1 << 12,
};

struct perf_branch {
	uint32_t flags;	   /* enum perf_branch_flags */
	uint64_t from, to; /* 0 unknown */
	uint64_t size;	   /* of the instruction; 0 unknown */
	bool from_kernel, to_kernel;
	uint64_t instructions, cycles;
};

struct event_branch perf_branch(const struct perf_branch *branch);

/* A thread that entered the kernel, if perf has not decoded anything since; zeroed: it did not. */
struct perf_away {
	uint64_t at;   /* in the kernel */
	uint64_t back; /* where the kernel returns to; 0: the thread is not away */
};

/*
 * Without the kernel's code, perf decodes only where a thread enters the kernel, and begins anew where it finds the next
 * address: in the kernel, or in the program, at the instruction to which the kernel returns. No call is lost then.
 */
void perf_branch_back(struct perf_away *away, struct event_branch *branch);

#endif

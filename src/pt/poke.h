/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * poke: the changes that a running kernel makes to its own code (static keys, ftrace, probes), as
 * PERF_RECORD_TEXT_POKE reports them. Code that is ever poked is a hole in its mapping: each interval between
 * changes has its own version, with its own blocks. Blocks of other code end at a hole and keep no links into it.
 *
 * A hole begins before the first byte that changes, so far that every instruction with a changed byte begins in
 * it: an instruction may be changed in the middle, and the last one of an old version may be longer than the new
 * ones. Where holes would overlap, they are one.
 */
#ifndef KSCOPE_PT_POKE_H
#define KSCOPE_PT_POKE_H

#include "pt/flow.h"

struct ipt_process;

struct ipt_poke {
	uint64_t address, time;
	uint32_t old_len, new_len;
	size_t bytes; /* where its old bytes are in ipt_pokes.bytes, and behind them the new ones */
};

struct ipt_pokes {	      /* zeroed: none */
	struct ipt_poke *all; /* by time, when it is complete */
	size_t nr, cap;
	uint8_t *bytes;
	size_t len, cap_bytes;
	/* When it is complete: */
	const struct ipt_process *kernel; /* what is mapped below; NULL: nothing */
	struct ipt_poked_byte *poked;	  /* by address, and then by time */
	size_t nr_poked;
	struct ipt_holes holes;
	struct ipt_version *versions;
	size_t *first; /* version of each hole, and at the end the number of versions */
};

/* Limits, for damaged files. */
#define IPT_MAX_POKES ((size_t)1 << 20)
#define IPT_MAX_POKED ((size_t)16 << 20) /* bytes */

/*
 * Adds a change. Without old bytes, the code is new; old bytes beyond the new ones stay. False: over the limits.
 */
bool ipt_pokes_add(struct ipt_pokes *pokes, const struct ipt_poke *poke, const uint8_t *bytes);
/* Nothing is added from now on, and all maps of the kernel are known. */
void ipt_pokes_complete(struct ipt_pokes *pokes, const struct ipt_process *kernel);
/* False: the code at this address never changes. */
bool ipt_pokes_find(const struct ipt_pokes *pokes, uint64_t time, uint64_t address,
		    struct ipt_place *place);
/* The time of the first change after a time. */
uint64_t ipt_pokes_next(const struct ipt_pokes *pokes, uint64_t time);
void ipt_pokes_release(struct ipt_pokes *pokes);

#endif

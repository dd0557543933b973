/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * straight: the straight runs of instructions between the branches of a trace, each instruction with its
 * address and its size, from the code in the binaries. A run that comes again costs one lookup.
 *
 * Memory is bounded: what does not fit is forgotten and looked up again.
 */
#ifndef KSCOPE_PASS_STRAIGHT_H
#define KSCOPE_PASS_STRAIGHT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"
#include "model/event.h"

struct world;

struct straight_insn {
	uint32_t note; /* the caller's; 0 at first, and again after `forgotten` has changed */
	uint8_t size;
};

enum straight_state {
	STRAIGHT_KNOWN,
	STRAIGHT_NO_CODE,    /* the binary was not found, or does not have it */
	STRAIGHT_NO_DECODER, /* kscope cannot tell its instructions apart */
	STRAIGHT_DIFFERENT,  /* the binary has code that does not lead to the branch */
	STRAIGHT_GAP,	     /* code may have run that was not traced */
};

/* What ran up to a branch or a note. Valid until the next call. */
struct straight {
	enum straight_state state;
	uint64_t address, nr;	     /* of the first instruction; how many */
	struct straight_insn *insns; /* of the code there; only if it is known */
	uint64_t context;	     /* IP_KERNEL or IP_USER */
	uint32_t pid, tid, cpu;
	bool by_thread; /* the trace tells the threads apart; else only the cpus, and processes */
	bool outside;	/* it is not selected */
	/*
	 * The jump that led to the code before the branch, and its target, even if an interrupt came before the
	 * target's first instruction. 0: there was no jump.
	 */
	uint64_t came_from, came_to;
	bool came_outside; /* that jump is not selected */
};

struct straights {
	struct world *world;
	struct strand *strands; /* code that runs in one sequence: of a thread, or of a cpu */
	size_t nr_strands, cap_strands;
	struct hash by_owner; /* index + 1 */
	struct straight_known *known;
	struct straight_insn *insns;
	size_t nr_insns;
	uint32_t forgotten; /* how often */
};

/* The end of a run whose code is known. */
uint64_t straight_end(const struct straight *run);
void straights_init(struct straights *all, struct world *world);
void straights_release(struct straights *all);
/* Takes a branch. False: nothing ran before it, and nothing is missing; *run only has the jump that led there. */
bool straights_take(struct straights *all, const struct event *ev, struct straight *run);
/*
 * Takes a note: what ran before it in its thread. False: nothing did, or its instructions are not known; then they come
 * with the next branch.
 */
bool straights_take_note(struct straights *all, const struct event *ev, struct straight *run);
/*
 * After the last event: a jump behind which no event came, where `run` only has that jump, its thread and its level.
 * `at` counts from 0. False: there are no more.
 */
bool straights_open(const struct straights *all, size_t *at, struct straight *run);
/* Forgets all code. */
void straights_forget(struct straights *all);

#endif

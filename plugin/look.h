/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * look: reads the few registers that the trace needs at the start of a block, as fast as possible, and
 * finds the return address of an exception. regs.h reads all registers.
 */
#ifndef KSCOPE_PLUGIN_LOOK_H
#define KSCOPE_PLUGIN_LOOK_H

#include <stdbool.h>
#include <stdint.h>

#include "insn.h"
#include "regs.h"

struct look {
	uint64_t sp, space;
	unsigned level;	    /* enum wire_level */
	unsigned exception; /* M-profile: the number of the current one; 0: none */
	unsigned guest;	    /* SVM: the number of the one that runs; 0: none */
	unsigned mask;	    /* enum wire_mask; SAME: QEMU does not show it */
};

struct look_trap {
	uint64_t resume; /* the return address */
	uint64_t left;	 /* the interrupted stack pointer; 0: unknown */
	unsigned level;	 /* the interrupted one */
	unsigned mask;	 /* enum wire_mask, likewise; SAME: unknown */
};

void look_open(void);
void look_cpu_init(void); /* after regs_cpu_init() */
/* Whether interrupts are on: enum wire_mask, or SAME if QEMU does not show it. */
unsigned look_mask(unsigned cpu, unsigned level);
/* Only in a callback of this vCPU at the start of a block. pc: the address of the block. */
void look_at(unsigned cpu, uint64_t pc, struct look *look);
/*
 * The address at which the current block runs; it was translated at `start`. Newer QEMUs run a
 * translation at every address that its page is mapped to, and their pc is valid here. In older ones
 * pc may be stale.
 */
uint64_t look_pc(unsigned cpu, uint64_t start);
bool look_moves(void); /* whether this QEMU does so */
/*
 * Whether an exception or interrupt seems to have led to `pc`. Finds its return address, and the
 * interrupted level if the stack or a register has it. Finds the interrupted stack pointer even if it
 * finds no trap, for a caller that knows of one. look: the current state. Not for M-profile.
 */
bool look_for_trap(unsigned cpu, uint64_t pc, const struct look *look, struct look_trap *trap);
/*
 * The size of a word on the stack for a block that starts at `start`; 0: unknown, and so is the effect
 * of its instructions. mode: as they reveal.
 */
unsigned look_word(unsigned cpu, uint64_t start, enum insn_mode mode);
/* Whether code has set the vectors so that a trap leads to this address; false if it is not known. */
bool look_is_vector(unsigned cpu, uint64_t pc, const struct look *look, unsigned level_before);
/* Whether look_for_trap() finds only vectors, to which no jump, call or return leads. */
bool look_knows_vectors(unsigned cpu);
/* Whether look_for_trap() reads the stack. If not, a register may be left from an earlier trap. */
bool look_is_sure(void);
/* Whether the stack shows that a return or an indirect call took place. */
bool look_returned(const struct regs_view *view, uint64_t sp, uint64_t pc);
bool look_called(const struct regs_view *view, uint64_t sp, uint64_t next);
/* The part of look_for_trap() that the stack shows of a guest, which left with this sp. */
bool look_for_guest_trap(const struct regs_view *view, uint64_t sp, struct look_trap *trap);

/* look_m.c, for M-profile, which always shows the number of the current exception. */
unsigned look_exception(unsigned cpu);
/*
 * At the first instruction of a handler: finds what it interrupted, and the exception that
 * was active there. before: the last state. False: this is not the start of a handler.
 */
bool look_frame(unsigned cpu, uint64_t sp, const struct look *before, struct look_trap *trap,
		unsigned *exception);
/* A handler returned to the thread with this stack pointer. */
void look_resumed(unsigned cpu, uint64_t sp);
/* After an instruction that copies register `source` to PSP. */
void look_note_thread_sp(unsigned cpu, unsigned source);

#endif

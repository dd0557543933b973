/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * trace_parts: what the files of the trace share. trace.c follows the blocks, begins and ends; for
 * a step that is not a bit, trace_explain.c, trace_exception.c and trace_guest.c find what
 * happened, and trace_put.c writes it. trace_check.c takes samples inside the trace.
 */
#ifndef KSCOPE_PLUGIN_TRACE_PARTS_H
#define KSCOPE_PLUGIN_TRACE_PARTS_H

#include <stdbool.h>
#include <stdint.h>

#include "block.h"
#include "emit.h"
#include "look.h"
#include "regs.h"

struct tracer {
	struct node *cur; /* the current block; see is_tracing() */
	uint8_t careful; /* enum way: steps from blocks with this one or a higher one need a check */
	struct emit_out out;
	struct wire_calls calls;
	bool wanted;	       /* trace this vCPU */
	unsigned retry;	       /* after a loss: blocks to skip until there may be room */
	struct node *unwanted; /* the current block, if its level is not traced */
	unsigned cpu;
	uint32_t dictionary, n_ids;
	uint64_t shift;	     /* distance of the current block from its definition */
	uint64_t defined;    /* end of the last definition */
	unsigned words;	     /* of steps since the last reading of the clock */
	uint64_t handed;     /* the time up to which it handed its trace over */
	uint64_t branches;   /* in full words */
	uint64_t total;	     /* instructions, including all of the current block */
	uint64_t resume;     /* return address of the last trap */
	struct look written; /* the last state */
	unsigned saved_mask; /* RISC-V: what code wrote to the bit that sret or mret restores */
	/* M-profile: a bit for each exception that was entered and not left, and its handler. */
	uint64_t active[REGS_EXCEPTIONS / 64];
	uint32_t handlers[REGS_EXCEPTIONS];
	uint64_t noted_page, noted_space; /* of the last call of code_note() */
	uint64_t check_at; /* when the next sample is due, by check_clock(); 0: not set */
	uint64_t place;	   /* of the last sample */
	bool in_word;	   /* take the next sample between steps that are bits */
};

/* How control went from one block to the next. */
struct step {
	struct node *to;
	uint64_t pc; /* at which `to` really runs */
	int ran;     /* instructions of the block before */
	bool trap;
	bool leave;		/* M-profile: an exception returned, whatever the flow */
	bool enters;		/* by a trap or a system call */
	struct look_trap about; /* the trap; resume 0: unknown */
	bool state;		/* write the registers in `look` */
	struct look look;
};

/* The address at which a block runs now; where QEMU does not tell, the one it was translated for. */
static inline uint64_t trace_real_pc(const struct tracer *t, const struct node *node)
{
	return look_pc(t->cpu, node->block->start);
}

/* An address that the current block knows, as it was when QEMU translated the block. */
static inline uint64_t trace_translated(const struct tracer *t, uint64_t address)
{
	return address - t->shift - t->cur->wire.start + t->cur->block->start;
}

/* trace_explain.c: fills in a step whose `to` and `ran` are set, the latter to the whole block. */
void trace_explain(const struct tracer *t, struct step *step);
/*
 * Sets how many instructions ran before an interruption that returns to about.resume. fault: an
 * instruction caused it; interrupts come after a block.
 */
void trace_count_ran(const struct tracer *t, struct step *step, bool fault);

/* trace_exception.c: M-profile. */
/* Marks an exception as active; 0: clears all. */
void trace_set_active(struct tracer *t, unsigned exception);
/* In a handler: whether the step to the next block returns from the exception. */
bool trace_leaves_exception(const struct tracer *t, const struct node *to);
/* Explains a step by the number of the exception. False: it is the same one. */
bool trace_explain_exception(const struct tracer *t, struct step *step);
void trace_follow_exception(struct tracer *t, const struct step *step);

/* trace_mask.c */
/*
 * After the current block, whose last instruction may have switched interrupts on or off. trap: and before
 * the trap that followed it.
 */
unsigned trace_mask_after(struct tracer *t, bool trap);
/* Fills in the mask of a step's state where QEMU does not show it, if it is certain. */
void trace_guess_mask(struct tracer *t, struct step *step);

/* trace_guest.c: SVM. Explains a step by the guest that runs. False: it is the same as before. */
bool trace_explain_guest(const struct tracer *t, struct step *step);

/* trace_put.c. All but trace_put_sync() need emit_room() before. */
void trace_put_exact_time(struct tracer *t);
/* Records the page of code at an address where a program resumes. */
void trace_note_code(struct tracer *t, uint64_t pc, const struct look *look);
void trace_put_begin(struct tracer *t, struct node *at, unsigned skip, unsigned flags);
/* Starts a new dictionary, which depends on nothing before it. False: there is no room. */
bool trace_put_sync(struct tracer *t, struct node *at, unsigned skip, unsigned flags);
/* Before the step from the current block, whose last instruction may switch interrupts on or off. */
void trace_put_mask(struct tracer *t, bool trap);
void trace_put_step(struct tracer *t, const struct step *step);

/*
 * trace_check.c: takes a sample before the current block runs, if one is due. in_word: between steps that
 * are bits. False: there is no room.
 */
bool trace_check(struct tracer *t, bool in_word);

#endif

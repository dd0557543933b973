// SPDX-License-Identifier: GPL-2.0-or-later
/* How control went from one block to the next, where the code alone does not say it. */
#include "api.h"
#include "args.h"
#include "trace_parts.h"

/* Notes that a trap led to the block. In a program it may be a signal handler, which code also calls. */
static void note_vector(const struct step *step, enum vector kind)
{
	if (!api.user_mode || kind != VECTOR_UNEXPLAINED)
		atomic_fetch_or(&step->to->block->vector, (uint8_t)kind);
}

/* Finds how many instructions of the block ran before the trap, which returns to `resume`. */
static void count_trap(const struct tracer *t, struct step *step)
{
	const struct block *block = t->cur->block;
	uint64_t resume = trace_translated(t, step->about.resume);
	int index = block_index(block, resume);
	bool next = block_is_direct(block) && block_leads_to(block, resume);
	uint8_t seen = atomic_load(&step->to->block->vector) & (VECTOR_FAULT | VECTOR_INTERRUPT);

	step->trap = true;
	if (index < 0) {
		if (next)
			note_vector(step, VECTOR_INTERRUPT);
		return;
	}
	/* A block that jumps to itself may be complete or not: an earlier trap to this vector tells. */
	if (next && seen != VECTOR_FAULT)
		return;
	if (!next)
		note_vector(step, VECTOR_FAULT);
	step->ran = index;
}

void trace_count_ran(const struct tracer *t, struct step *step, bool fault)
{
	const struct block *block = t->cur->block;
	uint64_t resume = trace_translated(t, step->about.resume);
	int index = block_index(block, resume);
	/* It may have led to its own start. */
	bool complete = block_is_direct(block) ? block_leads_to(block, resume) : index == 0;

	if (index >= 0 && (fault || !complete))
		step->ran = index;
}

static void explain_direct(const struct tracer *t, struct step *step)
{
	uint64_t address = trace_translated(t, step->pc);
	int index = block_index(t->cur->block, address);

	if (block_leads_to(t->cur->block, address))
		return;
	if (index > 0) { /* QEMU left the block to run the rest as another one */
		step->ran = index;
		return;
	}
	if (look_for_trap(t->cpu, step->pc, &step->look, &step->about)) {
		count_trap(t, step);
	} else if (index == 0) {
		step->ran = 0;
	} else {
		note_vector(step, VECTOR_UNEXPLAINED);
		step->trap = true;
		step->about.resume = 0;
	}
}

/* Whether a trap came instead of the jump, call or return. */
static bool is_trap(const struct tracer *t, const struct step *step)
{
	const struct block *block = t->cur->block;
	struct regs_view view = { .cpu = t->cpu };
	int index = block_index(block, trace_translated(t, step->about.resume));

	if (block->flow == WIRE_FLOW_ENTER)
		return index >= 0 && index < block->count - 1;
	if (atomic_load(&step->to->block->vector) || look_knows_vectors(t->cpu))
		return true;
	if (!look_is_sure())
		return false;
	switch (block->flow) {
	case WIRE_FLOW_RETURN: return !look_returned(&view, step->look.sp, step->pc);
	case WIRE_FLOW_CALL_ANY:
		return !look_called(&view, step->look.sp, t->cur->wire.end + t->shift);
	case WIRE_FLOW_JUMP_ANY: return step->about.resume != t->resume;
	default: return false;
	}
}

static void explain_any(const struct tracer *t, struct step *step)
{
	const struct block *block = t->cur->block;
	int index = block_index(block, trace_translated(t, step->pc));
	bool found;

	if (index > 0) {
		step->ran = index;
		return;
	}
	found = look_for_trap(t->cpu, step->pc, &step->look, &step->about);
	if (found && is_trap(t, step)) {
		count_trap(t, step);
		return;
	}
	step->about.resume = 0;
	step->about.mask = WIRE_MASK_SAME;
	if (block->flow == WIRE_FLOW_ENTER && step->pc != t->cur->wire.end + t->shift)
		note_vector(step, VECTOR_UNEXPLAINED); /* interrupts may lead there, too */
	if (found || block->flow == WIRE_FLOW_ENTER)
		return;
	/* If QEMU does not list a trap's registers, known vectors and the level must do. */
	step->trap = atomic_load(&step->to->block->vector) & VECTOR_UNEXPLAINED ||
		     look_is_vector(t->cpu, step->pc, &step->look, t->written.level) ||
		     (block->flow != WIRE_FLOW_LEAVE && t->written.level == WIRE_LEVEL_USER &&
		      step->look.level != WIRE_LEVEL_USER);
}

/* For an explained step: completes what look_for_trap() found about the interrupted code. */
static void explain_left(const struct tracer *t, struct step *step)
{
	const struct block *from = t->cur->block;
	bool call = from->flow == WIRE_FLOW_ENTER && !step->trap && step->ran == from->count;
	bool on = trace_translated(t, step->pc) == from->start + from->size;

	step->enters = step->trap || (call && !(on && from->flags & WIRE_BLOCK_MAYBE));
	if (call && (on || (from->keeps_sp && !api.user_mode)))
		step->about.left = step->look.sp; /* the instruction does not switch the stack */
	else if (api.user_mode)
		step->about.left = 0;
}

/* Whether both blocks belong to a program: no trap leads to one. Real mode has no levels. */
static bool stays_in_program(const struct tracer *t, const struct step *step)
{
	uint64_t mode;

	return t->written.level == WIRE_LEVEL_USER && !api.user_mode && !regs_is_m_profile() &&
	       step->pc >= BLOCK_REAL_MODE_END && regs_mode(t->cpu, &mode) &&
	       regs_level(t->cpu, mode) == WIRE_LEVEL_USER;
}

/* A step that changes neither the level nor the address space. */
static void explain_plain(const struct tracer *t, struct step *step)
{
	int index = block_index(t->cur->block, trace_translated(t, step->pc));

	if (index > 0 && !block_is_direct(t->cur->block))
		step->ran = index;
	step->look = t->written;
	step->look.mask = WIRE_MASK_SAME;
	/* If the block moved, a state follows, which has all registers. */
	if (step->pc - step->to->wire.start != t->shift)
		regs_sp(t->cpu, &step->look.sp);
}

void trace_explain(const struct tracer *t, struct step *step)
{
	const struct block *from = t->cur->block;
	bool direct = block_is_direct(from);

	/* After a return from an exception, the interrupted level is user unless the trap has another. */
	step->about.level = from->flow == WIRE_FLOW_LEAVE ? WIRE_LEVEL_USER : t->written.level;
	step->pc = trace_real_pc(t, step->to);
	step->state = from->flags & WIRE_BLOCK_STATE || step->to->block->flags & WIRE_BLOCK_STATE ||
		      from->flow == WIRE_FLOW_ENTER || from->flow == WIRE_FLOW_LEAVE ||
		      args.all_states;
	if (!step->state && (direct ? block_leads_to(from, trace_translated(t, step->pc))
				    : stays_in_program(t, step))) {
		explain_plain(t, step);
		return;
	}
	look_at(t->cpu, step->pc, &step->look);
	if (from->thread_sp)
		look_note_thread_sp(t->cpu, from->thread_sp - 1u);
	if ((regs_is_m_profile() && trace_explain_exception(t, step)) ||
	    trace_explain_guest(t, step))
		return;
	if (direct)
		explain_direct(t, step);
	else
		explain_any(t, step);
	step->state |= step->trap;
	explain_left(t, step);
}

// SPDX-License-Identifier: GPL-2.0-or-later
/* Steps into a guest of SVM, and back to its hypervisor. */
#include "trace_parts.h"

/* Why a guest left: not because of an instruction. */
#define EXIT_INTERRUPT 0x60
#define EXIT_VIRTUAL_INTERRUPT 0x64

#define FRAME_MAX 64 /* bytes that the cpu pushes for an exception, and to align the stack */

/* An interrupt that the hypervisor has sent comes before the guest's next instruction. */
static void enter_guest(const struct tracer *t, struct step *step)
{
	struct regs_saved saved;

	if (!regs_guest_interrupted(t->cpu, step->pc, &saved))
		return;
	step->trap = step->enters = true;
	step->about =
		(struct look_trap){ .resume = saved.pc, .left = saved.sp, .level = saved.level };
}

/* Whether the guest's last block led to where it left, not an exception whose handler is there. */
static bool led_there(const struct tracer *t, const struct regs_view *view,
		      const struct regs_saved *saved, const struct look_trap *trap)
{
	const struct block *block = t->cur->block;
	uint64_t pc = trace_translated(t, saved->pc), end = t->cur->wire.end + t->shift;

	if (block_index(block, pc) >= 0)
		return true;
	switch (block->flow) {
	case WIRE_FLOW_RETURN: return look_returned(view, saved->sp, saved->pc);
	case WIRE_FLOW_CALL_ANY: return look_called(view, saved->sp, end);
	case WIRE_FLOW_JUMP_ANY: return trap->resume == t->resume;
	case WIRE_FLOW_ENTER: return saved->pc == end;
	case WIRE_FLOW_LEAVE: return false;
	default: return block_leads_to(block, pc);
	}
}

/* Finds what an exception interrupted if the guest left before the handler ran. */
static bool was_in_trap(const struct tracer *t, struct regs_saved *saved)
{
	struct regs_view view = { .cpu = t->cpu, .left_guest = true };
	struct look_trap trap = { 0 };
	uint64_t handler = saved->pc;

	if (saved->level == WIRE_LEVEL_USER || !look_for_guest_trap(&view, saved->sp, &trap) ||
	    led_there(t, &view, saved, &trap))
		return false;
	if (trap.level == saved->level && trap.left - saved->sp > FRAME_MAX)
		return false; /* the cpu would not have changed the stack */
	saved->pc = trap.resume;
	saved->sp = trap.left;
	saved->level = trap.level;
	regs_guest_in_trap(t->cpu, handler, saved);
	return true;
}

static void leave_guest(const struct tracer *t, struct step *step)
{
	const struct block *block = t->cur->block;
	struct regs_saved saved;
	bool fault;

	step->enters = step->trap = true;
	if (!regs_guest_left(t->cpu, &saved)) {
		step->about = (struct look_trap){ .level = t->written.level };
		return;
	}
	fault = !was_in_trap(t, &saved) &&
		(saved.exit < EXIT_INTERRUPT || saved.exit > EXIT_VIRTUAL_INTERRUPT);
	step->about =
		(struct look_trap){ .resume = saved.pc, .left = saved.sp, .level = saved.level };
	if (fault && block->flow == WIRE_FLOW_ENTER &&
	    trace_translated(t, saved.pc) == block->start + block->size - block->last)
		step->trap = false; /* the guest calls its hypervisor */
	else
		trace_count_ran(t, step, fault);
}

bool trace_explain_guest(const struct tracer *t, struct step *step)
{
	const struct block *from = t->cur->block;

	if (from->flow == WIRE_FLOW_LEAVE && from->flags & WIRE_BLOCK_MAYBE && !step->look.guest)
		regs_guest_bounced(t->cpu);
	if (step->look.guest == t->written.guest)
		return false;
	step->state = true;
	if (step->look.guest)
		enter_guest(t, step);
	else
		leave_guest(t, step);
	return true;
}

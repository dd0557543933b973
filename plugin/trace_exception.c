// SPDX-License-Identifier: GPL-2.0-or-later
/* The exceptions of M-profile, which has no instruction that returns from one. */
#include <string.h>

#include "trace_parts.h"

void trace_set_active(struct tracer *t, unsigned exception)
{
	if (exception)
		t->active[exception / 64] |= 1ull << exception % 64;
	else
		memset(t->active, 0, sizeof(t->active));
}

static bool is_active(const struct tracer *t, unsigned exception)
{
	return t->active[exception / 64] >> exception % 64 & 1;
}

/* Whether the block may end with the return from an exception. */
static bool may_leave(const struct block *block)
{
	return block->flow == WIRE_FLOW_RETURN || block->flow == WIRE_FLOW_JUMP_ANY;
}

/*
 * Whether an exception may have returned to itself, because it was pending again. Only this
 * returns to the first instruction of a handler.
 */
static bool may_repeat(const struct tracer *t, const struct node *to)
{
	return t->cur->block->flow == WIRE_FLOW_RETURN &&
	       t->handlers[t->written.exception] == to->wire.start;
}

bool trace_leaves_exception(const struct tracer *t, const struct node *to)
{
	return may_leave(t->cur->block) &&
	       (look_exception(t->cpu) != t->written.exception || may_repeat(t, to));
}

/* Whether the exception is an instruction's fault, not an interrupt or a system call. */
static bool is_fault(unsigned exception)
{
	return (exception >= 3 && exception <= 7) || exception == 12;
}

static void enter_exception(const struct tracer *t, struct step *step)
{
	const struct block *from = t->cur->block;
	uint64_t *resume = &step->about.resume;
	unsigned interrupted;

	step->enters = true;
	if (!look_frame(t->cpu, step->look.sp, &t->written, &step->about, &interrupted)) {
		step->trap = true;
		return;
	}
	/*
	 * This exception did not interrupt the handler before it: that handler returned, and this
	 * exception came before an instruction of the interrupted code ran.
	 */
	step->leave = t->written.exception && interrupted != t->written.exception;
	step->trap = step->leave || from->flow != WIRE_FLOW_ENTER ||
		     (*resume && *resume != from->start + from->size);
	if (step->trap && !step->leave)
		trace_count_ran(t, step, is_fault(step->look.exception));
}

bool trace_explain_exception(const struct tracer *t, struct step *step)
{
	unsigned now = step->look.exception, before = t->written.exception, interrupted;
	struct look_trap trap;

	if (now == before && !(now && may_repeat(t, step->to) &&
			       look_frame(t->cpu, step->look.sp, &t->written, &trap, &interrupted)))
		return false;
	step->state = true;
	if (!now || (now != before && is_active(t, now)))
		step->leave = true;
	else
		enter_exception(t, step);
	return true;
}

void trace_follow_exception(struct tracer *t, const struct step *step)
{
	unsigned before = t->written.exception, now = step->look.exception;

	if (step->leave)
		t->active[before / 64] &= ~(1ull << before % 64);
	if (step->leave && !now)
		look_resumed(t->cpu, step->look.sp);
	if (now && !is_active(t, now))
		t->handlers[now] = (uint32_t)step->to->wire.start;
	trace_set_active(t, now);
}

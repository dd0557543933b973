// SPDX-License-Identifier: GPL-2.0-or-later
/* Whether interrupts are on, in a trace. */
#include <string.h>

#include "read/wire_trace_parts.h"

void wire_trace_forget_masks(struct wire_trace *trace)
{
	memset(trace->masks, WIRE_MASK_UNKNOWN, sizeof(trace->masks));
	trace->shown_mask = WIRE_MASK_UNKNOWN;
	trace->waits = false;
}

void wire_trace_show_mask(struct wire_trace *trace, unsigned level, uint64_t since)
{
	static const uint8_t interrupts[] = { [WIRE_MASK_UNKNOWN] = INTERRUPTS_UNKNOWN,
					      [WIRE_MASK_ON] = INTERRUPTS_ON,
					      [WIRE_MASK_OFF] = INTERRUPTS_OFF };
	uint8_t mask =
		level == WIRE_LEVEL_USER || trace->waits ? WIRE_MASK_ON : trace->masks[level];
	struct event *ev = wire_trace_place(trace);

	if (mask == trace->shown_mask)
		return;
	trace->shown_mask = mask;
	wire_trace_head(trace, ev, EVENT_MASK);
	ev->mask = (struct event_mask){ .interrupts = interrupts[mask],
					.instructions = since,
					.context = level == WIRE_LEVEL_USER ? IP_USER : IP_KERNEL };
	trace->nr_queued++;
}

void wire_trace_set_mask(struct wire_trace *trace, unsigned level, unsigned mask, uint64_t since)
{
	if (mask != WIRE_MASK_SAME)
		trace->masks[level] = (uint8_t)mask;
	wire_trace_show_mask(trace, level, since);
}

static bool trap_has_mask(const struct wire_trace *trace)
{
	return trace->trap &&
	       (trace->trap_mask != WIRE_MASK_SAME || trace->trap_level == WIRE_LEVEL_USER);
}

/* What the last instruction of the current block did. */
static unsigned last_mask(const struct wire_trace *trace)
{
	const struct wire_block *cur = &trace->cur->wire;
	unsigned mask = cur->mask >> WIRE_MASK_LAST_SHIFT & WIRE_MASK_BITS;

	if (trace->trap && cur->flow == WIRE_FLOW_LEAVE)
		mask = WIRE_MASK_UNKNOWN; /* it may have switched them on, even if they are off again */
	if (trace->has_step_mask)
		return trace->step_mask;
	if (trace->trap)
		return mask == WIRE_MASK_UNKNOWN && trap_has_mask(trace) ? WIRE_MASK_SAME : mask;
	return mask == WIRE_MASK_UNKNOWN ? WIRE_MASK_ON : mask;
}

/* A cpu that waits for an interrupt takes note of one, even if it does not handle it before it goes on. */
static void mask_in_wait(struct wire_trace *trace, unsigned level, uint64_t since)
{
	if (trace->shown_mask != WIRE_MASK_OFF)
		return;
	trace->waits = true;
	wire_trace_show_mask(trace, level, since);
}

void wire_trace_wait(struct wire_trace *trace)
{
	if (trace->cur && trace->cur->wire.flow == WIRE_FLOW_WAIT && !trace->begins)
		mask_in_wait(trace, trace->level,
			     trace->since.instructions + trace->cur->wire.count - 1);
}

void wire_trace_mask_in_block(struct wire_trace *trace, uint64_t ran)
{
	const struct wire_block *cur = &trace->cur->wire;
	unsigned level = trace->has_state ? trace->old_level : trace->level;
	uint64_t since = trace->since.instructions;

	if (trace->ran < 0 && cur->flow == WIRE_FLOW_WAIT)
		mask_in_wait(trace, level, since + ran - 1);
	if (trace->waits) {
		trace->waits = false;
		wire_trace_show_mask(trace, level, since + ran);
	}
	if (cur->mask_at > trace->skip && cur->mask_at <= ran)
		wire_trace_set_mask(trace, level, cur->mask & WIRE_MASK_BITS, since + cur->mask_at);
	if (trace->ran < 0)
		wire_trace_set_mask(trace, level, last_mask(trace), since + ran);
	if (trap_has_mask(trace))
		wire_trace_set_mask(trace, trace->trap_level, trace->trap_mask, since + ran);
}

void wire_trace_mask_of_state(struct wire_trace *trace)
{
	if (trace->state_mask != WIRE_MASK_SAME)
		trace->masks[trace->level] = trace->state_mask;
	if (trace->masks[trace->level] != WIRE_MASK_OFF || trace->level == WIRE_LEVEL_USER)
		wire_trace_show_mask(trace, trace->level, trace->since.instructions);
}

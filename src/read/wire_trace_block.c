// SPDX-License-Identifier: GPL-2.0-or-later
/* The definitions of blocks in a trace. */
#include "read/wire_trace_parts.h"

#define BLOCKS_MADE 63 /* at a time */

bool wire_trace_number(struct wire_trace *trace, uint64_t *value)
{
	unsigned byte;

	*value = 0;
	for (unsigned shift = 0; shift < 64; shift += 7) {
		if (!wire_trace_byte(trace, &byte))
			return false;
		*value |= (uint64_t)(byte & 0x7f) << shift;
		if (byte < 0x80)
			return true;
	}
	return false;
}

bool wire_trace_signed(struct wire_trace *trace, uint64_t *value)
{
	uint64_t zigzag;

	if (!wire_trace_number(trace, &zigzag))
		return false;
	*value = wire_unzigzag(zigzag);
	return true;
}

static void make_blocks(struct wire_trace *trace)
{
	size_t size = sizeof(**trace->blocks);
	uintptr_t at = (uintptr_t)arena_alloc(&trace->arena, (BLOCKS_MADE + 1) * size);

	at += -at & (size - 1);
	GROW(trace->blocks, trace->nr_made + BLOCKS_MADE, trace->cap);
	for (size_t i = 0; i < BLOCKS_MADE; i++, at += size)
		trace->blocks[trace->nr_made++] = (struct wire_trace_block *)at;
}

static struct wire_trace_block *new_block(struct wire_trace *trace)
{
	if (trace->nr == trace->nr_made)
		make_blocks(trace);
	return trace->blocks[trace->nr++];
}

static bool get_move(struct wire_trace *trace, int32_t *move)
{
	uint64_t value;

	if (!wire_trace_signed(trace, &value))
		return false;
	*move = value + WIRE_STACK_MAX > 2 * (uint64_t)WIRE_STACK_MAX ? WIRE_STACK_UNKNOWN
								      : (int32_t)value;
	return true;
}

/* The end of a definition. */
static bool get_stack(struct wire_trace *trace, struct wire_trace_block *block)
{
	if (!trace->info.has_moves && block->wire.flags & WIRE_BLOCK_STATE) {
		block->replaces = true; /* perhaps */
		block->move = block->after = WIRE_STACK_UNKNOWN;
	}
	if (!(block->wire.flags & WIRE_BLOCK_STACK))
		return true;
	block->replaces = block->wire.flags & WIRE_BLOCK_STATE;
	return get_move(trace, &block->move) &&
	       (!block->replaces || get_move(trace, &block->after));
}

/* What follows that. */
static bool get_masks(struct wire_trace *trace, struct wire_block *block)
{
	unsigned byte;
	uint64_t at;

	if (!(block->flags & WIRE_BLOCK_MASK))
		return true;
	if (!wire_trace_byte(trace, &byte) || byte >> 2 * WIRE_MASK_LAST_SHIFT)
		return false;
	block->mask = (uint8_t)byte;
	if (!(byte & WIRE_MASK_BITS))
		return true;
	if (!wire_trace_number(trace, &at) || !at || at > block->count)
		return false;
	block->mask_at = (uint16_t)at;
	return true;
}

static enum branch_kind kind_of(unsigned flow)
{
	switch (flow) {
	case WIRE_FLOW_CALL:
	case WIRE_FLOW_CALL_ANY: return BRANCH_CALL;
	case WIRE_FLOW_RETURN: return BRANCH_RETURN;
	case WIRE_FLOW_ENTER: return BRANCH_ENTER;
	case WIRE_FLOW_LEAVE: return BRANCH_LEAVE;
	default: return BRANCH_JUMP;
	}
}

/*
 * Whether control may go on after the block. In Thumb code, the branch of a block that begins inside an
 * IT block is conditional, although its definition does not say so.
 */
static bool may_go_on(const struct wire_trace *trace, const struct wire_block *block)
{
	return block->flow == WIRE_FLOW_ON || block->flow == WIRE_FLOW_WAIT ||
	       block->flow == WIRE_FLOW_COND || block->flags & WIRE_BLOCK_MAYBE ||
	       (trace->info.thumb && block->flow != WIRE_FLOW_ENTER);
}

struct wire_trace_block *wire_trace_definition(struct wire_trace *trace)
{
	struct wire_trace_block block = { 0 }, *kept;
	uint64_t distance, count, size, last;
	unsigned kind;

	if (!wire_trace_signed(trace, &distance) || !wire_trace_byte(trace, &kind) ||
	    !wire_trace_number(trace, &count) || !wire_trace_number(trace, &size) ||
	    !wire_trace_number(trace, &last))
		return NULL;
	block.wire.flow = kind & WIRE_FLOW_MASK;
	block.wire.flags = (uint8_t)(kind >> WIRE_FLAGS_SHIFT);
	if (block.wire.flow >= WIRE_FLOW_KINDS || !count || count > WIRE_BLOCK_COUNT_MAX ||
	    size > WIRE_BLOCK_SIZE_MAX || last > size || trace->nr == WIRE_BLOCKS_MAX)
		return NULL;
	block.wire.start = trace->defined + distance;
	block.wire.end = block.wire.start + size;
	block.wire.count = (uint16_t)count;
	block.last = (uint32_t)last;
	if (wire_flow_has_target(block.wire.flow)) {
		if (!wire_trace_signed(trace, &distance))
			return NULL;
		block.target = block.wire.end + distance;
	}
	if (!get_stack(trace, &block) || !get_masks(trace, &block.wire))
		return NULL;
	block.loses_sp = block.wire.flags & WIRE_BLOCK_STATE || block.move == WIRE_STACK_UNKNOWN;
	block.kind = (uint8_t)kind_of(block.wire.flow);
	block.maybe = may_go_on(trace, &block.wire);
	if (block.wire.flow == WIRE_FLOW_WAIT)
		block.wire.mask |= WIRE_TRACE_WAITS;
	trace->defined = block.wire.end;
	kept = new_block(trace);
	*kept = block;
	return kept;
}

// SPDX-License-Identifier: GPL-2.0-or-later
#include "read/wire_trace.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define MAX_BLOCKS (4u << 20) /* in one dictionary */
#define MAX_COUNT 65535	      /* instructions of a block */
#define MAX_SIZE (1u << 20)   /* bytes of a block */

enum flow {
	FLOW_ON,
	FLOW_JUMP,
	FLOW_COND,
	FLOW_JUMP_ANY,
	FLOW_CALL,
	FLOW_CALL_ANY,
	FLOW_RETURN,
	FLOW_ENTER,
	FLOW_LEAVE,
	FLOW_WAIT,
	FLOW_KINDS
};

enum { BLOCK_MAYBE = 1, BLOCK_STATE = 2 };

enum code {
	CODE_FEW = 0x80,
	CODE_GO = 0xc0,
	CODE_NEW,
	CODE_SHORT,
	CODE_TRAP,
	CODE_TIME,
	CODE_STATE,
	CODE_BEGIN,
	CODE_END,
};

enum { BEGIN_GOES_ON = 1, BEGIN_EMPTY = 2 };
enum { STATE_SP = 1, STATE_SPACE = 2, STATE_LEVEL = 4, STATE_SHIFT = 8 };

void wire_trace_init(struct wire_trace *trace, uint32_t cpu)
{
	memset(trace, 0, sizeof(*trace));
	trace->cpu = cpu;
	trace->ran = -1;
}

void wire_trace_release(struct wire_trace *trace)
{
	free(trace->blocks);
	memset(trace, 0, sizeof(*trace));
}

/* Forgets what the dictionary was and what was said of the next step. */
static void forget(struct wire_trace *trace)
{
	trace->nr = 0;
	trace->cur = 0;
	trace->nr_steps = trace->nr_words = 0;
	trace->trap = trace->has_state = trace->begins = trace->moved = false;
	trace->ran = -1;
}

void wire_trace_hole(struct wire_trace *trace)
{
	forget(trace);
	trace->synced = false;
	trace->lost = true;
}

void wire_trace_feed(struct wire_trace *trace, const uint8_t *data, size_t len, uint64_t time)
{
	trace->data = trace->at = data;
	trace->end = data + len;
	if (time != NO_TIME) {
		trace->synced = true;
		trace->time = time;
	} else if (!trace->synced) {
		trace->at = trace->end;
	}
}

size_t wire_trace_left(const struct wire_trace *trace)
{
	return (size_t)(trace->end - trace->at);
}

static int damaged(struct wire_trace *trace, const char *why)
{
	wire_trace_hole(trace);
	trace->wrong = why;
	return -1;
}

static bool get_byte(struct wire_trace *trace, unsigned *value)
{
	if (trace->at == trace->end)
		return false;
	*value = *trace->at++;
	return true;
}

static bool get_number(struct wire_trace *trace, uint64_t *value)
{
	unsigned byte;

	*value = 0;
	for (unsigned shift = 0; shift < 64; shift += 7) {
		if (!get_byte(trace, &byte))
			return false;
		*value |= (uint64_t)(byte & 0x7f) << shift;
		if (byte < 0x80)
			return true;
	}
	return false;
}

static bool get_signed(struct wire_trace *trace, uint64_t *value)
{
	uint64_t zigzag;

	if (!get_number(trace, &zigzag))
		return false;
	*value = zigzag >> 1 ^ -(zigzag & 1);
	return true;
}

static bool get_definition(struct wire_trace *trace)
{
	struct wire_trace_block block = { 0 };
	uint64_t distance, count, size, last;
	unsigned kind;

	if (!get_signed(trace, &distance) || !get_byte(trace, &kind) ||
	    !get_number(trace, &count) || !get_number(trace, &size) || !get_number(trace, &last))
		return false;
	block.flow = kind & 15;
	block.flags = (uint8_t)(kind >> 4);
	if (block.flow >= FLOW_KINDS || !count || count > MAX_COUNT || size > MAX_SIZE ||
	    last > size || trace->nr == MAX_BLOCKS)
		return false;
	block.start = trace->defined + distance;
	block.end = block.start + size;
	block.last = block.end - last;
	block.count = (uint16_t)count;
	if (block.flow == FLOW_JUMP || block.flow == FLOW_COND || block.flow == FLOW_CALL) {
		if (!get_signed(trace, &distance))
			return false;
		block.target = block.end + distance;
	}
	trace->defined = block.end;
	GROW(trace->blocks, trace->nr + 1, trace->cap);
	trace->blocks[trace->nr++] = block;
	return true;
}

static void fill(struct wire_trace *trace, struct event *ev, enum branch_kind kind, uint64_t from,
		 uint64_t to)
{
	ev->kind = EVENT_BRANCH;
	ev->time = trace->time;
	ev->cpu = trace->cpu;
	ev->branch = (struct event_branch){
		.kind = kind,
		.from = from,
		.to = to,
		.instructions = trace->pending,
		.context = trace->level ? IP_KERNEL : IP_USER,
		.space = trace->space,
	};
	trace->pending = 0;
	trace->nr_events++;
}

/* The rules by which the plugin learns, too: wire/README.md. */
static void learn(struct wire_trace *trace, uint32_t from, uint32_t to)
{
	struct wire_trace_block *cur = &trace->blocks[from - 1], *next = &trace->blocks[to - 1];
	bool keep = !trace->moved && !(next->flags & BLOCK_STATE);
	uint32_t call;

	if (cur->flags & BLOCK_MAYBE && next->start == cur->end)
		return;
	switch (cur->flow) {
	case FLOW_CALL:
	case FLOW_CALL_ANY:
		trace->calls[trace->nr_calls++ % WIRE_TRACE_CALLS] = from;
		if (keep)
			cur->next[0] = to;
		return;
	case FLOW_RETURN:
		call = trace->calls[--trace->nr_calls % WIRE_TRACE_CALLS];
		trace->calls[trace->nr_calls % WIRE_TRACE_CALLS] = 0;
		if (!keep)
			return;
		if (call && trace->blocks[call - 1].end == next->start)
			trace->blocks[call - 1].next[1] = to;
		else
			cur->next[1] = to;
		return;
	default:
		if (!keep)
			return;
		cur->next[1] = cur->next[0];
		cur->next[0] = to;
	}
}

/* Where a step leads that is the usual one, or the other. 0: to nowhere. */
static uint32_t follow(struct wire_trace *trace, bool other)
{
	struct wire_trace_block *cur = &trace->blocks[trace->cur - 1];
	uint32_t *call;

	switch (cur->flow) {
	case FLOW_CALL:
	case FLOW_CALL_ANY:
		trace->calls[trace->nr_calls++ % WIRE_TRACE_CALLS] = trace->cur;
		return other ? 0 : cur->next[0];
	case FLOW_RETURN:
		call = &trace->calls[--trace->nr_calls % WIRE_TRACE_CALLS];
		if (!other) {
			uint32_t to = *call ? trace->blocks[*call - 1].next[1] : 0;

			*call = 0;
			return to;
		}
		*call = 0;
		return cur->next[1];
	default: return cur->next[other];
	}
}

static enum branch_kind kind_of(const struct wire_trace_block *block)
{
	switch (block->flow) {
	case FLOW_CALL:
	case FLOW_CALL_ANY: return BRANCH_CALL;
	case FLOW_RETURN: return BRANCH_RETURN;
	case FLOW_ENTER: return BRANCH_ENTER;
	case FLOW_LEAVE: return BRANCH_LEAVE;
	default: return BRANCH_JUMP;
	}
}

/* The branch at the end of a block was taken, and the trap came before what it led to. */
static bool branch_before_trap(struct wire_trace *trace, const struct wire_trace_block *cur,
			       uint64_t shift, struct event *ev)
{
	uint64_t to = trace->resume;

	if (!to && cur->flow == FLOW_CALL)
		to = cur->target + shift;
	if (!to || to == cur->end + shift || cur->flow == FLOW_ON || cur->flow == FLOW_WAIT ||
	    cur->flow == FLOW_ENTER)
		return false;
	fill(trace, ev, kind_of(cur), cur->last + shift, to);
	ev->branch.context = trace->trap_level ? IP_KERNEL : IP_USER;
	if (ev->branch.kind == BRANCH_CALL)
		ev->branch.next = cur->end + shift;
	return true;
}

/* A step with something special to it. */
static bool odd_step(struct wire_trace *trace, uint32_t to, uint64_t shift, struct event *ev)
{
	const struct wire_trace_block *cur = &trace->blocks[trace->cur - 1];
	const struct wire_trace_block *next = &trace->blocks[to - 1];
	uint64_t from = trace->resume ? trace->resume : cur->last + shift;
	struct event enter;
	bool before;

	if (!trace->trap) {
		fill(trace, ev, BRANCH_JUMP, cur->last + shift, next->start + trace->shift);
		return true;
	}
	before = trace->ran < 0 && branch_before_trap(trace, cur, shift, ev);
	enter = *ev;
	fill(trace, &enter, BRANCH_ENTER, from, next->start + trace->shift);
	enter.branch.next = trace->resume;
	enter.branch.sp = trace->sp;
	if (before) {
		trace->queued = enter;
		trace->has_queued = true;
	} else {
		*ev = enter;
	}
	return true;
}

static bool plain_step(struct wire_trace *trace, uint32_t to, uint64_t shift, struct event *ev)
{
	const struct wire_trace_block *cur = &trace->blocks[trace->cur - 1];
	const struct wire_trace_block *next = &trace->blocks[to - 1];
	bool on = next->start + trace->shift == cur->end + shift;
	bool maybe = cur->flow == FLOW_ON || cur->flow == FLOW_WAIT || cur->flow == FLOW_COND ||
		     cur->flags & BLOCK_MAYBE;
	enum branch_kind kind = kind_of(cur);

	if (on && maybe) {
		if (!trace->has_state)
			return false;
		kind = BRANCH_JUMP;
	}
	fill(trace, ev, kind, cur->last + shift, next->start + trace->shift);
	if (kind == BRANCH_CALL || kind == BRANCH_ENTER)
		ev->branch.next = cur->end + shift;
	if (trace->has_state)
		ev->branch.sp = trace->sp;
	return true;
}

/* Leaves the block at hand. True: *ev is filled. shift: of the block at hand. */
static bool take(struct wire_trace *trace, uint32_t to, uint64_t shift, struct event *ev)
{
	uint64_t ran = trace->ran < 0 ? trace->blocks[trace->cur - 1].count : (uint64_t)trace->ran;
	bool got;

	trace->pending += ran;
	trace->total += ran;
	trace->nr_steps_taken++;
	if (trace->trap || (trace->ran >= 0 && trace->has_state))
		got = odd_step(trace, to, shift, ev);
	else if (trace->ran >= 0)
		got = false;
	else
		got = plain_step(trace, to, shift, ev);
	trace->cur = to;
	trace->trap = trace->has_state = trace->moved = false;
	trace->ran = -1;
	trace->resume = 0;
	return got;
}

static bool begin(struct wire_trace *trace, uint32_t to, struct event *ev)
{
	const struct wire_trace_block *block = &trace->blocks[to - 1];
	bool goes_on = trace->begin_flags & BEGIN_GOES_ON && !trace->lost;

	trace->begins = trace->has_state = trace->trap = trace->moved = false;
	trace->cur = to;
	if (goes_on)
		return false;
	if (trace->begin_total > trace->total)
		trace->missing += trace->begin_total - trace->total;
	trace->total = trace->begin_total - trace->skip;
	trace->lost = false;
	trace->pending = 0;
	fill(trace, ev, BRANCH_BEGIN, 0, block->start + trace->shift);
	ev->branch.sp = trace->sp;
	/* The first instructions were not traced; they are counted with the block. */
	trace->pending = -(uint64_t)trace->skip;
	return true;
}

/* GO and NEW: 1: an event, 0: none, -1: damage. */
static int go(struct wire_trace *trace, uint32_t to, uint64_t shift, struct event *ev)
{
	uint32_t from = trace->cur;
	bool learns = !trace->trap && trace->ran < 0;

	if (trace->begins)
		return begin(trace, to, ev);
	if (!from)
		return -1;
	if (learns)
		learn(trace, from, to);
	return take(trace, to, shift, ev);
}

static bool get_state(struct wire_trace *trace)
{
	uint64_t value;
	unsigned mask;

	if (!get_byte(trace, &mask))
		return false;
	if (mask & STATE_SP) {
		if (!get_signed(trace, &value))
			return false;
		trace->sp += value;
	}
	if (mask & STATE_SPACE && !get_number(trace, &trace->space))
		return false;
	if (mask & STATE_LEVEL) {
		if (!get_number(trace, &value) || value > 3)
			return false;
		trace->level = (unsigned)value;
	}
	if (mask & STATE_SHIFT && !get_signed(trace, &trace->shift))
		return false;
	trace->moved = mask & STATE_SHIFT;
	trace->has_state = true;
	return true;
}

static bool get_begin(struct wire_trace *trace)
{
	uint64_t skip;

	if (!get_byte(trace, &trace->begin_flags) || !get_number(trace, &skip) ||
	    !get_number(trace, &trace->begin_total) || skip > MAX_COUNT)
		return false;
	trace->skip = (unsigned)skip;
	trace->begins = true;
	trace->sp = trace->space = trace->shift = 0;
	trace->level = 0;
	if (trace->begin_flags & BEGIN_EMPTY) {
		trace->nr = 0;
		trace->cur = 0;
		trace->nr_calls = 0;
		trace->defined = 0;
		memset(trace->calls, 0, sizeof(trace->calls));
	}
	return true;
}

static bool get_trap(struct wire_trace *trace)
{
	const struct wire_trace_block *cur;
	uint64_t distance;
	unsigned about;

	if (!trace->cur || !get_byte(trace, &about) || about > 7)
		return false;
	cur = &trace->blocks[trace->cur - 1];
	trace->trap = true;
	trace->trap_level = about >> 1;
	trace->resume = 0;
	if (!(about & 1))
		return true;
	if (!get_signed(trace, &distance))
		return false;
	trace->resume = cur->start + trace->shift + distance;
	return true;
}

static bool get_short(struct wire_trace *trace)
{
	uint64_t ran;

	if (!trace->cur || !get_number(trace, &ran) || ran > trace->blocks[trace->cur - 1].count)
		return false;
	trace->ran = (int64_t)ran;
	return true;
}

static int end(struct wire_trace *trace, struct event *ev)
{
	const struct wire_trace_block *cur;
	uint64_t ran;

	if (!trace->cur || !get_number(trace, &ran) || ran > trace->blocks[trace->cur - 1].count)
		return -1;
	cur = &trace->blocks[trace->cur - 1];
	trace->pending += ran;
	trace->total += ran;
	fill(trace, ev, BRANCH_END, cur->last + trace->shift, 0);
	trace->cur = 0;
	return 1;
}

/* A code that is no steps. 1: *ev is filled, 0: it is not, -1: damage. */
static int other_code(struct wire_trace *trace, unsigned code, uint64_t *shift, struct event *ev)
{
	uint64_t value;

	switch (code) {
	case CODE_GO:
		if (!get_number(trace, &value) || value >= trace->nr)
			return -1;
		return go(trace, (uint32_t)value + 1, *shift, ev);
	case CODE_NEW:
		if (!get_definition(trace))
			return -1;
		return go(trace, (uint32_t)trace->nr, *shift, ev);
	case CODE_SHORT: return get_short(trace) ? 0 : -1;
	case CODE_TRAP: return get_trap(trace) ? 0 : -1;
	case CODE_TIME:
		if (!get_number(trace, &value))
			return -1;
		trace->time += value;
		return 0;
	case CODE_STATE: return get_state(trace) ? 0 : -1;
	case CODE_BEGIN: return get_begin(trace) ? 0 : -1;
	case CODE_END: return end(trace, ev);
	default: return -1;
	}
}

/* The next steps from the bytes; false if there are none. */
static bool load_steps(struct wire_trace *trace, unsigned nr)
{
	size_t len = (nr + 7) / 8;

	if (wire_trace_left(trace) < len)
		return false;
	trace->steps = 0;
	memcpy(&trace->steps, trace->at, len);
	trace->at += len;
	trace->nr_steps = nr;
	return true;
}

static int take_steps(struct wire_trace *trace, struct event *ev)
{
	while (trace->nr_steps) {
		bool other = trace->steps & 1;
		uint32_t to;

		trace->steps >>= 1;
		trace->nr_steps--;
		to = trace->cur ? follow(trace, other) : 0;
		if (!to)
			return damaged(trace, "a step that leads nowhere");
		if (take(trace, to, trace->shift, ev))
			return 1;
	}
	return 0;
}

int wire_trace_next(struct wire_trace *trace, struct event *ev)
{
	uint64_t shift = trace->shift; /* of the block at hand, while the next one's is read */
	unsigned code;
	int ret;

	if (trace->has_queued) {
		trace->has_queued = false;
		*ev = trace->queued;
		return 1;
	}
	for (;;) {
		ret = take_steps(trace, ev);
		if (ret)
			return ret;
		if (trace->nr_words) {
			trace->nr_words--;
			if (!load_steps(trace, 64))
				return damaged(trace, "steps are cut off");
			continue;
		}
		if (!get_byte(trace, &code))
			return 0;
		if (code > CODE_FEW && code < CODE_GO) {
			if (!load_steps(trace, code & 63))
				return damaged(trace, "steps are cut off");
		} else if (code && code < CODE_FEW) {
			trace->nr_words = code;
		} else {
			ret = other_code(trace, code, &shift, ev);
			if (ret < 0)
				return damaged(trace, "not a trace");
			if (code == CODE_GO || code == CODE_NEW)
				shift = trace->shift;
			if (ret)
				return 1;
		}
	}
}

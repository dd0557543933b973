// SPDX-License-Identifier: GPL-2.0-or-later
#include "read/wire_trace.h"

#include <stdlib.h>
#include <string.h>

#include "base/le.h"
#include "read/wire_trace_parts.h"

#define REAL_MODE_END 0x110000

struct wire_trace_info wire_trace_info(uint64_t version, const char *arch)
{
	bool wide = arch && !strcmp(arch, "x86_64"), narrow = arch && !strcmp(arch, "i386");

	return (struct wire_trace_info){
		.has_moves = version >= 2,
		.has_waits = version >= 3,
		.thumb = arch && !strcmp(arch, "arm"),
		.guest_shift = wide || narrow ? WIRE_X86_GUEST_SHIFT : 0,
		.pushed = wide	   ? 8
			  : narrow ? 4
				   : 0,
	};
}

void wire_trace_init(struct wire_trace *trace, uint32_t cpu, struct wire_trace_info info)
{
	memset(trace, 0, sizeof(*trace));
	trace->cpu = cpu;
	trace->info = info;
	trace->ran = -1;
	wire_trace_forget_masks(trace);
}

void wire_trace_release(struct wire_trace *trace)
{
	free(trace->blocks);
	arena_release(&trace->arena);
	memset(trace, 0, sizeof(*trace));
}

static void forget_blocks(struct wire_trace *trace)
{
	trace->nr = 0;
	trace->cur = NULL;
	trace->calls = (struct wire_calls){ 0 };
	trace->defined = 0;
}

/* Forgets everything that later codes depend on. */
static void forget(struct wire_trace *trace)
{
	forget_blocks(trace);
	trace->nr_steps = trace->nr_words = 0;
	trace->trap = trace->leave = trace->has_state = trace->begins = trace->moved = false;
	trace->has_step_mask = false;
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

/* The address of the last instruction. */
static inline uint64_t last_of(const struct wire_trace_block *block)
{
	return block->wire.end - block->last;
}

/* Adds the current block's move of the stack pointer. */
static void add_move(struct wire_trace *trace)
{
	const struct wire_trace_block *cur = trace->cur;
	bool all = trace->ran < 0 && !trace->skip;

	if (trace->ran == 0)
		return;
	trace->since.move_unknown |= !all || trace->leave || cur->loses_sp;
	trace->since.move += cur->move;
}

/* Fills in what ran, and by how much the stack pointer moved, if known. Starts new sums. */
static inline void fill_since(const struct wire_trace *trace, struct wire_since *since,
			      struct event_branch *branch)
{
	branch->instructions = since->instructions;
	branch->has_moved = trace->info.has_moves && !since->move_unknown &&
			    since->move == (int32_t)since->move;
	branch->moved = branch->has_moved ? (int32_t)since->move : 0;
	*since = (struct wire_since){ 0 };
}

/* If the move is unknown, sp is near enough to identify the stack. */
static uint64_t sum(uint64_t sp, int32_t move, int sign)
{
	return move == WIRE_STACK_UNKNOWN ? sp : sp + (uint64_t)(sign * (int64_t)move);
}

/* The stack pointer after the current block. */
static void fill_sp(const struct wire_trace *trace, uint64_t sp, struct event_branch *branch)
{
	const struct wire_trace_block *cur = trace->cur;

	branch->sp = sp;
	if (!sp || !cur->replaces || trace->ran >= 0 || trace->skip || trace->leave)
		return;
	branch->left = sum(trace->old_sp, cur->move, 1);
	branch->taken = sum(sp, cur->after, -1);
}

/* One by one, because GCC would clear a struct by one slow instruction. */
static inline void fill_branch(const struct wire_trace *trace, struct wire_since *since,
			       struct event *ev, enum branch_kind kind, uint64_t from, uint64_t to)
{
	struct event_branch *b = &ev->branch;

	wire_trace_head(trace, ev, EVENT_BRANCH);
	b->kind = kind;
	b->from = from;
	b->to = to;
	b->next = b->sp = b->left = b->taken = b->after = b->cycles = 0;
	b->context = trace->level == WIRE_LEVEL_USER ? IP_USER : IP_KERNEL;
	b->space = trace->space;
	b->guest = trace->guest;
	b->by_thread = b->direct = b->over = false;
	b->pushed = kind == BRANCH_CALL ? trace->info.pushed : 0;
	fill_since(trace, since, b);
}

static void fill(struct wire_trace *trace, struct event *ev, enum branch_kind kind, uint64_t from,
		 uint64_t to)
{
	fill_branch(trace, &trace->since, ev, kind, from, to);
	trace->nr_events++;
}

/* Moves the first event of the queue to *ev. */
static bool take_queued(struct wire_trace *trace, struct event *ev)
{
	if (trace->next_queued == trace->nr_queued)
		return false;
	*ev = trace->queue[trace->next_queued++];
	if (trace->next_queued == trace->nr_queued)
		trace->next_queued = trace->nr_queued = 0;
	return true;
}

/* In real mode, jumps wrap around. */
static bool is_target(const struct wire_trace_block *block, uint64_t address)
{
	return address == block->target ||
	       (address < REAL_MODE_END &&
		(address == block->target + 0x10000 || address + 0x10000 == block->target));
}

/* Whether the code of a block leads to an address. */
static bool leads_to(const struct wire_trace_block *block, uint64_t address)
{
	switch (block->wire.flow) {
	case WIRE_FLOW_ON:
	case WIRE_FLOW_WAIT: return address == block->wire.end;
	case WIRE_FLOW_JUMP:
	case WIRE_FLOW_COND:
	case WIRE_FLOW_CALL: return address == block->wire.end || is_target(block, address);
	default: return true;
	}
}

/* The same in a guest, which leaves even between a system call and the kernel that it enters. */
static bool guest_leads_to(const struct wire_trace_block *block, uint64_t address)
{
	if (block->wire.flow == WIRE_FLOW_ENTER)
		return address == block->wire.end || address == last_of(block);
	return leads_to(block, address);
}

static uint16_t guest_of(const struct wire_trace *trace, uint64_t space)
{
	return trace->info.guest_shift ? (uint16_t)(space >> trace->info.guest_shift) : 0;
}

/* The event is in the code before the last state. */
static void set_old_space(const struct wire_trace *trace, struct event_branch *branch)
{
	branch->space = trace->old_space;
	branch->guest = guest_of(trace, trace->old_space);
}

/* Whether a guest leaves to its hypervisor. */
static bool leaves_guest(const struct wire_trace *trace)
{
	return trace->has_state && !trace->guest && guest_of(trace, trace->old_space);
}

static uint64_t interrupted_context(const struct wire_trace *trace)
{
	return trace->trap_level == WIRE_LEVEL_USER ? IP_USER : IP_KERNEL;
}

/*
 * Emits the branch at the end of a block, if the trap interrupted its target before it ran. Also emits
 * one for a block that replaces the stack pointer and ends without a branch. If the code does not lead
 * to the interrupted address, that is the entry of another trap, whose own return address is unknown.
 */
static bool branch_before_trap(struct wire_trace *trace, const struct wire_trace_block *cur,
			       uint64_t shift, struct event *ev)
{
	uint64_t to = trace->resume;
	bool leave = trace->leave || cur->wire.flow == WIRE_FLOW_LEAVE;
	bool exits = leaves_guest(trace), on;
	bool twice = to && !leave &&
		     !(exits ? guest_leads_to(cur, to - shift) : leads_to(cur, to - shift));
	enum branch_kind kind = cur->kind;

	if (!to && cur->wire.flow == WIRE_FLOW_CALL)
		to = cur->target + shift;
	else if (!to && cur->replaces && trace->left) /* an unknown target: stay in the function */
		to = cur->wire.flow == WIRE_FLOW_ON ? cur->wire.end + shift : last_of(cur) + shift;
	on = to == cur->wire.end + shift || to == last_of(cur) + shift ||
	     cur->wire.flow == WIRE_FLOW_ON || cur->wire.flow == WIRE_FLOW_WAIT ||
	     cur->wire.flow == WIRE_FLOW_ENTER;
	if (!leave && (!to || (on && !twice && !(cur->replaces && trace->left))))
		return false;
	if (twice)
		kind = BRANCH_ENTER;
	else if (leave)
		kind = BRANCH_LEAVE;
	else if (on)
		kind = BRANCH_JUMP;
	fill(trace, ev, kind, last_of(cur) + shift, to);
	ev->branch.context = interrupted_context(trace);
	if (trace->has_state && (!leave || exits))
		set_old_space(trace, &ev->branch);
	if (ev->branch.kind == BRANCH_CALL || (twice && cur->wire.flow == WIRE_FLOW_ENTER))
		ev->branch.next = cur->wire.end + shift;
	if (twice)
		ev->branch.sp = trace->left;
	else if (cur->wire.flags & WIRE_BLOCK_STATE || ev->branch.kind == BRANCH_LEAVE)
		fill_sp(trace, trace->left, &ev->branch);
	return true;
}

/*
 * Emits a branch for a block that the trap interrupted after an instruction had replaced the stack pointer:
 * the moves before it do not lead to the interrupted stack pointer.
 */
static bool switch_before_trap(struct wire_trace *trace, const struct wire_trace_block *cur,
			       uint64_t at, struct event *ev)
{
	uint64_t from = trace->old_sp, to = sum(from, cur->move, 1), moved = trace->left - from;

	if (!cur->replaces || !trace->left || !from ||
	    (to > from ? moved <= to - from : -moved <= from - to))
		return false;
	fill(trace, ev, BRANCH_JUMP, at, at);
	ev->branch.context = interrupted_context(trace);
	set_old_space(trace, &ev->branch);
	ev->branch.sp = ev->branch.taken = trace->left;
	ev->branch.left = to;
	return true;
}

/* A step with a trap, or from a block that ended early. */
static void odd_step(struct wire_trace *trace, struct wire_trace_block *to, uint64_t shift)
{
	const struct wire_trace_block *cur = trace->cur;
	uint64_t from = trace->resume ? trace->resume : last_of(cur) + shift;
	struct event *ev = wire_trace_place(trace), *enter;
	bool before;

	if (!trace->trap) {
		fill(trace, ev, BRANCH_JUMP, last_of(cur) + shift, to->wire.start + trace->shift);
		ev->branch.sp = trace->sp;
		trace->nr_queued++;
		return;
	}
	before = trace->ran < 0 ? branch_before_trap(trace, cur, shift, ev)
				: switch_before_trap(trace, cur, from, ev);
	trace->nr_queued += before;
	enter = wire_trace_place(trace);
	fill(trace, enter, BRANCH_ENTER, from, to->wire.start + trace->shift);
	enter->branch.next = trace->resume;
	enter->branch.sp = trace->sp;
	enter->branch.left = trace->left;
	if (!trace->resume && trace->ran < 0 && cur->wire.flow == WIRE_FLOW_CALL_ANY)
		enter->branch.after = cur->wire.end + shift;
	if (before && trace->ran < 0 && !trace->resume)
		enter->branch.from = ev->branch.to; /* the best guess */
	trace->nr_queued++;
}

static bool plain_step(struct wire_trace *trace, struct wire_trace_block *to, uint64_t shift)
{
	const struct wire_trace_block *cur = trace->cur;
	bool on = to->wire.start + trace->shift == cur->wire.end + shift;
	enum branch_kind kind = trace->leave ? BRANCH_LEAVE : cur->kind;
	struct event *ev = wire_trace_place(trace);

	if (on && cur->maybe && !trace->leave) {
		trace->since.move_unknown |= cur->wire.flow == WIRE_FLOW_RETURN;
		if (!trace->has_state)
			return false;
		kind = BRANCH_JUMP;
	}
	fill(trace, ev, kind, last_of(cur) + shift, to->wire.start + trace->shift);
	if (kind == BRANCH_CALL || kind == BRANCH_ENTER)
		ev->branch.next = cur->wire.end + shift;
	if (!trace->has_state)
		return true;
	fill_sp(trace, trace->sp, &ev->branch);
	if (kind == BRANCH_ENTER) {
		ev->branch.left = trace->left;
		ev->branch.taken = 0;
	}
	return true;
}

/* Leaves a block by a step with no other code before it, as is usual. True: *ev is filled. */
static inline bool leave_plain(const struct wire_trace *trace, const struct wire_trace_block *from,
			       const struct wire_trace_block *to, struct wire_since *since,
			       struct event *ev)
{
	since->instructions += from->wire.count;
	since->move += from->move;
	since->move_unknown |= from->loses_sp;
	if (from->maybe && to->wire.start == from->wire.end) {
		since->move_unknown |= from->kind == BRANCH_RETURN;
		return false;
	}
	fill_branch(trace, since, ev, from->kind, last_of(from) + trace->shift,
		    to->wire.start + trace->shift);
	if (from->kind == BRANCH_CALL || from->kind == BRANCH_ENTER)
		ev->branch.next = from->wire.end + trace->shift;
	return true;
}

static bool take_plain(struct wire_trace *trace, struct wire_trace_block *to, struct event *ev)
{
	bool got = leave_plain(trace, trace->cur, to, &trace->since, ev);

	trace->total += trace->cur->wire.count;
	trace->nr_steps_taken++;
	trace->nr_events += got;
	trace->cur = to;
	return got;
}

/* Leaves the current block, whose shift is given. True: *ev is filled. */
static bool take_any(struct wire_trace *trace, struct wire_trace_block *to, uint64_t shift,
		     struct event *ev)
{
	uint64_t ran = trace->ran < 0 ? trace->cur->wire.count : (uint64_t)trace->ran;

	wire_trace_mask_in_block(trace, ran);
	trace->since.instructions += ran;
	trace->total += ran;
	trace->nr_steps_taken++;
	add_move(trace);
	if (trace->has_state)
		wire_trace_mask_of_state(trace);
	if (trace->trap || (trace->ran >= 0 && trace->has_state))
		odd_step(trace, to, shift);
	else if (trace->ran < 0)
		trace->nr_queued += plain_step(trace, to, shift);
	wire_trace_show_mask(trace, trace->level, trace->since.instructions);
	trace->cur = to;
	trace->trap = trace->leave = trace->has_state = trace->moved = trace->told = false;
	trace->has_step_mask = false;
	trace->skip = 0;
	trace->ran = -1;
	trace->resume = 0;
	return take_queued(trace, ev);
}

static inline bool take(struct wire_trace *trace, struct wire_trace_block *to, uint64_t shift,
			struct event *ev)
{
	return trace->told || trace->cur->wire.mask ? take_any(trace, to, shift, ev)
						    : take_plain(trace, to, ev);
}

/* 1: *ev is filled; 0: no event; -1: damage. */
static int begin(struct wire_trace *trace, struct wire_trace_block *to, struct event *ev)
{
	bool goes_on = trace->begin_flags & WIRE_BEGIN_GOES_ON && !trace->lost;

	if (trace->skip > to->wire.count)
		return -1;
	trace->begins = trace->has_state = trace->trap = trace->leave = trace->moved = false;
	trace->cur = to;
	if (goes_on) {
		wire_trace_set_mask(trace, trace->level, trace->state_mask,
				    trace->since.instructions);
		return take_queued(trace, ev);
	}
	if (trace->begin_total > trace->total)
		trace->missing += trace->begin_total - trace->total;
	trace->total = trace->begin_total - trace->skip;
	trace->lost = false;
	trace->since.instructions = 0;
	fill(trace, ev, BRANCH_BEGIN, 0, to->wire.start + trace->shift);
	ev->branch.sp = trace->sp;
	wire_trace_forget_masks(trace);
	wire_trace_set_mask(trace, trace->level, trace->state_mask, 0);
	/* Without those that were not traced but will be counted with the block. */
	trace->since.instructions = -(uint64_t)trace->skip;
	return 1;
}

/* go and new. 1: *ev is filled; 0: no event; -1: damage. */
static int go(struct wire_trace *trace, struct wire_trace_block *to, uint64_t shift,
	      struct event *ev)
{
	if (trace->begins)
		return begin(trace, to, ev);
	if (!trace->cur)
		return -1;
	if (!trace->trap && !trace->leave && trace->ran < 0)
		wire_learn(&trace->calls, &trace->cur->wire, &to->wire, trace->moved);
	return take(trace, to, shift, ev);
}

static bool get_state(struct wire_trace *trace)
{
	uint64_t value;
	unsigned mask;

	if (!wire_trace_byte(trace, &mask))
		return false;
	trace->old_sp = trace->sp;
	trace->old_space = trace->space;
	trace->old_level = trace->level;
	trace->state_mask = (uint8_t)(mask >> WIRE_STATE_MASK_SHIFT & WIRE_MASK_BITS);
	if (mask & WIRE_STATE_SP) {
		if (!wire_trace_signed(trace, &value))
			return false;
		trace->sp += value;
	}
	if (mask & WIRE_STATE_SPACE && !wire_trace_number(trace, &trace->space))
		return false;
	if (mask & WIRE_STATE_LEVEL) {
		if (!wire_trace_number(trace, &value) || value > WIRE_LEVEL_FIRMWARE)
			return false;
		trace->level = (unsigned)value;
	}
	if (mask & WIRE_STATE_SHIFT && !wire_trace_signed(trace, &trace->shift))
		return false;
	trace->guest = guest_of(trace, trace->space);
	trace->left = trace->info.has_moves ? trace->sp : 0;
	if (mask & WIRE_STATE_LEFT) {
		if (!wire_trace_signed(trace, &value))
			return false;
		trace->left = value ? trace->sp + value : 0;
	}
	trace->moved = mask & WIRE_STATE_SHIFT;
	trace->has_state = true;
	return true;
}

static bool get_begin(struct wire_trace *trace)
{
	uint64_t skip;

	if (!wire_trace_byte(trace, &trace->begin_flags) || !wire_trace_number(trace, &skip) ||
	    !wire_trace_number(trace, &trace->begin_total) || skip > WIRE_BLOCK_COUNT_MAX)
		return false;
	trace->skip = (unsigned)skip;
	trace->begins = true;
	trace->sp = trace->space = trace->shift = 0;
	trace->guest = 0;
	trace->level = 0;
	trace->state_mask = WIRE_MASK_SAME;
	if (trace->begin_flags & WIRE_BEGIN_EMPTY)
		forget_blocks(trace);
	return true;
}

static bool get_trap(struct wire_trace *trace)
{
	uint64_t distance;
	unsigned about;

	if (!trace->cur || !wire_trace_byte(trace, &about) || about >> (WIRE_TRAP_MASK_SHIFT + 2))
		return false;
	trace->trap = true;
	trace->trap_level = about >> WIRE_TRAP_LEVEL_SHIFT & WIRE_LEVEL_FIRMWARE;
	trace->trap_mask = (uint8_t)(about >> WIRE_TRAP_MASK_SHIFT);
	trace->resume = 0;
	if (!(about & WIRE_TRAP_RESUME))
		return true;
	if (!wire_trace_signed(trace, &distance))
		return false;
	trace->resume = trace->cur->wire.start + trace->shift + distance;
	return true;
}

static bool get_short(struct wire_trace *trace)
{
	uint64_t ran;

	if (!trace->cur || !wire_trace_number(trace, &ran) || ran > trace->cur->wire.count ||
	    ran < trace->skip)
		return false;
	trace->ran = (int64_t)ran;
	return true;
}

static bool get_mask(struct wire_trace *trace)
{
	unsigned mask;

	if (!trace->cur || trace->begins || !wire_trace_byte(trace, &mask) ||
	    mask > WIRE_MASK_UNKNOWN)
		return false;
	trace->step_mask = (uint8_t)mask;
	trace->has_step_mask = true;
	return true;
}

static int end(struct wire_trace *trace, struct event *ev)
{
	uint64_t ran;

	if (!trace->cur || !wire_trace_number(trace, &ran) || ran > trace->cur->wire.count ||
	    ran < trace->skip)
		return -1;
	trace->since.instructions += ran;
	trace->total += ran;
	trace->since.move_unknown = true;
	trace->waits = false;
	fill(trace, ev, BRANCH_END, last_of(trace->cur) + trace->shift, 0);
	ev->branch.over = trace->cur->wire.flow == WIRE_FLOW_LEAVE &&
			  trace->level != WIRE_LEVEL_USER && ran == trace->cur->wire.count;
	trace->cur = NULL;
	return 1;
}

/* The place of a sample. It is between two steps, so it does not apply to the next one. */
static int sample(struct wire_trace *trace, struct event *ev)
{
	if (!trace->cur || trace->begins || trace->trap || trace->leave || trace->has_state ||
	    trace->has_step_mask || trace->ran >= 0 || !wire_trace_number(trace, &trace->place) ||
	    !trace->place)
		return -1;
	wire_trace_head(trace, ev, EVENT_CHECK);
	trace->nr_events++;
	return 1;
}

/* Any code but steps. 1: *ev is filled; 0: no event; -1: damage. */
static int other_code(struct wire_trace *trace, unsigned code, uint64_t shift, struct event *ev)
{
	struct wire_trace_block *block;
	uint64_t value;

	switch (code) {
	case WIRE_TRACE_GO:
		if (!wire_trace_number(trace, &value) || value >= trace->nr)
			return -1;
		return go(trace, trace->blocks[value], shift, ev);
	case WIRE_TRACE_NEW:
		block = wire_trace_definition(trace);
		return block ? go(trace, block, shift, ev) : -1;
	case WIRE_TRACE_SHORT: return get_short(trace) ? 0 : -1;
	case WIRE_TRACE_TRAP: return get_trap(trace) ? 0 : -1;
	case WIRE_TRACE_LEAVE: trace->leave = true; return trace->cur ? 0 : -1;
	case WIRE_TRACE_TIME:
		if (!wire_trace_number(trace, &value))
			return -1;
		trace->time += value;
		wire_trace_wait(trace);
		return 0;
	case WIRE_TRACE_STATE: return get_state(trace) ? 0 : -1;
	case WIRE_TRACE_BEGIN: return get_begin(trace) ? 0 : -1;
	case WIRE_TRACE_END: return end(trace, ev);
	case WIRE_TRACE_SAMPLE: return sample(trace, ev);
	case WIRE_TRACE_MASK: return get_mask(trace) ? 0 : -1;
	default: return -1;
	}
}

/* Loads the bits of the next steps. False: they are cut short. */
static bool load_steps(struct wire_trace *trace, unsigned nr)
{
	size_t len = (nr + 7) / 8;

	if (wire_trace_left(trace) < len)
		return false;
	trace->steps = le_at(trace->at, len);
	trace->at += len;
	trace->nr_steps = nr;
	return true;
}

static struct wire_trace_block *follow(struct wire_trace *trace, struct wire_trace_block *from,
				       bool bit)
{
	return (struct wire_trace_block *)wire_step(&trace->calls, &from->wire, bit);
}

/* Takes a step after codes that say something about it. False: damage. */
static bool take_told_step(struct wire_trace *trace, struct event **ev)
{
	struct wire_trace_block *to = follow(trace, trace->cur, trace->steps & 1);

	trace->steps >>= 1;
	trace->nr_steps--;
	if (to)
		*ev += take_any(trace, to, trace->shift, *ev);
	return to;
}

/* Takes plain steps while there is room for events. False: damage. What changes is in registers. */
static bool take_plain_steps(struct wire_trace *trace, struct event **events,
			     const struct event *end)
{
	struct wire_trace_block *cur = trace->cur, *to = cur;
	struct wire_since since = trace->since;
	struct event *ev = *events;
	uint64_t steps = trace->steps, total = 0;
	unsigned nr = trace->nr_steps;

	for (; nr && ev < end && !cur->wire.mask; nr--, steps >>= 1) {
		to = follow(trace, cur, steps & 1);
		if (!to)
			break;
		total += cur->wire.count;
		ev += leave_plain(trace, cur, to, &since, ev);
		cur = to;
	}
	trace->total += total;
	trace->nr_steps_taken += trace->nr_steps - nr;
	trace->nr_events += (uint64_t)(ev - *events);
	trace->nr_steps = nr;
	trace->steps = steps;
	trace->since = since;
	trace->cur = cur;
	*events = ev;
	return to;
}

/* Takes at least one step. False: damage. */
static bool take_steps(struct wire_trace *trace, struct event **ev, const struct event *end)
{
	if (!trace->cur)
		return false;
	if (trace->told || trace->cur->wire.mask) /* there may be more events, which come next */
		return take_told_step(trace, ev);
	return take_plain_steps(trace, ev, end);
}

/* shift: of the current block; a state may change trace->shift. 1: go on; 0: no code; -1: damage. */
static int take_code(struct wire_trace *trace, uint64_t *shift, struct event **ev)
{
	unsigned code;
	bool step;
	int ret;

	if (!wire_trace_byte(trace, &code))
		return 0;
	if (code > WIRE_TRACE_STEPS && code < WIRE_TRACE_GO)
		return load_steps(trace, code - WIRE_TRACE_STEPS)
			       ? 1
			       : damaged(trace, "the steps are cut short");
	if (code && code < WIRE_TRACE_STEPS) {
		trace->nr_words = code;
		return 1;
	}
	step = code == WIRE_TRACE_GO || code == WIRE_TRACE_NEW;
	trace->told |= !step;
	ret = other_code(trace, code, *shift, *ev);
	if (ret < 0)
		return damaged(trace, "cannot read the trace from here");
	if (step || ret)
		*shift = trace->shift;
	*ev += ret;
	return 1;
}

/* Takes steps, or else the next code; see take_code(). */
static int take_next(struct wire_trace *trace, uint64_t *shift, struct event **ev,
		     const struct event *end)
{
	if (take_queued(trace, *ev)) {
		++*ev;
		return 1;
	}
	if (trace->nr_words && !trace->nr_steps) {
		trace->nr_words--;
		if (!load_steps(trace, 64))
			return damaged(trace, "the steps are cut short");
	}
	if (!trace->nr_steps)
		return take_code(trace, shift, ev);
	if (!take_steps(trace, ev, end))
		return damaged(trace, "a step leads to no block");
	*shift = trace->shift;
	return 1;
}

int wire_trace_run(struct wire_trace *trace, struct event *events, size_t max, size_t *nr)
{
	struct event *ev = events;
	uint64_t shift = trace->shift, time = trace->time;
	int ret;

	do
		ret = take_next(trace, &shift, &ev, events + max);
	while (ret > 0 && ev < events + max && trace->time == time &&
	       (ev == events || ev[-1].kind != EVENT_CHECK));
	*nr = (size_t)(ev - events);
	return ret;
}

int wire_trace_next(struct wire_trace *trace, struct event *ev)
{
	size_t nr;
	int ret;

	do
		ret = wire_trace_run(trace, ev, 1, &nr);
	while (ret > 0 && !nr);
	return ret;
}

// SPDX-License-Identifier: GPL-2.0-or-later
/* The codes of a trace: writes steps that are not bits, states, definitions of blocks and times. */
#include <stdatomic.h>
#include <stdlib.h>

#include "look.h"
#include "sample.h"
#include "trace_parts.h"

#define PAGE_MASK 0xfffull

static _Atomic uint64_t clock_last;

/* Later than all exact times so far, so a task leaves its old vCPU before it enters the new one. */
static uint64_t exact_time(struct tracer *t)
{
	uint64_t last = atomic_load_explicit(&clock_last, memory_order_relaxed), now;

	emit_wake(&t->out);
	now = sample_now();
	do {
		if (now <= last)
			now = last + 1;
	} while (!atomic_compare_exchange_weak(&clock_last, &last, now));
	return now;
}

void trace_put_exact_time(struct tracer *t)
{
	emit_time(&t->out, exact_time(t));
}

/* left: the interrupted stack pointer, or look->sp; 0: unknown. */
static void put_state(struct tracer *t, const struct look *look, uint64_t shift, uint64_t left)
{
	unsigned mask = left != look->sp ? WIRE_STATE_LEFT : 0;

	mask |= look->sp != t->written.sp ? WIRE_STATE_SP : 0;
	mask |= look->space != t->written.space ? WIRE_STATE_SPACE : 0;
	mask |= look->level != t->written.level ? WIRE_STATE_LEVEL : 0;
	mask |= shift != t->shift ? WIRE_STATE_SHIFT : 0;
	mask |= look->mask << WIRE_STATE_MASK_SHIFT;
	emit_byte(&t->out, WIRE_TRACE_STATE);
	emit_byte(&t->out, (uint8_t)mask);
	if (mask & WIRE_STATE_SP)
		emit_signed(&t->out, look->sp - t->written.sp);
	if (mask & WIRE_STATE_SPACE)
		emit_number(&t->out, look->space);
	if (mask & WIRE_STATE_LEVEL)
		emit_number(&t->out, look->level);
	if (mask & WIRE_STATE_SHIFT)
		emit_signed(&t->out, shift);
	if (mask & WIRE_STATE_LEFT)
		emit_signed(&t->out, left ? left - look->sp : 0);
	t->written = *look;
	t->shift = shift;
}

/*
 * Records the page of code at an address: for new blocks, and where a program resumes, which may be
 * another program with the same blocks in another address space.
 */
void trace_note_code(struct tracer *t, uint64_t pc, const struct look *look)
{
	struct regs_view view = { .cpu = t->cpu };
	struct regs regs = { .pc = pc, .space = look->space, .level = look->level };
	uint64_t page = pc & ~PAGE_MASK;

	/* Most system calls return to the same page as the last one. */
	if (page == t->noted_page && look->space == t->noted_space)
		return;
	t->noted_page = page;
	t->noted_space = look->space;
	code_note(t->out.track, &view, &regs);
}

static uint64_t sum_of(const struct block_move *move, unsigned word)
{
	int64_t sum = move->bytes + (int64_t)move->words * word;
	bool known = !move->unknown && word && !(sum & 1) && llabs(sum) < WIRE_STACK_MAX;

	return (uint64_t)(known ? sum : WIRE_STACK_UNKNOWN);
}

static void put_definition(struct tracer *t, const struct node *node)
{
	const struct block *block = node->block;
	uint64_t pc = node->wire.start + t->shift;
	unsigned word = look_word(t->cpu, pc, block->mode), flags = block->flags;
	uint64_t move = sum_of(&block->move, word);

	if (flags & WIRE_BLOCK_STATE ? block->replaces : move)
		flags |= WIRE_BLOCK_STACK;
	if (block->mask)
		flags |= WIRE_BLOCK_MASK;
	emit_signed(&t->out, node->wire.start - t->defined);
	emit_byte(&t->out, (uint8_t)(block->flow | flags << WIRE_FLAGS_SHIFT));
	emit_number(&t->out, block->count);
	emit_number(&t->out, block->size);
	emit_number(&t->out, block->last);
	t->defined = node->wire.end;
	if (wire_flow_has_target(block->flow))
		emit_signed(&t->out, block->target - (block->start + block->size));
	if (flags & WIRE_BLOCK_STACK) {
		emit_signed(&t->out, move);
		if (flags & WIRE_BLOCK_STATE)
			emit_signed(&t->out, sum_of(&block->after, word));
	}
	if (!block->mask)
		return;
	emit_byte(&t->out, block->mask);
	if (block->mask_at)
		emit_number(&t->out, block->mask_at);
}

/*
 * A new block gets the address at which it runs now, so that the shift stays. The address that it was
 * translated for may be one that the kernel used only at boot.
 */
static void place_new(const struct tracer *t, struct node *node, uint64_t start)
{
	if (node->dictionary == t->dictionary)
		return;
	node->wire.start = start;
	node->wire.end = start + node->block->size;
}

static void put_go(struct tracer *t, struct node *to)
{
	if (to->dictionary == t->dictionary) {
		emit_byte(&t->out, WIRE_TRACE_GO);
		emit_number(&t->out, to->id);
		return;
	}
	to->dictionary = t->dictionary;
	to->id = t->n_ids++;
	to->wire.next[0] = to->wire.next[1] = NULL;
	emit_byte(&t->out, WIRE_TRACE_NEW);
	put_definition(t, to);
	trace_note_code(t, to->wire.start + t->shift, &t->written);
}

void trace_put_begin(struct tracer *t, struct node *at, unsigned skip, unsigned flags)
{
	struct look look = t->written;
	uint64_t pc = at->wire.start + t->shift, shift;

	place_new(t, at, pc);
	shift = pc - at->wire.start;
	t->shift = 0;
	t->written = (struct look){ 0 };
	emit_byte(&t->out, WIRE_TRACE_BEGIN);
	emit_byte(&t->out, (uint8_t)flags);
	emit_number(&t->out, skip);
	emit_number(&t->out, t->total - at->wire.count + skip);
	put_state(t, &look, shift, look.sp);
	put_go(t, at);
}

bool trace_put_sync(struct tracer *t, struct node *at, unsigned skip, unsigned flags)
{
	emit_commit(&t->out);
	t->out.time = exact_time(t);
	if (!trace_sync(t->out.track, t->out.time) || !emit_room(&t->out))
		return false;
	t->out.since_sync = 0;
	t->dictionary++;
	t->n_ids = 0;
	t->calls = (struct wire_calls){ 0 };
	t->defined = 0;
	trace_put_begin(t, at, skip, flags | WIRE_BEGIN_EMPTY);
	return true;
}

void trace_put_mask(struct tracer *t, bool trap)
{
	unsigned mask = trace_mask_after(t, trap);

	if (mask == (trap ? WIRE_MASK_UNKNOWN : WIRE_MASK_ON))
		return; /* readers assume it */
	emit_close_steps(&t->out);
	emit_byte(&t->out, WIRE_TRACE_MASK);
	emit_byte(&t->out, (uint8_t)mask);
}

void trace_put_step(struct tracer *t, const struct step *step)
{
	struct node *cur = t->cur;
	uint64_t shift;
	bool moved;

	place_new(t, step->to, step->pc - t->shift);
	shift = step->pc - step->to->wire.start;
	moved = shift != t->shift;
	if (step->state)
		trace_put_exact_time(t);
	emit_close_steps(&t->out);
	if (step->ran != cur->wire.count) {
		emit_byte(&t->out, WIRE_TRACE_SHORT);
		emit_number(&t->out, (uint64_t)step->ran);
		t->total -= (unsigned)(cur->wire.count - step->ran);
	} else if (cur->block->last_mask.mask == WIRE_MASK_UNKNOWN && !step->about.mask) {
		trace_put_mask(t, step->trap);
	}
	if (step->leave)
		emit_byte(&t->out, WIRE_TRACE_LEAVE);
	if (step->trap) {
		emit_byte(&t->out, WIRE_TRACE_TRAP);
		emit_byte(&t->out, (uint8_t)(step->about.mask << WIRE_TRAP_MASK_SHIFT |
					     step->about.level << WIRE_TRAP_LEVEL_SHIFT |
					     (step->about.resume ? WIRE_TRAP_RESUME : 0)));
		if (step->about.resume)
			emit_signed(&t->out, step->about.resume - (cur->wire.start + t->shift));
		t->resume = step->about.resume;
	}
	if (step->state && regs_is_m_profile())
		trace_follow_exception(t, step);
	if (step->state || moved)
		put_state(t, &step->look, shift, step->enters ? step->about.left : step->look.sp);
	put_go(t, step->to);
	if (!step->trap && !step->leave && step->ran == cur->wire.count)
		wire_learn(&t->calls, &cur->wire, &step->to->wire, moved);
	t->total += step->to->wire.count;
	t->cur = step->to;
}

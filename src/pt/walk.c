// SPDX-License-Identifier: GPL-2.0-or-later
#include "pt/walk.h"

#include <string.h>

#include "base/mem.h"

/* Branches */

void ipt_put_more(struct ipt_flow *f)
{
	f->cap = f->cap ? f->cap * 2 : 1024;
	f->branches = xrealloc(f->branches, f->cap, sizeof(*f->branches));
}

void ipt_put_note(struct ipt_flow *f, enum note_kind kind, uint64_t address, uint64_t value)
{
	uint64_t insns = f->insns, cycles = f->cycles;

	ipt_put(f, IPT_DID_NOTE, address, value, (uint8_t)kind);
	f->insns = insns;
	f->cycles = cycles;
}

/* Places */

void ipt_look_at_thread(struct ipt_flow *f)
{
	struct ipt_thread old = f->thread;
	uint64_t address;

	f->thread = f->world->thread(f->world->data, f->queue, f->clock.now);
	memset(f->targets, 0, sizeof(f->targets));
	if (old.pid != f->thread.pid || old.tid != f->thread.tid)
		ipt_put(f, IPT_DID_SWITCH, f->thread.tid, f->thread.pid, 0);
	/* The kernel's code is the same for all threads, but it may have changed. */
	address = f->at.block ? f->at.place.base + f->at.block->start : 0;
	if (!(address >> 63))
		return;
	ipt_go_to(f, address);
	if (f->unsaid && f->at.block != &f->nowhere) { /* its code is at hand from now on */
		f->unsaid = false;
		ipt_put(f, IPT_DID_BEGIN, 0, address, 0);
	}
}

/* Whether a block has no instruction, maybe because the first one ends in other code. */
static bool is_cut(const struct ipt_code *code, const struct ipt_block *b)
{
	return b->kind == IPT_NOTHING && b->start + IPT_LONGEST_INSN > code->len;
}

void ipt_find_spot(struct ipt_flow *f, uint64_t address, struct ipt_spot *spot)
{
	struct ipt_place *place = &spot->place;

	spot->block = NULL;
	f->foreign = false;
	if (!f->world->find(f->world->data, f->thread.pid, f->clock.now, address, place))
		return;
	f->foreign = !place->code;
	if (f->foreign)
		return;
	spot->block = ipt_code_find(place->code, address - place->base, f->wide);
	if (!is_cut(place->code, spot->block) || !place->bridge)
		return;
	*place = (struct ipt_place){ .code = place->bridge, .base = place->bridge_base };
	spot->block = ipt_code_find(place->code, address - place->base, f->wide);
}

/* For a target outside of the code that the branch is in, or that changes. */
static struct ipt_block *leave_code(struct ipt_flow *f, uint64_t offset)
{
	uint64_t address = f->at.place.base + offset;

	ipt_go_to(f, f->wide ? address : address & UINT32_MAX);
	return f->at.block;
}

struct ipt_block *ipt_link(struct ipt_flow *f, struct ipt_block *b, bool taken)
{
	struct ipt_code *code = f->at.place.code;
	uint64_t offset = taken ? b->target : ipt_block_next(b);
	struct ipt_block *next;

	if (offset >= code->len || (taken ? b->taken_changes : b->fall_changes))
		return leave_code(f, offset);
	next = ipt_code_find(code, offset, b->wide);
	if (is_cut(code, next))
		return leave_code(f, offset);
	__atomic_store_n(taken ? &b->taken : &b->fall, next, __ATOMIC_RELEASE);
	return next;
}

/* Blocks */

/* Why the code does not go on by itself at a block. */
static enum ipt_gap stop_before(struct ipt_flow *f, struct ipt_block *b)
{
	return ipt_stop_at(f, b, b->kind != IPT_NOTHING ? IPT_GAP_NONE : ipt_no_code(f, b));
}

/* Takes back branches of what is a loop. */
static enum ipt_gap give_up(struct ipt_flow *f, struct ipt_block *b, size_t nr)
{
	f->nr = nr;
	return ipt_stop_at(f, b, IPT_GAP_ENDLESS);
}

enum ipt_gap ipt_walk(struct ipt_flow *f)
{
	struct ipt_block *b = f->at.block;
	size_t nr = f->nr;

	for (unsigned steps = 0; ipt_runs_alone(b); steps++) {
		if (steps > IPT_MAX_STEPS)
			return give_up(f, b, nr);
		b = ipt_run(f, b);
	}
	return stop_before(f, b);
}

/* Whether an offset is in a block and before its end. */
static bool is_in(const struct ipt_block *b, uint64_t offset)
{
	return offset >= b->start && offset < ipt_block_next(b);
}

/* Stops inside a block, before the instruction at an offset. */
static enum ipt_gap stop_in(struct ipt_flow *f, struct ipt_block *b, uint64_t offset)
{
	int before = ipt_block_before(f->at.place.code, b, offset);

	if (before < 0)
		return ipt_stop_at(f, b, IPT_GAP_FUP);
	f->insns += (unsigned)before;
	return ipt_stop_at(f, ipt_code_find(f->at.place.code, offset, b->wide), IPT_GAP_NONE);
}

enum ipt_gap ipt_walk_to(struct ipt_flow *f, uint64_t ip)
{
	struct ipt_block *b = f->at.block;
	size_t nr = f->nr;

	for (unsigned steps = 0;; steps++) {
		if (f->at.place.base + b->start == ip)
			return ipt_stop_at(f, b, IPT_GAP_NONE);
		if (is_in(b, ip - f->at.place.base))
			return stop_in(f, b, ip - f->at.place.base);
		if (!ipt_runs_alone(b))
			return ipt_stop_at(
				f, b, b->kind == IPT_NOTHING ? ipt_no_code(f, b) : IPT_GAP_FUP);
		if (steps > IPT_MAX_STEPS)
			return give_up(f, b, nr);
		b = ipt_run(f, b);
	}
}

enum ipt_gap ipt_walk_out(struct ipt_flow *f, uint64_t ip)
{
	struct ipt_block *b = f->at.block;
	size_t nr = f->nr;

	for (unsigned steps = 0; ipt_runs_alone(b); steps++) {
		bool jumps = b->kind != IPT_ON;

		if (jumps && ip && ipt_target(f, b) == ip)
			break;
		if (steps > IPT_MAX_STEPS)
			return give_up(f, b, nr);
		b = ipt_run(f, b);
	}
	return stop_before(f, b);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * walk: runs the code of a flow, block by block, and puts down its branches. For pt/flow, which knows the
 * packets.
 */
#ifndef KSCOPE_PT_WALK_H
#define KSCOPE_PT_WALK_H

#include "model/event.h"
#include "pt/flow.h"

/* No code runs through this many blocks without a branch that needs a packet: it is a loop. */
#define IPT_MAX_STEPS 4096

/* Branches */

void ipt_put_more(struct ipt_flow *f);
/* Keeps the counts of instructions and cycles. */
void ipt_put_note(struct ipt_flow *f, enum note_kind kind, uint64_t address, uint64_t value);

static inline void ipt_put(struct ipt_flow *f, enum ipt_branch_kind kind, uint64_t from,
			   uint64_t to, uint8_t size)
{
	if (f->nr == f->cap)
		ipt_put_more(f);
	f->branches[f->nr++] = (struct ipt_branch){
		.from = from,
		.to = to,
		.time = f->clock.now,
		.insns = (uint32_t)f->insns,
		.cycles = (uint32_t)f->cycles,
		.kind = (uint8_t)kind,
		.size = size,
	};
	f->insns = f->cycles = 0;
}

static inline void ipt_put_after(struct ipt_flow *f, enum ipt_branch_kind kind,
				 const struct ipt_block *b, uint64_t to)
{
	ipt_put(f, kind, f->at.place.base + ipt_block_branch(b), to, b->last);
}

/* Places */

void ipt_look_at_thread(struct ipt_flow *f);
void ipt_find_spot(struct ipt_flow *f, uint64_t address, struct ipt_spot *spot);
/* The block of a successor that is not known yet, or not always the same. */
struct ipt_block *ipt_link(struct ipt_flow *f, struct ipt_block *b, bool taken);

static inline void ipt_time_passed(struct ipt_flow *f)
{
	if (f->clock.now >= f->thread.until)
		ipt_look_at_thread(f);
}

/* Goes on at any address. If no code is known there, that is an error only when it has to run. */
static inline void ipt_go_to(struct ipt_flow *f, uint64_t address)
{
	size_t slot = (address ^ address >> 12) % IPT_TARGETS;

	if (f->targets[slot].address != address || !f->targets[slot].spot.block ||
	    f->targets[slot].spot.block->wide != f->wide) {
		f->targets[slot].address = address;
		ipt_find_spot(f, address, &f->targets[slot].spot);
	}
	f->at = f->targets[slot].spot;
	if (!f->at.block) {
		f->nowhere = (struct ipt_block){ .kind = IPT_NOTHING, .start = address };
		f->at = (struct ipt_spot){ .block = &f->nowhere };
	}
}

static inline struct ipt_block *ipt_taken(struct ipt_flow *f, struct ipt_block *b)
{
	struct ipt_block *next = __atomic_load_n(&b->taken, __ATOMIC_ACQUIRE);

	return next ? next : ipt_link(f, b, true);
}

static inline struct ipt_block *ipt_fall(struct ipt_flow *f, struct ipt_block *b)
{
	struct ipt_block *next = __atomic_load_n(&b->fall, __ATOMIC_ACQUIRE);

	return next ? next : ipt_link(f, b, false);
}

/* Addresses of 32-bit code wrap around. */
static inline uint64_t ipt_target(const struct ipt_flow *f, const struct ipt_block *b)
{
	uint64_t address = f->at.place.base + b->target;

	return b->wide ? address : (uint32_t)address;
}

/* Blocks */

static inline void ipt_push(struct ipt_flow *f, struct ipt_block *b)
{
	struct ipt_spot *spot = &f->returns[f->top++ % IPT_RETURNS];

	spot->block = b;
	spot->place = f->at.place;
	f->nr_returns += f->nr_returns < IPT_RETURNS;
}

/*
 * Runs a block whose successor needs no packet. A call of the next
 * instruction only reads the instruction pointer: the cpu does not remember it, either, unless it is indirect.
 */
static inline struct ipt_block *ipt_run(struct ipt_flow *f, struct ipt_block *b)
{
	f->insns += b->insns;
	switch (b->kind) {
	case IPT_JUMP:
		if (f->all || b->leaves)
			ipt_put_after(f, IPT_DID_JUMP, b, ipt_target(f, b));
		return ipt_taken(f, b);
	case IPT_CALL:
		ipt_put_after(f, IPT_DID_CALL, b, ipt_target(f, b));
		if (b->target != ipt_block_next(b))
			ipt_push(f, b);
		return ipt_taken(f, b);
	default: return ipt_fall(f, b);
	}
}

static inline bool ipt_runs_alone(const struct ipt_block *b)
{
	return b->kind == IPT_ON || b->kind == IPT_JUMP || b->kind == IPT_CALL;
}

/* One TNT bit. The usual path does not branch on it: this machine would mispredict. */
static inline struct ipt_block *ipt_branch_if(struct ipt_flow *f, struct ipt_block *b, bool taken)
{
	struct ipt_block **link = taken ? &b->taken : &b->fall;
	struct ipt_block *next = __atomic_load_n(link, __ATOMIC_ACQUIRE);

	f->insns += b->insns;
	if (next && !(taken & (f->all | b->leaves)))
		return next;
	if (!taken)
		return ipt_fall(f, b);
	if (f->all || b->leaves)
		ipt_put_after(f, IPT_DID_JUMP, b, ipt_target(f, b));
	return ipt_taken(f, b);
}

/* A return to the last call, which one bit tells. */
static inline struct ipt_block *ipt_return_to_call(struct ipt_flow *f, struct ipt_block *b)
{
	const struct ipt_spot *call = &f->returns[--f->top % IPT_RETURNS];

	f->nr_returns--;
	f->insns += b->insns;
	ipt_put_after(f, IPT_DID_RETURN, b, call->place.base + ipt_block_next(call->block));
	f->at.place = call->place;
	return ipt_fall(f, call->block);
}

/* The code is at this block now; if there is a gap, this is where. */
static inline enum ipt_gap ipt_stop_at(struct ipt_flow *f, struct ipt_block *b, enum ipt_gap gap)
{
	f->at.block = b;
	return gap;
}

/* Why a block has no instruction. */
static inline enum ipt_gap ipt_no_code(const struct ipt_flow *f, const struct ipt_block *b)
{
	return b == &f->nowhere && f->foreign ? IPT_GAP_FOREIGN : IPT_GAP_NO_CODE;
}

/* Runs up to a branch that needs a packet. */
enum ipt_gap ipt_walk(struct ipt_flow *f);
/* Runs up to the instruction at an address. */
enum ipt_gap ipt_walk_to(struct ipt_flow *f, uint64_t ip);
/*
 * Runs up to the branch that leaves the traced code: the one that needs a packet, or that leads to an address
 * (0: not known).
 */
enum ipt_gap ipt_walk_out(struct ipt_flow *f, uint64_t ip);

#endif

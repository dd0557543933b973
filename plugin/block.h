/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * block: QEMU's translation blocks, as the trace sees them. Equal translations share one block, so the
 * number of blocks is bounded by the amount of code. Blocks live until the process ends. Each vCPU has
 * its own node of a block, with what it learned; only the thread of the vCPU uses it.
 */
#ifndef KSCOPE_PLUGIN_BLOCK_H
#define KSCOPE_PLUGIN_BLOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "insn.h"

struct qemu_plugin_tb;

#define BLOCK_REAL_MODE_END 0x110000 /* x86 */

/* How the trace follows a step from a block, by its flow. */
enum way {
	WAY_NEXT,
	WAY_CALL,
	WAY_JUMP_ANY, /* like WAY_NEXT; this and later ways are indirect */
	WAY_CALL_ANY,
	WAY_RETURN,
	WAY_SLOW, /* never one bit */
	WAY_MASK  /* like WAY_NEXT, but the last instruction may switch interrupts on or off */
};

/* Fits one cache line. */
struct node {
	_Alignas(64) struct wire_block wire; /* as the reader has it */
	uint32_t dictionary;		     /* the one in which the block has this id */
	uint32_t id;
	struct block *block;
	uint8_t way; /* enum way */
};

/* The sum of what instructions add to the stack pointer. */
struct block_move {
	int64_t bytes; /* in addition to the words */
	int32_t words; /* of x86, whose size depends on the mode */
	bool unknown;
};

struct block {
	uint64_t start, target;
	/* Of the whole block; `replaces`: before and after the instructions that replace sp. */
	struct block_move move, after;
	bool replaces;
	bool thumb;   /* it may begin inside an IT block, which makes its branch conditional */
	bool repeats; /* see struct insn; of the last instruction */
	_Atomic bool watched; /* mode=pt: its last instruction has a callback */
	bool keeps_sp;	      /* the last instruction adds nothing */
	enum insn_mode mode;  /* as the instructions reveal */
	uint32_t size;
	uint16_t count;
	uint8_t flow, flags;
	uint8_t last; /* size of the last instruction */
	uint8_t mask; /* see struct wire_block */
	uint16_t mask_at;
	struct insn_mask last_mask; /* of the last instruction */
	uint8_t thread_sp;	/* M-profile: the register that it copies to PSP, plus 1; 0: none */
	_Atomic uint8_t vector; /* enum vector */
	const uint8_t *sizes;	/* of every instruction */
	struct block *chain;	/* next with the same hash */
	struct node *_Atomic *more;
	struct node nodes[]; /* of the first vCPUs */
};

/* The kinds of exceptions that led to a block. */
enum vector { VECTOR_FAULT = 1, VECTOR_INTERRUPT = 2, VECTOR_UNEXPLAINED = 4 };

int block_open(void); /* 0, or -1 without memory */
/* NULL without memory. */
struct block *block_of(const struct qemu_plugin_tb *tb);
/* The node of a vCPU beyond block_cpus. NULL without memory. */
struct node *block_more(struct block *block, unsigned cpu);
/* The index of the instruction at `address`, or -1. */
int block_index(const struct block *block, uint64_t address);
/* Whether the last instruction of a block can lead to an address. */
bool block_leads_to(const struct block *block, uint64_t address);

extern unsigned block_cpus;	/* vCPUs whose nodes are in the block */
extern unsigned block_max_cpus; /* vCPUs with nodes */

static inline struct node *block_node(struct block *block, unsigned cpu)
{
	return cpu < block_cpus ? &block->nodes[cpu] : block_more(block, cpu);
}

/* Whether the code says which blocks can follow. */
static inline bool block_is_direct(const struct block *block)
{
	return block->flow == WIRE_FLOW_ON || block->flow == WIRE_FLOW_WAIT ||
	       block->flow == WIRE_FLOW_JUMP || block->flow == WIRE_FLOW_COND ||
	       block->flow == WIRE_FLOW_CALL;
}

#endif

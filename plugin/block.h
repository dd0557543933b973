/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * block: what QEMU translates and runs at a stretch, as the trace sees it. Two translations that mean
 * the same are one block, so that there are only as many as there is code; they live until the
 * process ends. What a vCPU learns of a block is in a node of its own, which only the thread that
 * runs this vCPU touches.
 */
#ifndef KSCOPE_PLUGIN_BLOCK_H
#define KSCOPE_PLUGIN_BLOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "insn.h"

struct qemu_plugin_tb;

struct node {
	struct wire_block wire; /* what the reader knows, too */
	uint32_t dictionary;	/* the one that it is defined in, with this id */
	uint32_t id;
	struct block *block;
};

struct block {
	uint64_t start, target;
	uint32_t size;
	uint16_t count;
	uint8_t flow, flags;
	uint8_t last;		/* size of the last instruction */
	_Atomic uint8_t vector; /* enum vector */
	const uint8_t *sizes;	/* of every instruction */
	struct block *chain;	/* of the same hash */
	struct node *_Atomic *more;
	struct node nodes[]; /* of the first vCPUs */
};

/* What is known of a block that exceptions led to. A bit each. */
enum vector { VECTOR_FAULT = 1, VECTOR_INTERRUPT = 2 };

int block_open(void); /* 0, or -1 without memory */
/* NULL without memory. */
struct block *block_of(const struct qemu_plugin_tb *tb);
/* The slow way to a node; NULL without memory. */
struct node *block_more(struct block *block, unsigned cpu);
/* How many instructions are before `address`; -1 if none begins there. */
int block_index(const struct block *block, uint64_t address);

extern unsigned block_cpus; /* that have their node in the block */

static inline struct node *block_node(struct block *block, unsigned cpu)
{
	return cpu < block_cpus ? &block->nodes[cpu] : block_more(block, cpu);
}

#endif

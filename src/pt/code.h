/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * code: x86 code that was mapped somewhere, as blocks that end with a branch. Each block is decoded
 * once, when a trace first reaches it. Addresses are offsets from the start of the code, so all
 * processes that map a file share its blocks.
 *
 * Several threads may look up blocks at the same time. Blocks stay until the code is released.
 */
#ifndef KSCOPE_PT_CODE_H
#define KSCOPE_PT_CODE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum ipt_flow_kind {
	IPT_ON,	  /* to the next block: this one was too long, or what follows changes */
	IPT_JUMP, /* to `target` */
	IPT_COND, /* to `target`, or on */
	IPT_CALL, /* to `target` */
	/* A packet tells the target of the others; for a return, one bit if the call is known. */
	IPT_RETURN,
	IPT_JUMP_ANY,
	IPT_CALL_ANY,
	IPT_ENTER,   /* to the kernel: a system call or a software interrupt */
	IPT_LEAVE,   /* the return from an exception or a system call */
	IPT_NOTHING, /* no code is known here, or it is not an instruction */
};

struct ipt_block {
	struct ipt_block *taken,
		*fall;		 /* of the same code; NULL: unknown, elsewhere, or it changes */
	struct ipt_block *other; /* the next one with the same hash */
	uint64_t start;
	uint64_t target;
	uint32_t size;
	uint16_t insns;			  /* with the last one */
	uint8_t last;			  /* the size of the last instruction */
	uint8_t kind;			  /* enum ipt_flow_kind */
	bool wide;			  /* 64-bit code */
	bool leaves;			  /* the target is not known to be in the same function */
	bool taken_changes, fall_changes; /* the successor must be looked up by time */
};

static inline uint64_t ipt_block_next(const struct ipt_block *b)
{
	return b->start + b->size;
}

static inline uint64_t ipt_block_branch(const struct ipt_block *b)
{
	return b->start + b->size - b->last;
}

/* Where bytes of code come from. Called by several threads at a time. */
struct ipt_bytes {
	/* Copies up to `size` bytes at an offset of the code. Returns how many; 0: not known. */
	size_t (*read)(const void *data, uint64_t offset, uint8_t *bytes, size_t size);
	/* Optional: whether two offsets are in the same function. */
	bool (*same)(const void *data, uint64_t a, uint64_t b);
	const void *data;
};

/* Addresses whose code changes. */
struct ipt_hole {
	uint64_t start, last; /* both inclusive */
};

struct ipt_holes { /* sorted, disjoint */
	const struct ipt_hole *all;
	size_t nr;
};

struct ipt_code {
	struct ipt_bytes bytes;
	uint64_t len;		       /* instructions begin before this */
	uint64_t beyond;	       /* bytes that can be read after it */
	bool passing;		       /* other code takes its place at times */
	const struct ipt_holes *holes; /* NULL: none */
	uint64_t address;	       /* of the first byte, if there are holes */
	struct ipt_block **buckets;    /* NULL: nothing of it has run yet */
	size_t mask;
	pthread_mutex_t lock; /* for adding a block */
	struct ipt_chunk *chunks;
	size_t nr;
	struct ipt_block nothing; /* in place of too many blocks */
};

#define IPT_MAX_BLOCKS ((size_t)8 << 20) /* of one code; further blocks are IPT_NOTHING */

#define IPT_LONGEST_INSN 15 /* bytes */

/* The struct must not move. */
void ipt_code_init(struct ipt_code *code, struct ipt_bytes bytes, uint64_t len, uint64_t beyond);
void ipt_code_release(struct ipt_code *code);
/* The hole at an address, or the first one after it; NULL: there is none. */
const struct ipt_hole *ipt_hole_from(const struct ipt_holes *holes, uint64_t address);
/* The block that begins at an offset. Never NULL. */
struct ipt_block *ipt_code_find(struct ipt_code *code, uint64_t offset, bool wide);
/*
 * How many instructions of a block are before an offset. -1: none begins there. The end of the block is
 * such an offset, too.
 */
int ipt_block_before(const struct ipt_code *code, const struct ipt_block *b, uint64_t offset);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * trace: the codes of Chunk.trace, and the rule by which writer and reader learn the usual
 * successors of a block. README.md specifies both. Freestanding: no library, no allocation.
 *
 * Writer and reader keep a struct wire_block for each block and a struct wire_calls for each cpu, and
 * call the functions below for the same steps. So both learn the same successors, and one bit is
 * enough for a step to one of them.
 */
#ifndef KSCOPE_WIRE_TRACE_H
#define KSCOPE_WIRE_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The first byte of a code. 0x01 to 0x7f: that many words of 64 steps; 0x81 to 0xbf: 1 to 63 steps. */
enum wire_trace_code {
	WIRE_TRACE_WORDS_MAX = 0x7f,
	WIRE_TRACE_STEPS = 0x80,
	WIRE_TRACE_GO = 0xc0,
	WIRE_TRACE_NEW = 0xc1,
	WIRE_TRACE_SHORT = 0xc2,
	WIRE_TRACE_TRAP = 0xc3,
	WIRE_TRACE_TIME = 0xc4,
	WIRE_TRACE_STATE = 0xc5,
	WIRE_TRACE_BEGIN = 0xc6,
	WIRE_TRACE_END = 0xc7,
	WIRE_TRACE_SAMPLE = 0xc8,
	WIRE_TRACE_LEAVE = 0xc9,
	WIRE_TRACE_MASK = 0xca,
};

/* Whether a cpu takes interrupts at its current level. */
enum wire_mask {
	WIRE_MASK_SAME = 0, /* as before, or as when that level last ran */
	WIRE_MASK_ON = 1,   /* interrupts are on */
	WIRE_MASK_OFF = 2,
	WIRE_MASK_UNKNOWN = 3
};

/*
 * The byte of a trap: whether the return address follows, the interrupted level, and whether
 * interrupts were on there: an enum wire_mask.
 */
enum { WIRE_TRAP_RESUME = 1, WIRE_TRAP_LEVEL_SHIFT = 1, WIRE_TRAP_MASK_SHIFT = 3 };
/* The byte of a state: the values that follow, in this order, and an enum wire_mask. */
enum {
	WIRE_STATE_SP = 1,
	WIRE_STATE_SPACE = 2,
	WIRE_STATE_LEVEL = 4,
	WIRE_STATE_SHIFT = 8,
	WIRE_STATE_LEFT = 16,
	WIRE_STATE_MASK_SHIFT = 5
};
/* The byte of a begin. */
enum { WIRE_BEGIN_GOES_ON = 1, WIRE_BEGIN_EMPTY = 2 };

/* How control leaves a block. */
enum wire_flow {
	WIRE_FLOW_ON = 0,	/* to the next address */
	WIRE_FLOW_JUMP = 1,	/* to `target` */
	WIRE_FLOW_COND = 2,	/* to `target`, or on */
	WIRE_FLOW_JUMP_ANY = 3, /* to an address in a register or in memory */
	WIRE_FLOW_CALL = 4,	/* to `target`, which returns */
	WIRE_FLOW_CALL_ANY = 5, /* to an address in a register or in memory, which returns */
	WIRE_FLOW_RETURN = 6,
	WIRE_FLOW_ENTER = 7, /* by a system call, or an instruction that traps */
	WIRE_FLOW_LEAVE = 8, /* by the return from an exception */
	WIRE_FLOW_WAIT = 9,  /* on, after waiting for an interrupt */
	WIRE_FLOW_KINDS = 10
};

enum wire_block_flag {
	WIRE_BLOCK_MAYBE = 1, /* the branch is conditional: control may go on instead */
	WIRE_BLOCK_STATE = 2, /* the block may switch the stack or the address space */
	WIRE_BLOCK_STACK = 4, /* the definition says by how much the stack pointer moves */
	WIRE_BLOCK_MASK =
		8, /* the definition says which instructions switch interrupts on or off */
};

/*
 * The byte of a definition with flag MASK has an enum wire_mask for an instruction inside the block, and
 * above it one for the last instruction. Of the last one, UNKNOWN means: on, unless a code `mask` says
 * otherwise.
 */
#define WIRE_MASK_BITS 3
#define WIRE_MASK_LAST_SHIFT 2

/* Stands for an unknown change of the stack pointer; writers write no other odd number. */
#define WIRE_STACK_UNKNOWN 1

/* The byte of a definition with flow and flags. */
#define WIRE_FLOW_MASK 15
#define WIRE_FLAGS_SHIFT 4

/* Limits. Readers treat larger values as damage. */
#define WIRE_BLOCKS_MAX (4u << 20)     /* blocks at a time */
#define WIRE_BLOCK_COUNT_MAX 65535     /* instructions of a block */
#define WIRE_BLOCK_SIZE_MAX (1u << 20) /* bytes of a block */
#define WIRE_STACK_MAX (1 << 30)       /* bytes by which a block moves the stack pointer */

#define WIRE_CALLS 256

struct wire_block {
	/* The usual successors, NULL at first. Of a call: the callee, and the block it returns to. */
	struct wire_block *next[2];
	uint64_t start, end;
	uint16_t count;	     /* instructions */
	uint8_t flow, flags; /* enum wire_flow, enum wire_block_flag */
	uint16_t mask_at;    /* instructions up to the one inside the block that changes the mask */
	uint8_t mask;	     /* the byte of the definition */
};

/* The calls that have not returned: a stack in which a new call may replace the oldest one. */
struct wire_calls {
	struct wire_block *at[WIRE_CALLS];
	uint32_t depth; /* may wrap around */
};

static inline bool wire_flow_has_target(unsigned flow)
{
	return flow == WIRE_FLOW_JUMP || flow == WIRE_FLOW_COND || flow == WIRE_FLOW_CALL;
}

/* The encoding of signed numbers, in which small ones of both signs are short. */
static inline uint64_t wire_zigzag(uint64_t value)
{
	return value << 1 ^ -(value >> 63);
}

static inline uint64_t wire_unzigzag(uint64_t value)
{
	return value >> 1 ^ -(value & 1);
}

static inline void wire_push_call(struct wire_calls *calls, struct wire_block *call)
{
	calls->at[calls->depth++ % WIRE_CALLS] = call;
}

/* NULL: the call is unknown. */
static inline struct wire_block *wire_pop_call(struct wire_calls *calls)
{
	struct wire_block **top = &calls->at[--calls->depth % WIRE_CALLS], *call = *top;

	*top = NULL;
	return call;
}

/*
 * For the writer: the bit that encodes a step, or -1 if the step needs a go or new. Steps
 * from blocks with flag MAYBE or STATE, and from ENTER and LEAVE, always need one; for others, the flow of
 * `from` selects one of the next three functions.
 */
static inline int wire_next_bit(const struct wire_block *from, const struct wire_block *to)
{
	int bit = to != from->next[0];

	return to != from->next[bit] ? -1 : bit;
}

static inline int wire_call_bit(struct wire_calls *calls, struct wire_block *from,
				const struct wire_block *to)
{
	if (to != from->next[0])
		return -1;
	wire_push_call(calls, from);
	return 0;
}

static inline int wire_return_bit(struct wire_calls *calls, const struct wire_block *from,
				  const struct wire_block *to)
{
	const struct wire_block *call = calls->at[(calls->depth - 1) % WIRE_CALLS];
	bool bit = !call || to != call->next[1];

	if (bit && to != from->next[1])
		return -1;
	wire_pop_call(calls);
	return bit;
}

static inline int wire_step_bit(struct wire_calls *calls, struct wire_block *from,
				const struct wire_block *to)
{
	if (from->flags & (WIRE_BLOCK_MAYBE | WIRE_BLOCK_STATE))
		return -1;
	switch (from->flow) {
	case WIRE_FLOW_CALL:
	case WIRE_FLOW_CALL_ANY: return wire_call_bit(calls, from, to);
	case WIRE_FLOW_RETURN: return wire_return_bit(calls, from, to);
	case WIRE_FLOW_ENTER:
	case WIRE_FLOW_LEAVE: return -1;
	default: return wire_next_bit(from, to);
	}
}

/* For the reader: the block that a bit leads to, or NULL if the trace is damaged. */
static inline struct wire_block *wire_step(struct wire_calls *calls, struct wire_block *from,
					   bool bit)
{
	const struct wire_block *call;

	switch (from->flow) {
	case WIRE_FLOW_CALL:
	case WIRE_FLOW_CALL_ANY: wire_push_call(calls, from); return bit ? NULL : from->next[0];
	case WIRE_FLOW_RETURN:
		call = wire_pop_call(calls);
		if (bit)
			return from->next[1];
		return call ? call->next[1] : NULL;
	default: return from->next[bit];
	}
}

/*
 * For both: call this for each go and new that has no short, trap, leave or begin before it. moved: its
 * state has WIRE_STATE_SHIFT.
 */
static inline void wire_learn(struct wire_calls *calls, struct wire_block *from,
			      struct wire_block *to, bool moved)
{
	bool keep = !moved && !(to->flags & WIRE_BLOCK_STATE);
	struct wire_block *call;

	if (from->flags & WIRE_BLOCK_MAYBE && to->start == from->end)
		return; /* the branch was not taken */
	switch (from->flow) {
	case WIRE_FLOW_CALL:
	case WIRE_FLOW_CALL_ANY:
		wire_push_call(calls, from);
		if (keep)
			from->next[0] = to;
		return;
	case WIRE_FLOW_RETURN:
		call = wire_pop_call(calls);
		if (!call || call->end != to->start)
			call = from;
		if (keep)
			call->next[1] = to;
		return;
	default:
		if (!keep)
			return;
		from->next[1] = from->next[0];
		from->next[0] = to;
	}
}

#endif

// SPDX-License-Identifier: GPL-2.0-or-later
#include "block.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "api.h"
#include "regs.h"

#define CPUS_INSIDE 8
#define THREADS_MAX 256 /* of a program, whose number of threads is unknown */
#define BUCKETS_FIRST 65536
#define INSN_MAX 16 /* bytes */
#define COUNT_MAX 1024

_Static_assert(COUNT_MAX <= WIRE_BLOCK_COUNT_MAX && COUNT_MAX * INSN_MAX <= WIRE_BLOCK_SIZE_MAX,
	       "readers refuse larger blocks");

unsigned block_cpus, block_max_cpus;

static enum insn_set set;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct block **buckets;
static size_t n_buckets, n_blocks;

/* A block before the search for an equal one. */
struct draft {
	uint8_t sizes[COUNT_MAX];
	struct block block; /* without nodes */
};

int block_open(void)
{
	set = insn_set_of(api.arch);
	block_max_cpus = api.max_cpus ? api.max_cpus : THREADS_MAX;
	block_cpus = block_max_cpus < CPUS_INSIDE ? block_max_cpus : CPUS_INSIDE;
	n_buckets = BUCKETS_FIRST;
	buckets = calloc(n_buckets, sizeof(struct block *));
	return buckets ? 0 : -1;
}

/* QEMU does not say whether a block is Arm or Thumb code; it never is both. */
static enum insn_set set_of(const struct qemu_plugin_tb *tb, size_t count)
{
	if (set != INSN_ARM)
		return set;
	if (regs_is_m_profile())
		return INSN_THUMB;
	for (size_t i = 0; i < count; i++) {
		struct qemu_plugin_insn *insn = api.tb_get_insn(tb, i);
		uint8_t bytes[4] = { 0 };

		if (api.insn_size(insn) == 2 || api.insn_vaddr(insn) & 2)
			return INSN_THUMB;
		api_insn_data(insn, bytes, sizeof(bytes));
		if (bytes[1] >> 3 < 0x1d || bytes[3] >> 4 == 14)
			return INSN_ARM; /* cannot be a 32-bit Thumb instruction */
	}
	return INSN_THUMB;
}

/*
 * The size of an instruction. Before the end of a page, older QEMUs also count the first half of the
 * next Thumb instruction, which they read to see whether it crosses the page.
 */
static size_t size_of(enum insn_set decode, const uint8_t *bytes, size_t size)
{
	if (decode != INSN_THUMB || size < 4)
		return size;
	return bytes[1] >> 3 < 0x1d ? 2 : 4;
}

static void add_move(struct block_move *move, const struct insn *insn)
{
	/* The instruction that enters the kernel may switch the stack, but only for the kernel. */
	move->unknown |= insn->stack == INSN_STACK_UNKNOWN && insn->flow != WIRE_FLOW_ENTER;
	move->words += insn->words;
	move->bytes += insn->bytes;
}

/* Adds an instruction's effect on the stack pointer. */
static void add_stack(struct block *block, const struct insn *insn, const struct insn *before)
{
	bool replaces =
		insn->stack == INSN_STACK_REPLACED || insn->stack == INSN_STACK_REPLACED_HIGH;

	if (insn->mode != INSN_MODE_ANY)
		block->mode = insn->mode;
	block->keeps_sp = insn->stack == INSN_STACK_MOVES && !insn->words && !insn->bytes;
	if (replaces) {
		block->replaces = true;
		block->after = (struct block_move){ 0 };
	} else if (!block->replaces) {
		add_move(&block->move, insn);
	} else if (before->stack != INSN_STACK_REPLACED_HIGH) {
		add_move(&block->after, insn);
	}
}

/*
 * Adds how an instruction switches interrupts on or off. QEMU ends a block after most such instructions; if
 * there are several before the last one, only the first counts, unless they differ.
 */
static void add_mask(struct block *block, const struct insn *insn)
{
	unsigned inside = block->last_mask.mask;

	if (inside && !block->mask_at) {
		block->mask_at = block->count;
		block->mask = (uint8_t)inside;
	} else if (inside && inside != block->mask) {
		block->mask = WIRE_MASK_UNKNOWN;
	}
	block->last_mask = insn->mask;
}

/* M-profile: the source of msr psp, plus 1, or 0 for any other instruction. */
static uint8_t thread_sp_of(enum insn_set decode, const uint8_t *bytes, size_t size)
{
	if (decode != INSN_THUMB || size != 4 || bytes[1] != 0xf3 || bytes[0] >> 4 != 8 ||
	    bytes[3] != 0x88 || bytes[2] != 9)
		return 0;
	return (bytes[0] & 15) + 1;
}

static bool draft_block(struct draft *draft, const struct qemu_plugin_tb *tb)
{
	struct block *block = &draft->block;
	size_t count = api.tb_n_insns(tb);
	enum insn_set decode = set_of(tb, count);
	struct insn insn = { .flow = WIRE_FLOW_JUMP_ANY, .stack = INSN_STACK_UNKNOWN };
	struct insn before = { 0 };
	unsigned ahead = 0; /* conditional instructions */

	if (!count || count > COUNT_MAX)
		return false;
	*block = (struct block){ .start = api.tb_vaddr(tb) };
	for (size_t i = 0; i < count; i++) {
		const struct qemu_plugin_insn *handle = api.tb_get_insn(tb, i);
		uint8_t bytes[INSN_MAX] = { 0 };
		size_t got = api_insn_data(handle, bytes, sizeof(bytes));
		size_t size = size_of(decode, bytes, api.insn_size(handle));

		draft->sizes[i] = (uint8_t)size;
		if (decode != INSN_OTHER)
			insn_decode(decode, block->start + block->size, bytes,
				    got < size ? got : size, &insn);
		if (ahead) {
			insn_make_conditional(&insn);
			ahead--;
		} else {
			ahead = insn.ahead;
		}
		add_stack(block, &insn, &before);
		add_mask(block, &insn);
		before = insn;
		block->size += (uint32_t)size;
		block->flags |= insn.flags & WIRE_BLOCK_STATE;
		block->last = (uint8_t)size;
		block->thread_sp = thread_sp_of(decode, bytes, size);
		block->count++;
		/* QEMU also translates what follows vmmcall, or wfi on RISC-V, but never runs it. */
		if ((insn.flow == WIRE_FLOW_ENTER || insn.flow == WIRE_FLOW_WAIT) &&
		    !(insn.flags & WIRE_BLOCK_MAYBE))
			break;
	}
	block->mask |= (uint8_t)(block->last_mask.mask << WIRE_MASK_LAST_SHIFT);
	block->thumb = decode == INSN_THUMB;
	block->flow = (uint8_t)insn.flow;
	block->repeats = insn.repeats;
	block->flags |= (uint8_t)insn.flags;
	block->target = insn.target;
	return true;
}

static uint64_t mix(uint64_t hash, uint64_t value)
{
	hash = (hash ^ value) * 0x9e3779b97f4a7c15ull;
	return hash ^ hash >> 29;
}

static uint64_t hash_block(const struct block *block)
{
	return mix(mix(mix(0, block->start), block->size), block->target ^ block->flow);
}

static bool same_move(const struct block_move *a, const struct block_move *b)
{
	return a->bytes == b->bytes && a->words == b->words && a->unknown == b->unknown;
}

static bool same(const struct block *a, const struct block *b, const uint8_t *sizes)
{
	return a->start == b->start && a->target == b->target && a->size == b->size &&
	       a->count == b->count && a->flow == b->flow && a->flags == b->flags &&
	       a->mask == b->mask && a->mask_at == b->mask_at &&
	       !memcmp(&a->last_mask, &b->last_mask, sizeof(a->last_mask)) && a->mode == b->mode &&
	       a->replaces == b->replaces && same_move(&a->move, &b->move) &&
	       same_move(&a->after, &b->after) && !memcmp(a->sizes, sizes, a->count);
}

static enum way way_of(const struct block *block)
{
	if (block->flags & (WIRE_BLOCK_MAYBE | WIRE_BLOCK_STATE))
		return WAY_SLOW;
	switch (block->flow) {
	case WIRE_FLOW_CALL: return WAY_CALL;
	case WIRE_FLOW_JUMP_ANY: return WAY_JUMP_ANY;
	case WIRE_FLOW_CALL_ANY: return WAY_CALL_ANY;
	case WIRE_FLOW_RETURN: return WAY_RETURN;
	case WIRE_FLOW_ENTER:
	case WIRE_FLOW_LEAVE: return WAY_SLOW;
	default: return block->last_mask.mask == WIRE_MASK_UNKNOWN ? WAY_MASK : WAY_NEXT;
	}
}

static void *allocate(size_t size)
{
	size_t rounded = (size + _Alignof(struct node) - 1) & ~(_Alignof(struct node) - 1);
	void *memory = aligned_alloc(_Alignof(struct node), rounded);

	return memory ? memset(memory, 0, rounded) : NULL;
}

static void init_node(struct node *node, struct block *block)
{
	node->wire.start = block->start;
	node->wire.end = block->start + block->size;
	node->wire.count = block->count;
	node->wire.flow = block->flow;
	node->wire.flags = block->flags;
	node->wire.mask = block->mask;
	node->wire.mask_at = block->mask_at;
	node->block = block;
	node->way = way_of(block);
}

static struct block *keep(const struct draft *draft)
{
	size_t bytes = sizeof(struct block) + block_cpus * sizeof(struct node);
	uint8_t *memory = allocate(bytes + draft->block.count);
	struct block *block = (struct block *)(void *)memory;

	if (!block)
		return NULL;
	*block = draft->block;
	memcpy(memory + bytes, draft->sizes, block->count);
	block->sizes = memory + bytes;
	for (unsigned i = 0; i < block_cpus; i++)
		init_node(&block->nodes[i], block);
	return block;
}

static void grow(void)
{
	size_t wanted = n_buckets * 2;
	struct block **bigger = calloc(wanted, sizeof(struct block *));

	if (!bigger)
		return; /* chains only get longer */
	for (size_t i = 0; i < n_buckets; i++) {
		for (struct block *block = buckets[i], *next; block; block = next) {
			struct block **bucket = &bigger[hash_block(block) & (wanted - 1)];

			next = block->chain;
			block->chain = *bucket;
			*bucket = block;
		}
	}
	free(buckets);
	buckets = bigger;
	n_buckets = wanted;
}

static struct block *find_or_keep(const struct draft *draft)
{
	uint64_t hash = hash_block(&draft->block);
	struct block *block = buckets[hash & (n_buckets - 1)];

	while (block && !same(block, &draft->block, draft->sizes))
		block = block->chain;
	if (block)
		return block;
	block = keep(draft);
	if (!block)
		return NULL;
	if (++n_blocks > n_buckets)
		grow();
	block->chain = buckets[hash & (n_buckets - 1)];
	buckets[hash & (n_buckets - 1)] = block;
	return block;
}

struct block *block_of(const struct qemu_plugin_tb *tb)
{
	struct draft draft;
	struct block *block;

	if (!draft_block(&draft, tb))
		return NULL;
	pthread_mutex_lock(&lock);
	block = find_or_keep(&draft);
	pthread_mutex_unlock(&lock);
	return block;
}

struct node *block_more(struct block *block, unsigned cpu)
{
	struct node *node;

	if (cpu >= block_max_cpus)
		return NULL;
	if (!block->more) {
		pthread_mutex_lock(&lock);
		if (!block->more)
			block->more = calloc(block_max_cpus, sizeof(*block->more));
		pthread_mutex_unlock(&lock);
		if (!block->more)
			return NULL;
	}
	node = block->more[cpu];
	if (!node) {
		node = allocate(sizeof(*node));
		if (!node)
			return NULL;
		init_node(node, block);
		block->more[cpu] = node;
	}
	return node;
}

int block_index(const struct block *block, uint64_t address)
{
	uint64_t at = block->start;

	for (int i = 0; i < block->count; i++) {
		if (at == address)
			return i;
		at += block->sizes[i];
	}
	return -1;
}

/* In real mode, jumps wrap around at the end of a segment. */
static bool is_target(const struct block *block, uint64_t address)
{
	return address == block->target ||
	       (address < BLOCK_REAL_MODE_END &&
		(address == block->target + 0x10000 || address + 0x10000 == block->target));
}

bool block_leads_to(const struct block *block, uint64_t address)
{
	uint64_t after = block->start + block->size;

	switch (block->flow) {
	case WIRE_FLOW_ON:
	case WIRE_FLOW_WAIT: return address == after;
	case WIRE_FLOW_COND: return address == after || is_target(block, address);
	case WIRE_FLOW_JUMP:
	case WIRE_FLOW_CALL:
		return is_target(block, address) ||
		       ((block->flags & WIRE_BLOCK_MAYBE || block->thumb) && address == after);
	default: return true;
	}
}

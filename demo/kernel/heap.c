// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * An allocator: free lists by power of two, refilled from one chunk of memory. It has no lock,
 * because only one task uses it.
 */
#include "kernel.h"

#define CLASSES 8 /* 16 to 2048 bytes */
#ifndef HEAP_SIZE
#define HEAP_SIZE (16 << 20)
#endif

struct block {
	size_t class;
	struct block *next; /* while it is free; memory begins here */
};

static uint8_t memory[HEAP_SIZE] __attribute__((aligned(16)));
static size_t used;
static struct block *free_blocks[CLASSES];

static NOINLINE struct block *carve(size_t class)
{
	struct block *block = (struct block *)(memory + used);
	size_t size = 16 + ((size_t)16 << class);

	if (used + size > sizeof(memory))
		panic("out of memory", used);
	used += size;
	block->class = class;
	return block;
}

NOINLINE void *kmalloc(size_t size)
{
	size_t class = 0;
	struct block *block;

	while (((size_t)16 << class) < size)
		class ++;
	if (class >= CLASSES)
		return NULL;
	block = free_blocks[class];
	if (block)
		free_blocks[class] = block->next;
	else
		block = carve(class);
	PROFILE_ALLOC(false, &block->next, size);
	return &block->next;
}

NOINLINE void kfree(void *pointer)
{
	struct block *block = (struct block *)((uint8_t *)pointer - offsetof(struct block, next));

	PROFILE_ALLOC(true, pointer, 0);
	block->next = free_blocks[block->class];
	free_blocks[block->class] = block;
}

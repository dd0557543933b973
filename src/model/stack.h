/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * stack: call stacks as a prefix tree from the root down. A stack is a handle; its parent is the
 * stack of its caller and has a smaller handle. 0 is the empty stack.
 */
#ifndef KSCOPE_MODEL_STACK_H
#define KSCOPE_MODEL_STACK_H

#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"

struct stack {
	uint32_t parent, frame;
	uint32_t child; /* the first child; 0: none */
};

struct stack_step {
	uint32_t frame, stack;
};

struct stacks {
	struct stack_step *path; /* the last stack of named frames, from the root */
	size_t nr_path, cap_path;
	struct stack *all;
	size_t nr, cap;
	struct hash index; /* (parent, frame) to stack; without first children, which most are */
	struct hash memo; /* digest of a raw chain to stack; a cache, emptied when it grows large */
	uint64_t asked, hits; /* of the memo */
};

void stacks_init(struct stacks *stacks);
void stacks_release(struct stacks *stacks);
uint32_t stack_push(struct stacks *stacks, uint32_t parent, uint32_t frame);

#endif

// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/stack.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static uint32_t add(struct stacks *stacks, uint32_t parent, uint32_t frame)
{
	GROW(stacks->all, stacks->nr + 1, stacks->cap);
	stacks->all[stacks->nr] = (struct stack){ .parent = parent, .frame = frame };
	return (uint32_t)stacks->nr++;
}

void stacks_init(struct stacks *stacks)
{
	memset(stacks, 0, sizeof(*stacks));
	add(stacks, 0, 0);
}

void stacks_release(struct stacks *stacks)
{
	free(stacks->all);
	free(stacks->path);
	hash_release(&stacks->index);
	hash_release(&stacks->memo);
	memset(stacks, 0, sizeof(*stacks));
}

uint32_t stack_push(struct stacks *stacks, uint32_t parent, uint32_t frame)
{
	uint32_t child = stacks->all[parent].child;
	uint32_t *handle;

	if (!child) {
		child = add(stacks, parent, frame);
		stacks->all[parent].child = child;
		return child;
	}
	if (stacks->all[child].frame == frame)
		return child;
	handle = hash_at(&stacks->index, (struct hash_key){ parent, frame });
	if (!*handle)
		*handle = add(stacks, parent, frame);
	return *handle;
}

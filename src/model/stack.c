// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/stack.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static void add(struct stacks *stacks, uint32_t parent, uint32_t frame)
{
	GROW(stacks->parent, stacks->nr + 1, stacks->cap_parent);
	GROW(stacks->frame, stacks->nr + 1, stacks->cap_frame);
	stacks->parent[stacks->nr] = parent;
	stacks->frame[stacks->nr] = frame;
	stacks->nr++;
}

void stacks_init(struct stacks *stacks)
{
	memset(stacks, 0, sizeof(*stacks));
	add(stacks, 0, 0);
}

void stacks_release(struct stacks *stacks)
{
	free(stacks->parent);
	free(stacks->frame);
	hash_release(&stacks->index);
	hash_release(&stacks->memo);
	memset(stacks, 0, sizeof(*stacks));
}

uint32_t stack_push(struct stacks *stacks, uint32_t parent, uint32_t frame)
{
	uint32_t *handle = hash_at(&stacks->index, (struct hash_key){ parent, frame });

	if (!*handle) {
		*handle = (uint32_t)stacks->nr;
		add(stacks, parent, frame);
	}
	return *handle;
}

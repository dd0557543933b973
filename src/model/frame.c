// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/frame.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

void frames_init(struct frames *frames, struct strtab *strings)
{
	memset(frames, 0, sizeof(*frames));
	frames->strings = strings;
	GROW(frames->all, 1, frames->cap);
	memset(&frames->all[0], 0, sizeof(frames->all[0]));
	frames->nr = 1;
}

void frames_release(struct frames *frames)
{
	free(frames->all);
	free(frames->symbols);
	hash_release(&frames->index);
	memset(frames, 0, sizeof(*frames));
}

uint32_t frame_intern(struct frames *frames, uint32_t image, uint64_t addr, uint8_t flags)
{
	struct hash_key key = { addr, (uint64_t)image << 8 | flags };
	uint32_t *handle = hash_at(&frames->index, key);

	if (*handle)
		return *handle;
	*handle = (uint32_t)frames->nr;
	GROW(frames->all, frames->nr + 1, frames->cap);
	frames->all[frames->nr] = (struct frame){ .addr = addr, .image = image, .flags = flags };
	return (uint32_t)frames->nr++;
}

uint32_t frame_named(struct frames *frames, uint32_t name, uint32_t binary, uint8_t flags)
{
	return frame_intern(frames, binary, name, flags | FRAME_NAMED);
}

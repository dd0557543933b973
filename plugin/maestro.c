// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * maestro: format=maestro, the format of Maestro's own plugin: u8 n, u64 frame[n], leaf first. It follows
 * frame pointers, so the kernel must have them.
 */
#include <string.h>

#include "api.h"
#include "sample.h"

#define FRAMES_MAX 64

/* The offsets of the return address and of the caller's frame pointer from the frame pointer, in words. */
static void frame_layout(int *address, int *next)
{
	*address = 1;
	*next = 0;
	if (!strncmp(api.arch, "riscv", 5)) {
		*address = -1;
		*next = -2;
	} else if (!strcmp(api.arch, "arm")) {
		*address = 0;
		*next = -1;
	}
}

static unsigned walk(const struct regs_view *view, const struct regs *regs, uint64_t *frames)
{
	uint64_t fp = regs->fp, address, next;
	int at_address, at_next;
	unsigned n = 0;

	frame_layout(&at_address, &at_next);
	frames[n++] = regs->pc;
	while (n < FRAMES_MAX && fp && !(fp & (regs->word - 1)) && regs->n) {
		int word = (int)regs->word;

		if (!regs_pointer(view, regs, fp + (uint64_t)(int64_t)(at_address * word),
				  &address) ||
		    !regs_pointer(view, regs, fp + (uint64_t)(int64_t)(at_next * word), &next) ||
		    !address)
			break;
		frames[n++] = address;
		if (next <= fp)
			break; /* frames of callers have higher addresses */
		fp = next;
	}
	return n;
}

/*
 * Drops samples in the first page: the format has no checksum, so readers treat such a leaf as damage.
 * It is 16-bit code of the firmware, relative to an unknown segment.
 */
void maestro_put(struct track *track, const struct regs_view *view, const struct regs *regs)
{
	uint64_t frames[FRAMES_MAX];
	unsigned n = walk(view, regs, frames);
	size_t size = 1 + n * sizeof(*frames);
	uint8_t *at = regs->pc < REGS_PAGE ? NULL : track_begin(track, size);
	struct wire w = wire_into(at, size);

	if (!at)
		return;
	wire_little(&w, n, 1);
	for (unsigned i = 0; i < n; i++)
		wire_little(&w, frames[i], 8);
	track->samples++;
	track_end(track, w.at);
}

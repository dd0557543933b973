// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * maestro: format=maestro, the raw data of Maestro's own plugin: u8 n, u64 frame[n], leaf first, by
 * frame pointers, which the kernel must have been built with.
 */
#include <string.h>

#include "api.h"
#include "sample.h"

#define FRAMES_MAX 64

/* Where, from the frame pointer, the return address and the caller's frame pointer lie, in words. */
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
			break; /* callers' frames lie above */
		fp = next;
	}
	return n;
}

/*
 * The format has no checks of its own, so its readers take a leaf in the first page for damage. It
 * is firmware's 16-bit code, relative to a segment that nobody knows.
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

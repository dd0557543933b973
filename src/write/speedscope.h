/* SPDX-License-Identifier: GPL-2.0-or-later */
/* speedscope: the frames that all profiles of a file share. */
#ifndef KSCOPE_WRITE_SPEEDSCOPE_H
#define KSCOPE_WRITE_SPEEDSCOPE_H

#include "base/buf.h"
#include "model/world.h"
#include "pass/tally.h"

struct speedscope_frame {
	uint32_t name, binary, file, line; /* handles; binary, file and line may be 0 */
	bool elsewhere;			   /* another binary has a function of this name */
};

struct speedscope_frames {
	struct world *world;		     /* borrowed */
	const struct tally_options *options; /* likewise: no_inline, lines */
	struct speedscope_frame *all;
	size_t nr, cap;
	struct hash index;
};

void speedscope_frames_release(struct speedscope_frames *frames);

/* These return the number of a frame: of a name alone, and of the outermost function at a place, which is not inlined. */
uint32_t speedscope_name(struct speedscope_frames *frames, const char *name);
uint32_t speedscope_function(struct speedscope_frames *frames, uint32_t place);
/* Appends the numbers of the functions at a place, the outermost first, with commas between them. */
void speedscope_functions(struct speedscope_frames *frames, uint32_t place, struct buf *to);
/* Appends the frames as a JSON array. */
void speedscope_frames_json(struct speedscope_frames *frames, struct buf *to);

#endif

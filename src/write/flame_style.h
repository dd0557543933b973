/* SPDX-License-Identifier: GPL-2.0-or-later */
/* flame_style: the style of a flame graph from the command line's options. */
#ifndef KSCOPE_WRITE_FLAME_STYLE_H
#define KSCOPE_WRITE_FLAME_STYLE_H

#include "pass/tally.h"
#include "write/flame_svg.h"

struct flame_options {
	struct tally_options tally; /* must be first: FLAME_OPTIONS() */
	bool icicle;
	const char *title, *subtitle, *notes;
	unsigned palette; /* 0: by the data, else enum flame_colors + 1 */
	double min_width; /* percent; 0: the default */
	uint64_t width;	  /* pixels; 0: fluid */
};

extern const struct option_table flame_table; /* into struct flame_options */

/* The options of a struct that has a struct flame_options as `member`. */
#define FLAME_OPTIONS(owner, member) \
	OPTION_USES(TALLY_OPTIONS(owner, member), { &flame_table, offsetof(owner, member) })

void flame_style_from(struct flame_style *style, const struct flame_options *options);

#endif

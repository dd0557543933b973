/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * flame_svg: draws a call tree as a flame graph. The SVG works without scripts, as in a README;
 * with them (flame.js) it zooms, searches and adapts to the window's width. The same tree and
 * style give the same bytes.
 */
#ifndef KSCOPE_WRITE_FLAME_SVG_H
#define KSCOPE_WRITE_FLAME_SVG_H

#include <stdbool.h>

#include "base/out.h"
#include "pass/tree.h"

enum flame_colors {
	FLAME_HOT,	   /* yellow to red, by name */
	FLAME_MEM,	   /* greens, by name */
	FLAME_KERNEL_USER, /* by enum tree_kind */
	FLAME_BY_BINARY,   /* a hue for each binary, shades by name */
};

enum flame_theme { FLAME_AUTO, FLAME_LIGHT, FLAME_DARK }; /* auto: the viewer's system theme */

/* All zero is a usable style. Strings are borrowed for the call and may be NULL. */
struct flame_style {
	const char *title;
	const char *subtitle; /* printed before the meaning of the widths */
	const char *notes;    /* a line under the graph */
	const char *unit;     /* of the widths: "samples" (the default), "bytes", "cycles" */
	enum flame_colors palette;
	enum flame_theme theme;
	bool icicle;	   /* the root on top */
	bool inverted;	   /* the tree was built from the leaves: mention it */
	bool differential; /* colours show the change in share from the tree's `before` values */
	bool negate; /* `before` is the newer profile: reverse the sign, so growth stays red */
	/* Drops frames with a smaller share; parents include their value. 0: the default. */
	double min_width_percent;
	unsigned width; /* pixels; 0: 1200, and scripts adapt it to the window */
};

#define FLAME_MIN_WIDTH_PERCENT 0.01

/* Call tree_finish() on `tree` first. Returns the sum of what is written, of all frames. */
uint64_t flame_svg(struct out *out, const struct tree *tree, const struct flame_style *style);

#endif

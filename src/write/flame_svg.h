/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * flame_svg: a call tree drawn as a flame graph. The picture stands without scripts, as in a
 * README; with them (flame.js) it zooms, searches and follows the window's width. Equal trees and
 * styles give equal bytes.
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

enum flame_theme { FLAME_AUTO, FLAME_LIGHT, FLAME_DARK }; /* auto: as the reader's system */

/* All zero is a usable style. Strings are borrowed for the call; NULL where there is none. */
struct flame_style {
	const char *title;
	const char *subtitle; /* stands before what the widths mean */
	const char *notes;    /* a line under the graph */
	const char *unit;     /* what a width counts: "samples" (the default), "bytes", "cycles" */
	enum flame_colors palette;
	enum flame_theme theme;
	bool icicle;	   /* the root on top */
	bool inverted;	   /* the tree was built from the leaves: say so */
	bool differential; /* colours compare with the tree's `before` side, by share of all */
	bool negate;	   /* the tree's own side is the older one: growth is still red */
	/* Frames of a smaller share are summed into their parent but not kept. 0: the default. */
	double min_width_percent;
	unsigned width; /* pixels; 0: 1200, and scripts follow the window */
};

#define FLAME_MIN_WIDTH_PERCENT 0.01

/* `tree` is finished. */
void flame_svg(struct out *out, const struct tree *tree, const struct flame_style *style);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * flame_color: the colour of a frame, 0xRRGGBB. It follows from the frame's name (or binary)
 * alone, so that a function looks the same in every picture. All are light enough for dark text.
 */
#ifndef KSCOPE_WRITE_FLAME_COLOR_H
#define KSCOPE_WRITE_FLAME_COLOR_H

#include <stddef.h>
#include <stdint.h>

#include "pass/tree.h"
#include "write/flame_svg.h"

#define FLAME_ROOT_COLOR 0xd5d9e0
#define FLAME_DIFF_STEPS 8

uint32_t flame_color(const struct tree *tree, const struct tree_node *node,
		     enum flame_colors palette);
uint32_t flame_kind_color(enum tree_kind kind); /* of the legend: the middle of its shades */
uint32_t flame_binary_color(const char *binary, size_t len); /* likewise */
/* step: -FLAME_DIFF_STEPS (shrank most) to FLAME_DIFF_STEPS (grew most) */
uint32_t flame_diff_color(int step);

#endif

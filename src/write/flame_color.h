/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * flame_color: the colour of a frame, 0xRRGGBB. It depends only on the frame's name (or binary),
 * so a function has the same colour in every graph. All are light enough for dark text.
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
/* The middle shade of a kind or a binary, for the legend. */
uint32_t flame_kind_color(enum tree_kind kind);
uint32_t flame_binary_color(const char *binary, size_t len);
/* step: -FLAME_DIFF_STEPS (shrank most) to FLAME_DIFF_STEPS (grew most) */
uint32_t flame_diff_color(int step);

#endif

// SPDX-License-Identifier: GPL-2.0-or-later
#include "write/flame_color.h"

#include <math.h>

#define SHADES 24

struct ramp {
	uint32_t from, middle, to;
};

static const struct ramp hot = { 0xffe08a, 0xfdb256, 0xf27e52 };
static const struct ramp mem = { 0xd3ecA0, 0x93d593, 0x55bda6 };
static const struct ramp kinds[TREE_KINDS] = {
	[TREE_PLAIN] = { 0xf8e4a0, 0xf3d883, 0xebc968 },
	[TREE_USER] = { 0xb5dcff, 0x94c9f8, 0x76b4ee },
	[TREE_KERNEL] = { 0xffc58a, 0xfca868, 0xf18c55 },
	[TREE_TASK] = { 0xd8dbe3, 0xcbcfd9, 0xbdc2ce },
};
static const struct ramp unknown_binary = { 0xdcdfe6, 0xcfd3dc, 0xc2c7d2 };

/* FNV-1a with a final mix. Do not change it: that would change everyone's colours. */
static uint32_t name_hash(const char *text, size_t len)
{
	uint32_t h = 2166136261u;

	for (size_t i = 0; i < len; i++)
		h = (h ^ (uint8_t)text[i]) * 16777619u;
	h ^= h >> 16;
	h *= 0x85ebca6bu;
	return h ^ h >> 13;
}

static double shade_of(uint32_t hash)
{
	return (double)(hash % SHADES) / (SHADES - 1);
}

static uint32_t blend(uint32_t a, uint32_t b, double t)
{
	uint32_t mixed = 0;

	for (int shift = 16; shift >= 0; shift -= 8) {
		double from = a >> shift & 255, to = b >> shift & 255;

		mixed |= (uint32_t)lround(from + (to - from) * t) << shift;
	}
	return mixed;
}

static uint32_t on_ramp(const struct ramp *ramp, double t)
{
	return t < 0.5 ? blend(ramp->from, ramp->middle, t * 2)
		       : blend(ramp->middle, ramp->to, t * 2 - 1);
}

static uint32_t from_hsl(double hue, double saturation, double lightness)
{
	double reach = saturation * fmin(lightness, 1 - lightness);
	uint32_t rgb = 0;

	for (int n = 0; n <= 8; n += 4) {
		double k = fmod((n ? 12 - n : 0) + hue / 30, 12);
		double value = lightness - reach * fmax(-1, fmin(fmin(k - 3, 9 - k), 1));

		rgb = rgb << 8 | (uint32_t)lround(value * 255);
	}
	return rgb;
}

static uint32_t binary_shade(const char *binary, size_t len, double shade)
{
	uint32_t hash;

	if (!len)
		return on_ramp(&unknown_binary, shade);
	hash = name_hash(binary, len);
	return from_hsl(hash % 45 * 8, 0.4 + hash / 45 % 3 * 0.2,
			0.80 - hash / 135 % 2 * 0.06 - 0.1 * shade);
}

uint32_t flame_binary_color(const char *binary, size_t len)
{
	return binary_shade(binary, len, 0.5);
}

uint32_t flame_kind_color(enum tree_kind kind)
{
	return kinds[kind].middle;
}

uint32_t flame_color(const struct tree *tree, const struct tree_node *node,
		     enum flame_colors palette)
{
	double shade = shade_of(
		name_hash(str_text(tree->names, node->name), str_len(tree->names, node->name)));
	uint32_t color;

	switch (palette) {
	case FLAME_MEM: return on_ramp(&mem, shade);
	case FLAME_KERNEL_USER:
		color = on_ramp(&kinds[node->kind < TREE_KINDS ? node->kind : TREE_PLAIN], shade);
		return node->inlined ? blend(color, 0xffffff, 0.4) : color;
	case FLAME_BY_BINARY:
		return binary_shade(str_text(tree->names, node->binary),
				    str_len(tree->names, node->binary), shade);
	default: return on_ramp(&hot, shade);
	}
}

uint32_t flame_diff_color(int step)
{
	double t = fabs((double)step) / FLAME_DIFF_STEPS;

	return blend(0xeeeef0, step > 0 ? 0xf4685c : 0x6aa3f5, t);
}

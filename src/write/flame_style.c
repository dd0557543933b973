// SPDX-License-Identifier: GPL-2.0-or-later
#include "write/flame_style.h"

#include <string.h>

#define KEEP_ALL 1e-12 /* --min-width 0; flame_svg() takes 0 as the default */

static const char *const palettes[] = {
	[FLAME_HOT] = "hot",
	[FLAME_MEM] = "mem",
	[FLAME_KERNEL_USER] = "kernel-user",
	[FLAME_BY_BINARY] = "by-binary",
};

int flame_style_from(struct flame_style *style, const struct options *options, struct err *err)
{
	*style = (struct flame_style){
		.title = options->title,
		.subtitle = options->subtitle,
		.notes = options->notes,
		.icicle = options->icicle,
		.inverted = options->inverted,
		.min_width_percent = options->min_width_given ? options->min_width + KEEP_ALL
							      : FLAME_MIN_WIDTH_PERCENT,
		.width = options->width,
	};
	if (!options->palette)
		return 0;
	for (size_t i = 0; i < sizeof(palettes) / sizeof(palettes[0]); i++) {
		if (!strcmp(palettes[i], options->palette)) {
			style->palette = (enum flame_colors)i;
			return 0;
		}
	}
	return err_set(err, ERR_USAGE,
		       "unknown palette '%s': use hot, mem, kernel-user or by-binary",
		       options->palette);
}

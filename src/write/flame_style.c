// SPDX-License-Identifier: GPL-2.0-or-later
#include "write/flame_style.h"

#define KEEP_ALL 1e-12 /* --min-width 0; flame_svg() takes 0 as the default */

static const char *const palettes[] = {
	"auto",
	[1 + FLAME_HOT] = "hot",
	[1 + FLAME_MEM] = "mem",
	[1 + FLAME_KERNEL_USER] = "kernel-user",
	[1 + FLAME_BY_BINARY] = "by-binary",
	NULL,
};

static int set_min_width(const struct option_row *row, void *field, const char *arg,
			 struct err *err)
{
	double *percent = field;

	if (option_percent(row, percent, arg, err) < 0)
		return -1;
	*percent += KEEP_ALL;
	return 0;
}

/* clang-format off: tables are read by the row. */
const struct option_table flame_table = {
	"Flame graphs (svg)",
	(const struct option_row[]){
		{ "icicle", 0, NULL, "draw the root at the top",
		  OPTION_FLAG(struct flame_options, icicle) },
		{ "title", 0, "TEXT", "set the title", OPTION_TEXT(struct flame_options, title) },
		{ "subtitle", 0, "TEXT", "add a line below the title",
		  OPTION_TEXT(struct flame_options, subtitle) },
		{ "notes", 0, "TEXT", "add a line below the graph",
		  OPTION_TEXT(struct flame_options, notes) },
		{ "palette", 0, "NAME",
		  "select the colours: auto (default), hot, mem, kernel-user or by-binary",
		  OPTION_WORD(struct flame_options, palette, palettes) },
		{ "colors", .same_as = "palette" },
		{ "min-width", 0, "PERCENT", "omit narrower frames (default 0.01)",
		  OPTION_SET(set_min_width, struct flame_options, min_width) },
		{ "width", 0, "PIXELS", "set the width of the picture (default: fit the window)",
		  OPTION_NUMBER(struct flame_options, width, 0, 100000) },
		{ 0 },
	},
};
/* clang-format on */

void flame_style_from(struct flame_style *style, const struct flame_options *options)
{
	*style = (struct flame_style){
		.title = options->title,
		.subtitle = options->subtitle,
		.notes = options->notes,
		.icicle = options->icicle,
		.inverted = options->tally.inverted,
		.min_width_percent =
			options->min_width ? options->min_width : FLAME_MIN_WIDTH_PERCENT,
		.width = (unsigned)options->width,
	};
	if (options->palette)
		style->palette = (enum flame_colors)(options->palette - 1);
}

// SPDX-License-Identifier: GPL-2.0-or-later
/* flame: a flame graph of the selected samples. */
#include <string.h>

#include "format.h"
#include "pass/tally.h"
#include "write/flame_style.h"
#include "write/flame_svg.h"

static int flame_open(struct writer *w)
{
	struct flame_style style;

	if (flame_style_from(&style, w->options, &w->err) < 0)
		return -1;
	tally_init(w->priv, w->world, tally_by_options(w->options));
	return 0;
}

static int flame_put(struct writer *w, const struct event *ev)
{
	tally_add(w->priv, ev);
	return 0;
}

static int flame_finish(struct writer *w)
{
	struct tally *tally = w->priv;
	bool weight = tally_counts_weight(tally, w->options, MEASURE_SAMPLES);
	struct tally_view view = { .options = w->options, .weight = weight };
	struct flame_style style;
	struct tree tree;

	if (flame_style_from(&style, w->options, &w->err) < 0)
		return -1;
	style.unit = tally_unit(tally, weight);
	if (!w->options->palette && weight && !strcmp(style.unit, "bytes"))
		style.palette = FLAME_MEM;
	tree_init(&tree, w->world->strings);
	/* The tree does not need nodes that are too narrow to draw. */
	view.min = (uint64_t)((double)tally_total(tally, weight) * style.min_width_percent / 100);
	tally_tree(tally, &tree, &view);
	tree_finish(&tree);
	flame_svg(w->out, &tree, &style);
	tree_release(&tree);
	return 0;
}

static void flame_close(struct writer *w)
{
	tally_release(w->priv);
}

const struct writer_ops write_flame = {
	.name = "svg",
	.about = "flame graph for a browser",
	.extension = ".svg",
	.needs = WRITER_TEXT,
	.next = "open it in a browser",
	.takes = EVENT_BIT(EVENT_SAMPLE),
	.priv_size = sizeof(struct tally),
	.open = flame_open,
	.put = flame_put,
	.finish = flame_finish,
	.close = flame_close,
};

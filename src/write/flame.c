// SPDX-License-Identifier: GPL-2.0-or-later
/* flame: a flame graph of the selected samples. */
#include <string.h>

#include "format.h"
#include "pass/tally.h"
#include "write/flame_style.h"
#include "write/flame_svg.h"

struct flame {
	struct flame_options options;
	struct tally tally;
};

static int flame_open(struct writer *w)
{
	struct flame *f = w->priv;

	tally_init(&f->tally, w->world, tally_by_options(&f->options.tally));
	return 0;
}

static int flame_put(struct writer *w, const struct event *ev)
{
	struct flame *f = w->priv;

	tally_add(&f->tally, ev);
	return 0;
}

static int flame_finish(struct writer *w)
{
	struct flame *f = w->priv;
	struct tally *tally = &f->tally;
	bool weight = tally_counts_weight(tally, &f->options.tally, MEASURE_SAMPLES);
	struct tally_view view = { .options = &f->options.tally, .weight = weight };
	struct flame_style style;
	struct tree tree;

	flame_style_from(&style, &f->options);
	style.unit = tally_unit(tally, weight);
	if (!f->options.palette && weight && !strcmp(style.unit, "bytes"))
		style.palette = FLAME_MEM;
	tree_init(&tree, w->world->strings);
	/* The tree does not need nodes that are too narrow to draw. */
	view.min = (uint64_t)((double)tally_total(tally, weight) * style.min_width_percent / 100);
	tally_tree(tally, &tree, &view);
	tree_finish(&tree);
	w->written = written_sum(weight, flame_svg(w->out, &tree, &style));
	tree_release(&tree);
	return 0;
}

static void flame_close(struct writer *w)
{
	struct flame *f = w->priv;

	tally_release(&f->tally);
}

const struct writer_ops write_flame = {
	.name = "svg",
	.about = "flame graph for a browser",
	.extension = ".svg",
	.needs = WRITER_TEXT,
	.next = "open it in a browser",
	.takes = EVENT_BIT(EVENT_SAMPLE),
	.options = FLAME_OPTIONS(struct flame, options),
	.priv_size = sizeof(struct flame),
	.open = flame_open,
	.put = flame_put,
	.finish = flame_finish,
	.close = flame_close,
};

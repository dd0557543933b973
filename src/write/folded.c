// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * folded: one stack per line, root;...;leaf COUNT, sorted by name. If a reader would take a line that
 * starts with # for a comment, a backslash comes first.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "format.h"
#include "pass/tally.h"

struct folded {
	struct tally_options options;
	struct tally tally;
};

static int folded_open(struct writer *w)
{
	struct folded *f = w->priv;

	tally_init(&f->tally, w->world, tally_by_options(&f->options));
	return 0;
}

static int folded_put(struct writer *w, const struct event *ev)
{
	struct folded *f = w->priv;

	tally_add(&f->tally, ev);
	return 0;
}

/* A semicolon would end the frame, a newline the stack: replace them. */
static void add_name(struct buf *line, const char *name, size_t len)
{
	size_t start = line->len;

	buf_add(line, name, len);
	for (char *c = line->data + start; c < line->data + line->len; c++) {
		if (*c == ';')
			*c = ':';
		else if ((unsigned char)*c < ' ')
			*c = ' ';
	}
	if (!len)
		buf_addc(line, '?');
}

/* The reader takes the backslash away; so lines with backslashes before a # get one, too. */
static bool needs_escape(const struct buf *line)
{
	size_t slashes = 0;

	while (slashes < line->len && line->data[slashes] == '\\')
		slashes++;
	if (slashes == line->len || line->data[slashes] != '#')
		return false;
	return slashes || line->len < 2 || line->data[1] == ' ' || line->data[1] == '#' ||
	       !memchr(line->data, ';', line->len);
}

/* Samples of which neither the task nor a frame is known have no name: they get that of report. */
static uint64_t write_nowhere(struct out *out, const struct tree_node *root)
{
	char line[40];

	if (root->self)
		out_write(out, line,
			  (size_t)snprintf(line, sizeof(line), "[no stack] %" PRIu64 "\n",
					   root->self));
	return root->self;
}

/* Depth first, without recursion: the input decides how deep stacks are. Returns the sum of the counts. */
static uint64_t write_tree(struct out *out, const struct tree *tree)
{
	struct buf line = { 0 };
	size_t *starts =
		xcalloc((size_t)tree->depth + 2, sizeof(*starts)); /* offset of each level's name */
	uint32_t node = tree->nodes[0].child;
	uint64_t sum = write_nowhere(out, &tree->nodes[0]);
	size_t depth = 0;

	while (node) {
		const struct tree_node *n = &tree->nodes[node];

		line.len = starts[depth];
		if (depth)
			buf_addc(&line, ';');
		add_name(&line, str_text(tree->names, n->name), str_len(tree->names, n->name));
		if (n->self) {
			size_t len = line.len;

			if (needs_escape(&line))
				out_write(out, "\\", 1);
			buf_addc(&line, ' ');
			buf_addu(&line, n->self);
			buf_addc(&line, '\n');
			out_write(out, line.data, line.len);
			line.len = len;
			sum += n->self;
		}
		if (n->child) {
			starts[++depth] = line.len;
			node = n->child;
			continue;
		}
		while (node && !tree->nodes[node].sibling) {
			node = tree->nodes[node].parent;
			depth--;
		}
		if (node)
			node = tree->nodes[node].sibling;
	}
	free(starts);
	buf_release(&line);
	return sum;
}

static int folded_finish(struct writer *w)
{
	struct folded *f = w->priv;
	struct tally_view view = {
		.options = &f->options,
		.weight = tally_counts_weight(&f->tally, &f->options, MEASURE_SAMPLES),
	};
	struct tree tree;

	tree_init(&tree, w->world->strings);
	tally_tree(&f->tally, &tree, &view);
	tree_finish(&tree);
	w->written = written_sum(view.weight, write_tree(w->out, &tree));
	tree_release(&tree);
	return 0;
}

static void folded_close(struct writer *w)
{
	struct folded *f = w->priv;

	tally_release(&f->tally);
}

const struct writer_ops write_folded = {
	.name = "folded",
	.about = "folded stacks, one per line, for flame graph tools",
	.extension = ".folded",
	.needs = WRITER_TEXT,
	.takes = EVENT_BIT(EVENT_SAMPLE),
	.options = OPTION_USES(TALLY_OPTIONS(struct folded, options)),
	.priv_size = sizeof(struct folded),
	.open = folded_open,
	.put = folded_put,
	.finish = folded_finish,
	.close = folded_close,
};

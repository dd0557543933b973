// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The file has two layers. Plain rectangles and texts show the initial view, with or without
 * scripts. <metadata>, which only flame.js reads, holds every kept frame in four or five
 * characters, so that zooming can show frames that were too narrow to draw at first:
 *
 *   names   every string once, one per line; the first is empty
 *   looks   (name, binary, kind * 2 + inlined, colour) of every distinct frame
 *   frames  in preorder: up * 4 + has hidden * 2 + has self, look, self?, hidden?, and in a
 *           differential graph always self and hidden of the other side. `up` is the number of
 *           levels to go up from the previous frame to find the parent. `hidden` sums the
 *           children that were dropped. flame.js computes the totals.
 *
 * Numbers are base 32, lowest digit first, in the characters from '?' (63) to '~' (126); 32 is
 * added to all digits but the last. None of these characters needs escaping.
 */
#include "write/flame_svg.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/text.h"
#include "flame_css.h"
#include "flame_js.h"
#include "write/flame_color.h"
#include "write/flame_text.h"

/* Pixels; add_settings() passes on what flame.js needs. */
#define DEFAULT_WIDTH 1200
#define MARGIN 12
#define HEADER 62
#define ROW 17
#define FRAME_HEIGHT 16
#define TEXT_PAD 4
#define TEXT_BASELINE 12
#define CELL 7.3	/* character width of the 12 px monospaced font; usually 7.2 */
#define TITLE_CELL 10.0 /* of the bold 17 px title, a safe estimate */
#define LINE_CELL 6.8	/* of the 12 px lines around the graph */
#define TOOLS_WIDTH 430
#define FOOTER_LINE 20
#define STATUS_HEIGHT 30
#define DRAW_MIN 0.3	/* narrower frames are not drawn */
#define OUTLINE_MIN 3.0 /* narrower frames have no outline */
#define LEGEND_BINARIES 8
#define FLUSH_AT ((size_t)64 << 10)

/* A kept frame; frames are in preorder. */
struct frame {
	uint32_t node;
	uint32_t look;
	uint32_t depth;
	uint64_t left;			/* in units of weight from the left edge */
	uint64_t hidden, before_hidden; /* totals of the dropped children */
};

struct drawing {
	struct out *out;
	struct buf buf;
	const struct tree *tree;
	const struct flame_style *style;
	const char *unit;
	unsigned width;
	uint64_t least;		/* frames with a smaller total are dropped */
	double greatest_change; /* of a share, in a differential graph */
	struct frame *frames;
	size_t nr, cap;
	uint64_t dropped;    /* dropped children of kept frames */
	uint64_t written;    /* the sum of what is in the data of the frames */
	uint32_t drawn_rows; /* in the initial view */
	struct hash looks;
	struct buf look_data;
	uint32_t nr_looks;
	uint32_t *name_ids; /* by handle; 0: none yet */
	struct buf names;
	uint32_t nr_names;
};

static void add_number(struct buf *buf, uint64_t value)
{
	char *start = buf_reserve(buf, 13), *at = start;

	for (; value >= 32; value >>= 5)
		*at++ = (char)(63 + 32 + (value & 31));
	*at++ = (char)(63 + value);
	*at = '\0';
	buf->len += (size_t)(at - start);
}

/* 12345 hundredths as "123.45", without trailing zeros. */
static void add_hundredths(struct buf *buf, uint64_t value)
{
	unsigned rest = (unsigned)(value % 100);

	buf_addu(buf, value / 100);
	if (!rest)
		return;
	buf_addc(buf, '.');
	buf_addc(buf, (char)('0' + rest / 10));
	if (rest % 10)
		buf_addc(buf, (char)('0' + rest % 10));
}

static void add_color(struct buf *buf, uint32_t rgb)
{
	buf_addf(buf, "#%06" PRIx32, rgb);
}

/* 1234567 as 1,234,567 */
static void add_grouped(struct buf *buf, uint64_t value)
{
	char digits[24];
	int len = snprintf(digits, sizeof(digits), "%" PRIu64, value);

	for (int i = 0; i < len; i++) {
		if (i && (len - i) % 3 == 0)
			buf_addc(buf, ',');
		buf_addc(buf, digits[i]);
	}
}

static void flush(struct drawing *d, size_t at_least)
{
	if (d->buf.len <= at_least)
		return;
	out_write(d->out, d->buf.data, d->buf.len);
	buf_clear(&d->buf);
}

static const struct tree_node *node_of(const struct drawing *d, uint32_t node)
{
	return &d->tree->nodes[node];
}

/* Choosing frames */

static double share(uint64_t part, uint64_t all)
{
	return all ? (double)part / (double)all : 0;
}

static double change_of(const struct drawing *d, const struct tree_node *node)
{
	const struct tree_node *root = node_of(d, 0);
	double change =
		share(node->total, root->total) - share(node->before_total, root->before_total);

	return d->style->negate ? -change : change;
}

/* The square root keeps small changes visible next to the greatest. */
static uint32_t color_of_change(const struct drawing *d, const struct tree_node *node)
{
	double change = change_of(d, node);
	int step = 0;

	if (d->greatest_change > 0)
		step = (int)lround(sqrt(fabs(change) / d->greatest_change) * FLAME_DIFF_STEPS);
	return flame_diff_color(change < 0 ? -step : step);
}

static uint32_t color_of(const struct drawing *d, uint32_t id)
{
	if (d->style->differential)
		return color_of_change(d, node_of(d, id));
	return id ? flame_color(d->tree, node_of(d, id), d->style->palette) : FLAME_ROOT_COLOR;
}

static void find_greatest_change(struct drawing *d)
{
	for (size_t i = 0; i < d->nr; i++) {
		double change = fabs(change_of(d, node_of(d, d->frames[i].node)));

		if (change > d->greatest_change)
			d->greatest_change = change;
	}
}

static uint32_t name_id(struct drawing *d, uint32_t handle)
{
	if (!handle)
		return 0;
	if (!d->name_ids[handle]) {
		d->name_ids[handle] = ++d->nr_names;
		buf_addc(&d->names, '\n');
		svg_escape(&d->names, str_text(d->tree->names, handle),
			   str_len(d->tree->names, handle));
	}
	return d->name_ids[handle];
}

static uint32_t look_of(struct drawing *d, uint32_t id)
{
	const struct tree_node *node = node_of(d, id);
	uint32_t flags = node->kind * 2u + !!node->inlined;
	/* The other fields imply the colour, except in a differential graph and at the root. */
	uint32_t color = d->style->differential || !id ? color_of(d, id) : 0;
	struct hash_key key = { (uint64_t)node->name << 32 | node->binary,
				(uint64_t)flags << 24 | color };
	uint32_t *place = hash_at(&d->looks, key);

	if (*place)
		return *place - 1;
	*place = ++d->nr_looks;
	add_number(&d->look_data, name_id(d, node->name));
	add_number(&d->look_data, name_id(d, node->binary));
	add_number(&d->look_data, flags);
	add_number(&d->look_data, color_of(d, id));
	return d->nr_looks - 1;
}

static uint64_t add(uint64_t a, uint64_t b)
{
	uint64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

static void keep(struct drawing *d, uint32_t node, uint32_t depth, uint64_t left)
{
	GROW(d->frames, d->nr + 1, d->cap);
	d->frames[d->nr++] = (struct frame){ .node = node, .depth = depth, .left = left };
}

/* The first of `id` and its later siblings that is wide enough. Sums the ones it drops. */
static uint32_t next_kept(struct drawing *d, uint32_t id, struct frame *parent)
{
	while (id && node_of(d, id)->total < d->least) {
		parent->hidden = add(parent->hidden, node_of(d, id)->total);
		parent->before_hidden = add(parent->before_hidden, node_of(d, id)->before_total);
		d->dropped++;
		id = node_of(d, id)->sibling;
	}
	return id;
}

/*
 * Depth first without recursion, since stacks may be very deep. open[] holds the frames from the
 * root to the current one, and the left edge of each one's next child.
 */
static void choose_frames(struct drawing *d)
{
	struct {
		size_t frame;
		uint64_t right;
	} *open = NULL;
	size_t cap = 0;
	uint32_t depth = 0, next;

	keep(d, 0, 0, 0);
	GROW(open, (size_t)d->tree->depth + 2, cap);
	open[0].frame = 0;
	open[0].right = 0;
	next = next_kept(d, node_of(d, 0)->child, &d->frames[0]);
	for (;;) {
		if (next) {
			uint64_t left = open[depth].right;

			open[depth].right = add(left, node_of(d, next)->total);
			depth++;
			open[depth].frame = d->nr;
			open[depth].right = left;
			keep(d, next, depth, left);
			next = next_kept(d, node_of(d, next)->child, &d->frames[d->nr - 1]);
		} else if (depth) {
			uint32_t done = d->frames[open[depth].frame].node;

			depth--;
			next = next_kept(d, node_of(d, done)->sibling,
					 &d->frames[open[depth].frame]);
		} else {
			break;
		}
	}
	free(open);
}

static void give_looks(struct drawing *d)
{
	if (d->style->differential)
		find_greatest_change(d);
	for (size_t i = 0; i < d->nr; i++)
		d->frames[i].look = look_of(d, d->frames[i].node);
}

/* Drawing */

struct extent {
	uint64_t left, width; /* in hundredths of a pixel */
};

static uint64_t to_hundredths(const struct drawing *d, uint64_t weight)
{
	return (uint64_t)(share(weight, node_of(d, 0)->total) * (d->width - 2 * MARGIN) * 100 +
			  0.5);
}

/* Rounds both edges, not the width, so that neighbours touch and children stay inside. */
static struct extent extent_of(const struct drawing *d, const struct frame *frame)
{
	uint64_t left = to_hundredths(d, frame->left);
	uint64_t right = to_hundredths(d, add(frame->left, node_of(d, frame->node)->total));

	return (struct extent){ left + MARGIN * 100, right - left };
}

static bool is_drawn(const struct drawing *d, const struct frame *frame)
{
	return share(node_of(d, frame->node)->total, node_of(d, 0)->total) *
		       (d->width - 2 * MARGIN) >=
	       DRAW_MIN;
}

static uint32_t row_top(const struct drawing *d, uint32_t depth)
{
	return ROW * (d->style->icicle ? depth : d->drawn_rows - 1 - depth);
}

static const char *label_of(const struct drawing *d, uint32_t node, size_t *len)
{
	uint32_t name = node_of(d, node)->name;

	if (!node && !name) {
		*len = 3;
		return "all";
	}
	*len = str_len(d->tree->names, name);
	return str_text(d->tree->names, name);
}

static void draw_frame(struct drawing *d, const struct frame *frame)
{
	struct extent at = extent_of(d, frame);

	buf_adds(&d->buf, "<rect x=\"");
	add_hundredths(&d->buf, at.left);
	buf_adds(&d->buf, "\" y=\"");
	buf_addu(&d->buf, row_top(d, frame->depth));
	buf_adds(&d->buf, "\" width=\"");
	add_hundredths(&d->buf, at.width);
	buf_addf(&d->buf, "\" height=\"%d\" fill=\"", FRAME_HEIGHT);
	add_color(&d->buf, color_of(d, frame->node));
	buf_adds(&d->buf, "\"/>\n");
}

static void draw_label(struct drawing *d, const struct frame *frame)
{
	struct extent at = extent_of(d, frame);
	double cells = ((double)at.width / 100 - 2 * TEXT_PAD) / CELL;
	size_t len;
	const char *text = label_of(d, frame->node, &len);

	if (cells < 3 && cells < (double)len)
		return;
	if (cells < 1)
		return;
	buf_adds(&d->buf, "<text x=\"");
	add_hundredths(&d->buf, at.left + TEXT_PAD * 100);
	buf_adds(&d->buf, "\" y=\"");
	buf_addu(&d->buf, row_top(d, frame->depth) + TEXT_BASELINE);
	buf_adds(&d->buf, "\">");
	svg_fit(&d->buf, text, len, (size_t)cells);
	buf_adds(&d->buf, "</text>\n");
}

enum layer { NARROW, WIDE, LABELS };

static void draw_layer(struct drawing *d, enum layer layer)
{
	for (size_t i = 0; i < d->nr; i++) {
		const struct frame *frame = &d->frames[i];

		if (!is_drawn(d, frame))
			continue;
		if (layer == LABELS)
			draw_label(d, frame);
		else if ((extent_of(d, frame).width >= OUTLINE_MIN * 100) == (layer == WIDE))
			draw_frame(d, frame);
		flush(d, FLUSH_AT);
	}
}

static void draw_frames(struct drawing *d)
{
	buf_addf(&d->buf, "<g class=\"graph\" transform=\"translate(0,%d)\">\n", HEADER);
	buf_adds(&d->buf, "<g class=\"narrow\">\n");
	draw_layer(d, NARROW);
	buf_adds(&d->buf, "</g>\n<g class=\"wide\">\n");
	draw_layer(d, WIDE);
	buf_adds(&d->buf,
		 "</g>\n<g class=\"labels\" font-family=\"monospace\" font-size=\"12\">\n");
	draw_layer(d, LABELS);
	buf_adds(&d->buf, "</g>\n</g>\n");
}

static void count_rows(struct drawing *d)
{
	for (size_t i = 0; i < d->nr; i++) {
		if (d->frames[i].depth >= d->drawn_rows && is_drawn(d, &d->frames[i]))
			d->drawn_rows = d->frames[i].depth + 1;
	}
}

/* Header, legend and notes */

/*
 * A line of text around the graph, shortened to fit the width without scripts. flame.js gets the
 * full text and measures it.
 */
static void add_line(struct drawing *d, const char *name, unsigned y, const struct buf *text)
{
	bool title = !strcmp(name, "title"), beside_tools = strcmp(name, "notes") != 0;
	double room = d->width - 2.0 * MARGIN - (beside_tools ? TOOLS_WIDTH : 0);
	double cells = room / (title ? TITLE_CELL : LINE_CELL);

	buf_addf(&d->buf, "<text class=\"%s\" x=\"%d\" y=\"%u\" data-full=\"", name, MARGIN, y);
	svg_escape(&d->buf, text->data, text->len);
	buf_adds(&d->buf, beside_tools ? "\" data-tools=\"1\">" : "\">");
	svg_fit(&d->buf, text->data, text->len, cells > 10 ? (size_t)cells : 10);
	buf_adds(&d->buf, "</text>\n");
}

static void add_subtitle(struct drawing *d)
{
	struct buf line = { 0 };

	if (d->style->subtitle && *d->style->subtitle)
		buf_addf(&line, "%s \xc2\xb7 ", d->style->subtitle);
	buf_adds(&line, "width: share of ");
	if (!strcmp(d->unit, "ns")) {
		text_duration(&line, node_of(d, 0)->total);
	} else {
		add_grouped(&line, node_of(d, 0)->total);
		buf_addf(&line, " %s", d->unit);
	}
	if (d->style->inverted)
		buf_adds(&line, ", merged from the leaves");
	if (d->style->differential) {
		buf_addf(&line, " \xc2\xb7 colour: change in share %s profile of ",
			 d->style->negate ? "until a later" : "since an earlier");
		add_grouped(&line, node_of(d, 0)->before_total);
	}
	add_line(d, "sub", 48, &line);
	buf_release(&line);
}

static const char *title_of(const struct drawing *d)
{
	if (d->style->title && *d->style->title)
		return d->style->title;
	return d->style->icicle ? "Icicle graph" : "Flame graph";
}

static void add_header(struct drawing *d)
{
	struct buf title = { 0 };

	buf_adds(&title, title_of(d));
	buf_adds(&d->buf, "<rect class=\"back\" width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n");
	add_line(d, "title", 28, &title);
	buf_release(&title);
	add_subtitle(d);
}

/* One swatch and its label; returns the x of the next one. */
static double add_swatch(struct drawing *d, double x, uint32_t color, const char *label, size_t len)
{
	if (x + 20 + (double)len * CELL > d->width)
		return x;
	buf_addf(&d->buf, "<rect x=\"%.1f\" y=\"3\" width=\"11\" height=\"11\" rx=\"2\" fill=\"",
		 x);
	add_color(&d->buf, color);
	buf_addf(&d->buf, "\"/><text x=\"%.1f\" y=\"13\">", x + 16);
	svg_escape(&d->buf, label, len);
	buf_adds(&d->buf, "</text>\n");
	return x + 16 + (double)len * CELL + 14;
}

static void add_diff_legend(struct drawing *d)
{
	int x = MARGIN + 92;

	buf_addf(&d->buf, "<text x=\"%d\" y=\"13\">smaller share</text>\n", MARGIN);
	for (int step = -FLAME_DIFF_STEPS; step <= FLAME_DIFF_STEPS; step += 2, x += 16) {
		buf_addf(&d->buf, "<rect x=\"%d\" y=\"3\" width=\"16\" height=\"11\" fill=\"", x);
		add_color(&d->buf, flame_diff_color(step));
		buf_adds(&d->buf, "\"/>\n");
	}
	buf_addf(&d->buf, "<text x=\"%d\" y=\"13\">larger share</text>\n", x + 8);
}

static void add_kind_legend(struct drawing *d)
{
	static const char *const labels[TREE_KINDS] = { "other", "user", "kernel", "task" };
	bool seen[TREE_KINDS] = { false }, inlined = false;
	double x = MARGIN;

	for (size_t i = 1; i < d->nr; i++) {
		const struct tree_node *node = node_of(d, d->frames[i].node);

		if (node->kind < TREE_KINDS)
			seen[node->kind] = true;
		inlined |= node->inlined;
	}
	for (unsigned kind = 0; kind < TREE_KINDS; kind++) {
		if (seen[kind])
			x = add_swatch(d, x, flame_kind_color(kind), labels[kind],
				       strlen(labels[kind]));
	}
	if (inlined)
		buf_addf(&d->buf, "<text x=\"%.1f\" y=\"13\">lighter: inlined</text>\n", x);
}

/* The binaries with the largest self weight, largest first; returns how many. */
static unsigned top_binaries(const struct drawing *d, uint32_t *top)
{
	uint64_t *weight = xcalloc(d->tree->names->nr, sizeof(*weight));
	unsigned nr = 0;

	for (uint32_t i = 1; i < d->tree->nr; i++)
		weight[node_of(d, i)->binary] += node_of(d, i)->self;
	for (uint32_t name = 1; name < d->tree->names->nr; name++) {
		unsigned at = nr;

		if (!weight[name])
			continue;
		for (; at && weight[name] > weight[top[at - 1]]; at--)
			if (at < LEGEND_BINARIES)
				top[at] = top[at - 1];
		if (at < LEGEND_BINARIES)
			top[at] = name;
		if (nr < LEGEND_BINARIES)
			nr++;
	}
	free(weight);
	return nr;
}

static void add_binary_legend(struct drawing *d)
{
	uint32_t top[LEGEND_BINARIES];
	unsigned nr = top_binaries(d, top);
	double x = MARGIN;

	for (unsigned i = 0; i < nr; i++) {
		const char *name = str_text(d->tree->names, top[i]);
		size_t len = str_len(d->tree->names, top[i]);

		x = add_swatch(d, x, flame_binary_color(name, len), name, len);
	}
}

static bool has_legend(const struct drawing *d)
{
	return d->style->differential || d->style->palette == FLAME_KERNEL_USER ||
	       d->style->palette == FLAME_BY_BINARY;
}

static void add_legend(struct drawing *d)
{
	if (d->style->differential)
		add_diff_legend(d);
	else if (d->style->palette == FLAME_KERNEL_USER)
		add_kind_legend(d);
	else if (d->style->palette == FLAME_BY_BINARY)
		add_binary_legend(d);
}

static bool has_notes(const struct drawing *d)
{
	return d->dropped || (d->style->notes && *d->style->notes);
}

static void add_notes(struct drawing *d, unsigned y)
{
	struct buf line = { 0 };

	if (d->style->notes)
		buf_adds(&line, d->style->notes);
	if (d->dropped)
		buf_addf(&line, "%sframes below %g %% are counted in their callers but not drawn",
			 line.len ? " \xc2\xb7 " : "",
			 d->style->min_width_percent > 0 ? d->style->min_width_percent
							 : FLAME_MIN_WIDTH_PERCENT);
	add_line(d, "notes", y, &line);
	buf_release(&line);
}

static unsigned footer_height(const struct drawing *d)
{
	return 8 + FOOTER_LINE * (has_legend(d) + has_notes(d)) + STATUS_HEIGHT;
}

static void add_footer(struct drawing *d)
{
	buf_addf(&d->buf, "<g class=\"foot\" transform=\"translate(0,%u)\">\n",
		 HEADER + ROW * d->drawn_rows + 8);
	add_legend(d);
	if (has_notes(d))
		add_notes(d, has_legend(d) ? 13 + FOOTER_LINE : 13);
	buf_adds(&d->buf, "</g>\n");
}

static const char *theme_class(const struct drawing *d)
{
	static const char *const classes[] = { "auto", "light", "dark" };

	return classes[d->style->theme <= FLAME_DARK ? d->style->theme : FLAME_AUTO];
}

static void add_attribute(struct buf *buf, const char *name, const char *value)
{
	buf_addf(buf, " data-%s=\"", name);
	svg_escape_z(buf, value);
	buf_addc(buf, '"');
}

static void add_settings(struct drawing *d)
{
	struct buf *buf = &d->buf;

	add_attribute(buf, "unit", d->unit);
	buf_addf(buf, " data-frames=\"%zu\" data-looks=\"%" PRIu32 "\"", d->nr, d->nr_looks);
	buf_addf(buf, " data-header=\"%d\" data-footer=\"%u\" data-row=\"%d\"", HEADER,
		 footer_height(d), ROW);
	buf_addf(buf, " data-rows=\"%" PRIu32 "\" data-margin=\"%d\" data-tools=\"%d\"",
		 d->drawn_rows, MARGIN, TOOLS_WIDTH);
	if (!d->style->width)
		buf_adds(buf, " data-fluid=\"1\"");
	if (d->style->icicle)
		buf_adds(buf, " data-icicle=\"1\"");
	if (d->style->differential)
		buf_addf(buf, " data-differential=\"%d\"", d->style->negate ? -1 : 1);
}

static void open_svg(struct drawing *d, unsigned height)
{
	struct buf *buf = &d->buf;

	buf_addf(buf,
		 "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
		 "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"kscope-flame %s\" width=\"%u\" "
		 "height=\"%u\" viewBox=\"0 0 %u %u\" font-family=\"sans-serif\" font-size=\"12\"",
		 theme_class(d), d->width, height, d->width, height);
	add_settings(d);
	buf_adds(buf, ">\n<title>");
	svg_escape_z(buf, title_of(d));
	buf_adds(buf, "</title>\n<style>\n" FLAME_CSS "</style>\n");
}

/* Data for flame.js */

static void add_frame_data(struct drawing *d, const struct frame *frame, uint32_t depth_before)
{
	const struct tree_node *node = node_of(d, frame->node);
	uint64_t up = frame->depth ? depth_before + 1 - frame->depth : 0;

	add_number(&d->buf, up * 4 + (frame->hidden ? 2 : 0) + (node->self ? 1 : 0));
	add_number(&d->buf, frame->look);
	if (node->self)
		add_number(&d->buf, node->self);
	if (frame->hidden)
		add_number(&d->buf, frame->hidden);
	d->written = add(d->written, add(node->self, frame->hidden));
	if (d->style->differential) {
		add_number(&d->buf, node->before_self);
		add_number(&d->buf, frame->before_hidden);
	}
}

static void add_data(struct drawing *d)
{
	buf_adds(&d->buf, "<metadata class=\"names\">");
	buf_add(&d->buf, d->names.data ? d->names.data : "", d->names.len);
	buf_adds(&d->buf, "</metadata>\n<metadata class=\"looks\">");
	buf_add(&d->buf, d->look_data.data ? d->look_data.data : "", d->look_data.len);
	buf_adds(&d->buf, "</metadata>\n<metadata class=\"frames\">");
	for (size_t i = 0; i < d->nr; i++) {
		add_frame_data(d, &d->frames[i], i ? d->frames[i - 1].depth : 0);
		flush(d, FLUSH_AT);
	}
	buf_adds(&d->buf, "</metadata>\n<script><![CDATA[\n" FLAME_JS "]]></script>\n");
}

static void prepare(struct drawing *d)
{
	double percent = d->style->min_width_percent > 0 ? d->style->min_width_percent
							 : FLAME_MIN_WIDTH_PERCENT;
	double least = ceil((double)node_of(d, 0)->total * percent / 100);

	d->least = least < 1 ? 1 : least < 0x1p63 ? (uint64_t)least : UINT64_MAX;
	d->name_ids = xcalloc(d->tree->names->nr, sizeof(*d->name_ids));
	choose_frames(d);
	give_looks(d);
	count_rows(d);
}

static void draw_empty(struct drawing *d)
{
	d->drawn_rows = 2;
	open_svg(d, HEADER + ROW * d->drawn_rows + footer_height(d));
	add_header(d);
	buf_addf(&d->buf, "<text class=\"empty\" x=\"%u\" y=\"%d\" text-anchor=\"middle\">",
		 d->width / 2, HEADER + 2 * ROW);
	buf_adds(&d->buf, "no samples</text>\n");
	if (has_notes(d))
		add_footer(d);
}

static void draw_graph(struct drawing *d)
{
	prepare(d);
	open_svg(d, HEADER + ROW * d->drawn_rows + footer_height(d));
	add_header(d);
	draw_frames(d);
	add_footer(d);
	add_data(d);
}

static void release(struct drawing *d)
{
	free(d->frames);
	free(d->name_ids);
	hash_release(&d->looks);
	buf_release(&d->look_data);
	buf_release(&d->names);
	buf_release(&d->buf);
}

uint64_t flame_svg(struct out *out, const struct tree *tree, const struct flame_style *style)
{
	struct drawing d = {
		.out = out,
		.tree = tree,
		.style = style,
		.unit = style->unit && *style->unit ? style->unit : "samples",
		.width = style->width ? style->width : DEFAULT_WIDTH,
	};

	if (d.width < 200)
		d.width = 200;
	if (tree->nodes[0].total)
		draw_graph(&d);
	else
		draw_empty(&d);
	buf_adds(&d.buf, "</svg>\n");
	flush(&d, 0);
	release(&d);
	return d.written;
}

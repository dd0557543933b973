// SPDX-License-Identifier: GPL-2.0-or-later
/* report: prints a table and a call tree for each event, or JSON. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json_out.h"
#include "base/mem.h"
#include "base/text.h"
#include "cmd.h"
#include "look.h"
#include "model/source.h"
#include "pass/flat.h"

struct report_options {
	bool json;
	enum flat_by by;
	enum flat_sort sort;
	uint64_t limit; /* rows of a table; 0: all */
	bool tree, no_tree;
	double min_percent; /* of the call tree */
};

static const char *const bys[] = { "function", "binary", "task", "cpu", NULL };
static const char *const sorts[] = { "self", "total", "name", NULL };

/* clang-format off: tables are read by the row. */
static const struct option_table report_table = {
	"Output",
	(const struct option_row[]){
		OPTION_JSON(struct report_options),
		{ "by", 0, "KEY", "print a row for each function (default), binary, task or cpu",
		  OPTION_WORD(struct report_options, by, bys) },
		{ "sort", 0, "COLUMN", "sort by self (default), total or name",
		  OPTION_WORD(struct report_options, sort, sorts) },
		{ "limit", 'n', "N", "print at most N rows (default 20, 0: all)",
		  OPTION_NUMBER(struct report_options, limit, 0, 1000000000) },
		{ "tree", 0, NULL, "print only the call tree",
		  OPTION_FLAG(struct report_options, tree) },
		{ "no-tree", 0, NULL, "print only the table",
		  OPTION_FLAG(struct report_options, no_tree) },
		{ "min-percent", 0, "PERCENT",
		  "omit smaller branches of the call tree (default 0.5)",
		  OPTION_PERCENT(struct report_options, min_percent) },
		{ 0 },
	},
};
/* clang-format on */

struct report {
	const struct report_options *asked;
	struct tally_options options;
	struct job *job;
	struct tally tally;
	struct written shown; /* in the table of each event, or in its tree if there is no table */
	struct buf text;
	struct look look;     /* into text */
	struct json_out json; /* likewise */
};

static int report_put(struct writer *w, const struct event *ev)
{
	struct report *report = w->priv;

	tally_add(&report->tally, ev);
	return 0;
}

static const char *text_of(const struct report *report, uint32_t handle)
{
	return str_text(report->job->world.strings, handle);
}

static bool counts_weight(const struct report *report, const struct tally *part)
{
	return tally_counts_weight(part, &report->options, MEASURE_WEIGHT);
}

static void print_row(struct report *report, const struct flat *flat, const struct flat_row *row)
{
	struct look *look = &report->look;

	look_percent(look, look_share(row->self, flat->weight));
	buf_addc(&report->text, ' ');
	look_percent(look, look_share(row->total, flat->weight));
	buf_addf(&report->text, " %10" PRIu64 "  ", row->samples);
	if (report->asked->by == FLAT_TASK && row->pid != NO_TASK)
		buf_addf(&report->text, "%s (pid %" PRIu32 ")\n", look_name(look, 0, row->name),
			 row->pid);
	else
		look_function(look, row->name, row->binary);
}

/* What a list does not show, it cannot lose. */
static void count_rows(struct report *report, const struct tally *part, const struct flat *flat)
{
	bool weight = counts_weight(report, part);

	for (size_t i = 0; i < flat->nr; i++) {
		report->shown.samples += flat->rows[i].samples;
		report->shown.weight += weight ? flat->rows[i].self : 0;
	}
	report->shown.weight += weight ? 0 : tally_total(part, true);
}

static void count_tree(struct report *report, const struct tally *part, const struct tree *tree)
{
	bool weight = counts_weight(report, part);
	uint64_t total = tree->nodes[0].total;

	report->shown.samples += weight ? tally_total(part, false) : total;
	report->shown.weight += weight ? total : tally_total(part, true);
}

static void print_table(struct report *report, const struct tally *part)
{
	const struct report_options *asked = report->asked;
	struct flat flat;
	size_t nr;

	flat_make(&flat, part, asked->by, &report->options);
	count_rows(report, part, &flat);
	flat_sort_rows(&flat, report->job->world.strings, asked->sort);
	nr = asked->limit && asked->limit < flat.nr ? asked->limit : flat.nr;
	buf_addf(&report->text, "\n    self    total    samples  %s\n", bys[asked->by]);
	for (size_t i = 0; i < nr; i++)
		print_row(report, &flat, &flat.rows[i]);
	if (nr < flat.nr)
		buf_addf(&report->text, "%*s(%zu more rows: --limit 0)\n", 30, "", flat.nr - nr);
	flat_release(&flat);
}

/* The largest total first; equal totals in the order of their names. */
static int by_total(const void *va, const void *vb, void *arg)
{
	const struct tree *tree = arg;
	const struct tree_node *a = &tree->nodes[*(const uint32_t *)va];
	const struct tree_node *b = &tree->nodes[*(const uint32_t *)vb];

	if (a->total != b->total)
		return a->total > b->total ? -1 : 1;
	return strcmp(str_text(tree->names, a->name), str_text(tree->names, b->name));
}

static size_t sorted_children(const struct tree *tree, uint32_t node, uint32_t **children)
{
	size_t nr = 0, cap = 0;

	*children = NULL;
	for (uint32_t c = tree->nodes[node].child; c; c = tree->nodes[c].sibling) {
		GROW(*children, nr + 1, cap);
		(*children)[nr++] = c;
	}
	if (nr)
		qsort_r(*children, nr, sizeof(**children), by_total, (void *)tree);
	return nr;
}

#define TREE_MAX_DEPTH 200 /* deeper lines do not fit on any terminal */

static void print_subtree(struct report *report, const struct tree *tree, uint32_t node,
			  unsigned depth)
{
	uint64_t all = tree->nodes[0].total;
	uint32_t *children;
	size_t nr = sorted_children(tree, node, &children);

	for (size_t i = 0; i < nr; i++) {
		const struct tree_node *n = &tree->nodes[children[i]];
		double percent = look_share(n->total, all);

		if (percent < report->asked->min_percent)
			break;
		look_percent(&report->look, percent);
		buf_addf(&report->text, " %*s%s%s%s", (int)depth * 2, "",
			 look_name(&report->look, 0, n->name), n->inlined ? " (inlined)" : "",
			 n->self ? "" : "\n");
		if (n->self)
			buf_addf(&report->text, "  [self %.2f%%]\n", look_share(n->self, all));
		if (depth < TREE_MAX_DEPTH)
			print_subtree(report, tree, children[i], depth + 1);
	}
	free(children);
}

static void print_tree(struct report *report, struct tally *part)
{
	struct tally_view view = {
		.options = &report->options,
		.weight = counts_weight(report, part),
	};
	struct tree tree;

	tree_init(&tree, report->job->world.strings);
	tally_tree(part, &tree, &view);
	tree_finish(&tree);
	if (report->asked->tree)
		count_tree(report, part, &tree);
	buf_adds(&report->text,
		 report->options.inverted ? "\n   total  callers\n" : "\n   total  call tree\n");
	print_subtree(report, &tree, 0, 0);
	tree_release(&tree);
}

static uint32_t source_of(const struct tally *part)
{
	return part->entries[0].source;
}

static void sum(const struct tally *part, uint64_t *samples, uint64_t *weight)
{
	*samples = *weight = 0;
	for (size_t i = 0; i < part->nr; i++) {
		*samples += part->entries[i].samples;
		*weight += part->entries[i].weight;
	}
}

static void print_section(struct report *report, struct tally *part)
{
	const struct report_options *asked = report->asked;
	bool weight = counts_weight(report, part);
	const char *unit = text_plain(&report->look.scratch[0], tally_unit(part, weight));
	const char *name =
		look_name(&report->look, 1, source_name(&report->job->world, source_of(part)));
	uint64_t samples, events;

	sum(part, &samples, &events);
	buf_addf(&report->text, "%" PRIu64 " samples", samples);
	if (strcmp(name, "samples") != 0) /* folded stacks name no event */
		buf_addf(&report->text, " of %s", name);
	if (weight && !strcmp(unit, "ns")) {
		buf_adds(&report->text, ", ");
		text_duration(&report->text, events);
		unit = "time";
	} else if (weight && events != samples) {
		buf_addf(&report->text, ", %" PRIu64 " %s", events, unit);
	}
	buf_addf(&report->text, "; shares are of %s\n", unit);
	if (!asked->tree)
		print_table(report, part);
	if (!asked->no_tree)
		print_tree(report, part);
	buf_addc(&report->text, '\n');
}

static void json_row(struct report *report, const struct flat *flat, const struct flat_row *row,
		     enum flat_by by)
{
	struct json_out *to = &report->json;

	json_out_object(to, NULL);
	json_out_text(to, "name", text_of(report, row->name));
	if (by == FLAT_FUNCTION)
		json_out_text(to, "binary", text_of(report, row->binary));
	if (by == FLAT_TASK && row->pid != NO_TASK)
		json_out_u64(to, "pid", row->pid);
	json_out_u64(to, "self", row->self);
	json_out_u64(to, "total", row->total);
	json_out_u64(to, "samples", row->samples);
	json_out_double(to, "self_percent", look_share(row->self, flat->weight), 4);
	json_out_double(to, "total_percent", look_share(row->total, flat->weight), 4);
	json_out_end(to);
}

static void json_rows(struct report *report, const struct tally *part, const char *key,
		      enum flat_by by)
{
	const struct report_options *asked = report->asked;
	struct flat flat;

	flat_make(&flat, part, by, &report->options);
	flat_sort_rows(&flat, report->job->world.strings, asked->sort);
	if (by == FLAT_FUNCTION)
		count_rows(report, part, &flat);
	json_out_array(&report->json, key);
	for (size_t i = 0; i < flat.nr; i++)
		json_row(report, &flat, &flat.rows[i], by);
	json_out_end(&report->json);
	flat_release(&flat);
}

static void json_section(struct report *report, struct tally *part)
{
	struct json_out *to = &report->json;
	uint64_t samples, weight;

	sum(part, &samples, &weight);
	json_out_object(to, NULL);
	json_out_text(to, "name",
		      text_of(report, source_name(&report->job->world, source_of(part))));
	json_out_u64(to, "samples", samples);
	json_out_u64(to, "weight", weight);
	json_rows(report, part, "functions", FLAT_FUNCTION);
	json_rows(report, part, "binaries", FLAT_BINARY);
	json_rows(report, part, "tasks", FLAT_TASK);
	json_rows(report, part, "cpus", FLAT_CPU);
	json_out_end(to);
}

static int by_source(const void *va, const void *vb)
{
	const struct tally_entry *a = va, *b = vb;

	return a->source < b->source ? -1 : a->source > b->source;
}

/* Calls section() for each event, with its entries. */
static void each_source(struct report *report, void (*section)(struct report *, struct tally *))
{
	struct tally *all = &report->tally;

	if (all->nr)
		qsort(all->entries, all->nr, sizeof(*all->entries), by_source);
	hash_release(&all->index);
	for (size_t first = 0, end; first < all->nr; first = end) {
		struct tally part = { .world = all->world,
				      .by = all->by,
				      .entries = all->entries + first };

		for (end = first; end < all->nr; end++) {
			if (all->entries[end].source != all->entries[first].source)
				break;
		}
		part.nr = end - first;
		section(report, &part);
	}
}

static void print_json(struct report *report)
{
	struct json_out *to = &report->json;
	struct job *job = report->job;

	to->to = &report->text;
	json_out_object(to, NULL);
	json_out_u64(to, "samples", job->count.samples);
	json_out_u64(to, "unselected", job->chain.unselected);
	json_out_u64(to, "lost", job->lost);
	json_out_u64(to, "damaged", job->damaged);
	json_out_array(to, "events");
	each_source(report, json_section);
	json_out_end(to);
	json_out_end(to);
}

static void make_text(struct report *report)
{
	if (report->asked->json)
		print_json(report);
	else if (report->tally.nr)
		each_source(report, print_section);
	else
		buf_adds(&report->text, "no samples\n");
}

/* Before the output is verified; run() prints it. */
static int report_finish(struct writer *w)
{
	struct report *report = w->priv;

	make_text(report);
	w->written = report->shown;
	w->written.knows = WROTE_SAMPLES | WROTE_WEIGHT;
	return 0;
}

static const struct writer_ops report_ops = {
	.name = "report",
	.takes = EVENT_BIT(EVENT_SAMPLE),
	.options = OPTION_USES(TALLY_OPTIONS(struct report, options)),
	.put = report_put,
	.finish = report_finish,
};

static int check(const struct args *args, struct err *err)
{
	const struct report_options *asked = args->state;

	return asked->tree && asked->no_tree
		       ? err_set(err, ERR_USAGE, "--tree and --no-tree cannot be used together")
		       : 0;
}

static int run(struct args *args)
{
	struct job job;
	struct report report = { .asked = args->state, .job = &job };
	struct writer writer = { .ops = &report_ops, .world = &job.world, .priv = &report };
	struct strtab strings;
	int ret;

	strtab_init(&strings);
	look_init(&report.look, &report.text, &strings);
	args_job(args, &job);
	ret = option_apply(report_ops.options, &report, &args->given, &job.err);
	if (ret == 0)
		ret = job_open(&job, &strings);
	if (ret == 0) {
		tally_init(&report.tally, &job.world,
			   tally_by_options(&report.options) | BY_COMM | BY_PID | BY_CPU);
		ret = job_run(&job, (struct writer *[]){ &writer }, 1);
	}
	if (ret == 0)
		fwrite(report.text.data, 1, report.text.len, stdout);
	ret = job_result(&job, ret);
	tally_release(&report.tally);
	buf_release(&report.text);
	look_release(&report.look);
	job_release(&job);
	strtab_release(&strings);
	return ret;
}

const struct command cmd_report = {
	.name = "report",
	.usage = "report INPUT... [OPTIONS]",
	.about = "Show where the time went: a table and a call tree for each event.",
	.examples = "  kscope report samples.json --build-dir build\n"
		    "  kscope report perf.data --by task --no-tree\n"
		    "  kscope report perf.data --inverted --tree --comm echo.elf\n"
		    "  kscope report perf.data --json | python3 -m json.tool\n",
	.options = OPTION_USES({ &report_table, 0 }),
	.defaults = &(const struct report_options){ .limit = 20, .min_percent = 0.5 },
	.state_size = sizeof(struct report_options),
	.reads = true,
	.writers = (const struct writer_ops *const[]){ &report_ops, NULL },
	.check = check,
	.run = run,
};

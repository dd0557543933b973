// SPDX-License-Identifier: GPL-2.0-or-later
/* diff: prints what got slower from one recording to another, and which differences may be noise. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/json_out.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"
#include "cmd.h"
#include "look.h"
#include "model/source.h"
#include "page.h"
#include "pass/compare.h"

enum diff_sort { SORT_DIFF, SORT_BEFORE, SORT_AFTER, SORT_RATIO, SORT_NAME };

struct diff_options {
	struct option_list before;
	bool json, total, absolute, idle;
	enum flat_by by;
	enum diff_sort sort;
	uint64_t limit;	  /* rows of a table; 0: all */
	double threshold; /* percentage points from which on the exit code is ERR_SLOWER */
};

static const char *const bys[] = { "function", "binary", "task", "cpu", NULL };
static const char *const plurals[] = { "functions", "binaries", "tasks", "cpus" };
static const char *const sorts[] = { "diff", "before", "after", "ratio", "name", NULL };
static const char *const methods[] = { "exact", "runs", "blocks", "counts" };

/* clang-format off: tables are read by the row. */
static const struct option_table diff_table = {
	"Comparison",
	(const struct option_row[]){
		{ "before", 0, "FILE", "compare with this recording from before (may be repeated)",
		  OPTION_APPEND(struct diff_options, before), .completion = COMPLETE_FILE },
		{ "total", 0, NULL, "compare the shares of functions including their callees",
		  OPTION_FLAG(struct diff_options, total) },
		{ "absolute", 0, NULL, "compare numbers instead of shares",
		  OPTION_FLAG(struct diff_options, absolute) },
		{ "idle", 0, NULL, "count idle time, too", OPTION_FLAG(struct diff_options, idle) },
		{ "threshold", 0, "PERCENT",
		  "exit with 5 if something got slower by this or more (default 1)",
		  OPTION_PERCENT(struct diff_options, threshold) },
		{ 0 },
	},
};

static const struct option_table output_table = {
	"Output",
	(const struct option_row[]){
		OPTION_OUTPUT("also write an HTML page that shows both"),
		OPTION_JSON(struct diff_options),
		{ "by", 0, "KEY", "print a row for each function (default), binary, task or cpu",
		  OPTION_WORD(struct diff_options, by, bys) },
		{ "sort", 0, "COLUMN", "sort by diff (default), before, after, ratio or name",
		  OPTION_WORD(struct diff_options, sort, sorts) },
		{ "limit", 'n', "N", "print at most N rows (default 20, 0: all)",
		  OPTION_NUMBER(struct diff_options, limit, 0, 1000000000) },
		{ 0 },
	},
};
/* clang-format on */

struct diff {
	const struct diff_options *asked;
	struct compare compare;
	struct strtab strings; /* of all runs */
	struct run {
		struct diff *diff;
		const char *path;
		struct job job;
		struct blocks blocks;
	} * runs;
	struct buf text;
	struct look look;     /* into text */
	struct json_out json; /* likewise */
};

/* ---- reading ---- */

static int diff_put(struct writer *w, const struct event *ev)
{
	struct run *run = w->priv;

	blocks_add(&run->blocks, ev);
	return 0;
}

static int diff_finish(struct writer *w)
{
	struct run *run = w->priv;
	struct compare *compare = &run->diff->compare;
	size_t nr = (size_t)(run - run->diff->runs);

	blocks_sort(&run->blocks);
	for (size_t source = 0; source < run->blocks.nr_sources; source++) {
		struct blocks_part part;
		int ret;

		if (!blocks_part(&run->blocks, (uint32_t)source, &part))
			continue;
		ret = compare_add(compare, nr, &part, &w->err);
		blocks_part_release(&part);
		if (ret < 0)
			return -1;
	}
	w->written = compare_written(compare, nr);
	w->written.knows = WROTE_SAMPLES | WROTE_WEIGHT;
	return 0;
}

static const struct writer_ops diff_ops = {
	.name = "diff",
	.takes = EVENT_BIT(EVENT_SAMPLE),
	.options = OPTION_USES({ &measure_table, offsetof(struct diff, compare.options) },
			       { &no_inline_table, offsetof(struct diff, compare.options) }),
	.put = diff_put,
	.finish = diff_finish,
};

static int read_run(struct run *run)
{
	struct job *job = &run->job;
	struct writer writer = { .ops = &diff_ops, .world = &job->world, .priv = run };
	int ret;

	job->inputs = &run->path;
	job->nr_inputs = 1;
	ret = job_open(job, &run->diff->strings);
	blocks_init(&run->blocks, &job->world, compare_tally_by(run->diff->asked->by));
	if (ret == 0)
		ret = job_run(job, (struct writer *[]){ &writer }, 1);
	blocks_release(&run->blocks);
	return ret;
}

/* ---- the cells of a row ---- */

static const char *change_word(const struct compare_event *event, const struct compare_row *row)
{
	switch (row->change) {
	case CHANGE_NONE: return "same";
	case CHANGE_NOISE: return "noise";
	case CHANGE_LESS: return event->allocated ? "less" : "faster";
	case CHANGE_MORE: break;
	}
	return event->allocated ? "more" : "slower";
}

/* INFINITY: new. */
static double ratio_of(const struct compare_row *row)
{
	return row->value[BEFORE] > 0 ? row->value[AFTER] / row->value[BEFORE] : INFINITY;
}

/* Rounding must not decide. */
static bool is_beyond(const struct diff *diff, const struct compare_event *event,
		      const struct compare_row *row)
{
	return row->change == CHANGE_MORE &&
	       compare_points(&diff->compare, event, row) >= diff->asked->threshold - 1e-9;
}

static size_t count_beyond(const struct diff *diff)
{
	size_t nr = 0;

	for (size_t e = 0; e < diff->compare.nr; e++) {
		const struct compare_event *event = &diff->compare.events[e];

		for (size_t i = 0; i < event->nr; i++)
			nr += is_beyond(diff, event, &event->rows[i]);
	}
	return nr;
}

static bool is_compared(const struct compare_event *event)
{
	return event->has[BEFORE] && event->has[AFTER];
}

static size_t count_compared(const struct diff *diff)
{
	size_t nr = 0;

	for (size_t e = 0; e < diff->compare.nr; e++)
		nr += is_compared(&diff->compare.events[e]);
	return nr;
}

static size_t count_changes(const struct compare_event *event, enum compare_change change)
{
	size_t nr = 0;

	for (size_t i = 0; i < event->nr; i++)
		nr += event->rows[i].change == change;
	return nr;
}

/* ---- order ---- */

struct order {
	const struct diff *diff;
	const struct compare_event *event;
};

static double sort_key(const struct order *order, const struct compare_row *row)
{
	switch (order->diff->asked->sort) {
	case SORT_DIFF: return fabs(row->value[AFTER] - row->value[BEFORE]);
	case SORT_BEFORE: return row->value[BEFORE];
	case SORT_AFTER: return row->value[AFTER];
	case SORT_RATIO: return ratio_of(row);
	case SORT_NAME: break;
	}
	return 0;
}

/* By default, significant rows come first. */
static int compare_rows(const void *va, const void *vb, void *arg)
{
	const struct order *order = arg;
	const struct strtab *strings = &order->diff->strings;
	const struct compare_row *a = va, *b = vb;
	bool a_sure = a->change > CHANGE_NOISE, b_sure = b->change > CHANGE_NOISE;
	double x = sort_key(order, a), y = sort_key(order, b);
	int names;

	if (order->diff->asked->sort == SORT_DIFF && a_sure != b_sure)
		return a_sure ? -1 : 1;
	if (x != y)
		return x > y ? -1 : 1;
	names = strcmp(str_text(strings, a->name), str_text(strings, b->name));
	return names ? names : strcmp(str_text(strings, a->binary), str_text(strings, b->binary));
}

/* Cells belong to rows by number: they are not used any more. */
static void sort_rows(const struct diff *diff, struct compare_event *event)
{
	struct order order = { diff, event };

	if (event->nr)
		qsort_r(event->rows, event->nr, sizeof(*event->rows), compare_rows, &order);
}

/* ---- text ---- */

static void add_number(struct diff *diff, const struct compare_event *event, const char *sign,
		       double number)
{
	struct buf *scratch = &diff->look.scratch[0];

	scratch->len = 0;
	buf_adds(scratch, sign);
	if (!strcmp(event->unit, "ns"))
		look_time(scratch, 0, (uint64_t)fabs(number));
	else
		look_number(scratch, 0, (uint64_t)fabs(number));
	buf_addf(&diff->text, "%9s", scratch->data);
}

static void add_value(struct diff *diff, const struct compare_event *event, double value)
{
	if (diff->asked->absolute)
		add_number(diff, event, "", value);
	else
		buf_addf(&diff->text, "%8.2f%%", 100 * value);
}

static void add_change(struct diff *diff, const struct compare_event *event, double value)
{
	if (diff->asked->absolute)
		add_number(diff, event, value < 0 ? "-" : "+", value);
	else
		buf_addf(&diff->text, "%+9.2f", 100 * value);
}

static void add_ratio(struct buf *to, const struct compare_row *row)
{
	double ratio = ratio_of(row);

	if (isinf(ratio))
		buf_addf(to, " %8s", row->value[AFTER] > 0 ? "new" : "-");
	else if (!(row->value[AFTER] > 0))
		buf_addf(to, " %8s", "gone");
	else if (ratio >= 9999.5)
		buf_addf(to, " %8s", ">9999x");
	else
		buf_addf(to, " %7.2fx", ratio);
}

static void add_p(struct buf *to, const struct compare_event *event, const struct compare_row *row)
{
	double p = row->test.adjusted;

	if (event->method == METHOD_EXACT)
		buf_addf(to, " %8s", "exact");
	else if (p < 0.0001)
		buf_addf(to, " %8s", "<0.0001");
	else
		buf_addf(to, " %8.4f", p);
}

/* The change of the other share: total, or with --total, self. */
static double other_change(const struct diff *diff, const struct compare_event *event,
			   const struct compare_row *row)
{
	const double *share = diff->asked->total ? row->self : row->total;

	if (!diff->asked->absolute)
		return share[AFTER] - share[BEFORE];
	if (diff->asked->total)
		return (double)row->sums[AFTER].self / (double)event->nr_runs[AFTER] -
		       (double)row->sums[BEFORE].self / (double)event->nr_runs[BEFORE];
	return (double)row->sums[AFTER].total / (double)event->nr_runs[AFTER] -
	       (double)row->sums[BEFORE].total / (double)event->nr_runs[BEFORE];
}

static void print_row(struct diff *diff, const struct compare_event *event,
		      const struct compare_row *row)
{
	struct look *look = &diff->look;
	const char *color = row->change == CHANGE_MORE	 ? "\033[31m"
			    : row->change == CHANGE_LESS ? "\033[32m"
							 : "";

	add_value(diff, event, row->value[BEFORE]);
	add_value(diff, event, row->value[AFTER]);
	add_change(diff, event, row->value[AFTER] - row->value[BEFORE]);
	add_ratio(&diff->text, row);
	add_change(diff, event, other_change(diff, event, row));
	add_p(&diff->text, event, row);
	buf_addf(&diff->text, "  %s%-6s%s  ", look->colors ? color : "", change_word(event, row),
		 look->colors && *color ? "\033[0m" : "");
	look_function(look, row->name, row->binary);
}

static void print_table(struct diff *diff, const struct compare_event *event)
{
	size_t rows = event->nr - count_changes(event, CHANGE_NONE), printed = 0;
	size_t limit = diff->asked->limit ? diff->asked->limit : rows;

	if (!rows)
		return;
	buf_addf(&diff->text, "\n%9s%9s%9s %8s%9s %8s  %-6s  %s\n", "before", "after", "diff",
		 "ratio", diff->asked->total ? "self" : "total", "p", "change",
		 bys[diff->asked->by]);
	for (size_t i = 0; i < event->nr && printed < limit; i++) {
		if (event->rows[i].change == CHANGE_NONE)
			continue;
		print_row(diff, event, &event->rows[i]);
		printed++;
	}
	if (printed < rows)
		buf_addf(&diff->text, "%*s(%zu more rows: --limit 0)\n", 62, "", rows - printed);
}

static void print_method(struct diff *diff, const struct compare_event *event)
{
	struct buf *to = &diff->text;

	switch (event->method) {
	case METHOD_EXACT: buf_adds(to, "noise: none, the recordings count everything\n"); return;
	case METHOD_RUNS:
		buf_addf(to, "noise: measured from %zu run%s before and %zu after",
			 event->nr_runs[BEFORE], event->nr_runs[BEFORE] == 1 ? "" : "s",
			 event->nr_runs[AFTER]);
		break;
	case METHOD_BLOCKS:
		buf_addf(to, "noise: measured from %s in %d blocks of time",
			 diff->asked->absolute ? "numbers" : "shares", COMPARE_BLOCKS);
		break;
	case METHOD_COUNTS:
		buf_adds(to, "noise: assuming independent samples (no times, or few samples)");
		break;
	}
	buf_addf(to, "; %zu test%s\n", event->tested, event->tested == 1 ? "" : "s");
}

static void print_title(struct diff *diff, const struct compare_event *event)
{
	uint64_t samples[2] = { 0 };
	const char *unit = text_plain(&diff->look.scratch[0], event->unit);

	for (size_t r = 0; r < diff->compare.nr_runs; r++)
		samples[r >= diff->compare.nr_before] += event->runs[r].sums.samples;
	buf_addf(&diff->text, "%s: %" PRIu64 " samples before, %" PRIu64 " after; %s %s\n",
		 look_name(&diff->look, 1, event->name), samples[BEFORE], samples[AFTER],
		 diff->asked->absolute ? "numbers are" : "shares are of",
		 !strcmp(unit, "ns") ? "time" : unit);
}

/* How much of everything on a side was left out. */
static double idle_share(const struct diff *diff, const struct compare_event *event,
			 enum compare_side side)
{
	double idle = 0, busy = 0;

	for (size_t r = 0; r < diff->compare.nr_runs; r++) {
		if (side != (r >= diff->compare.nr_before ? AFTER : BEFORE))
			continue;
		idle += (double)event->runs[r].idle;
		busy += (double)event->runs[r].sums.self;
	}
	return idle > 0 ? idle / (idle + busy) : 0;
}

static void print_idle(struct diff *diff, const struct compare_event *event)
{
	double before = idle_share(diff, event, BEFORE), after = idle_share(diff, event, AFTER);

	if (before > 0 || after > 0)
		buf_addf(&diff->text, "idle, not counted: %.2f%% before, %.2f%% after (--idle)\n",
			 100 * before, 100 * after);
}

static void print_sum(struct diff *diff, const struct compare_event *event)
{
	size_t more = count_changes(event, CHANGE_MORE), less = count_changes(event, CHANGE_LESS);
	size_t noise = count_changes(event, CHANGE_NOISE);
	size_t same = count_changes(event, CHANGE_NONE);

	buf_addf(&diff->text, "\n%zu %s %s, %zu %s", more,
		 more == 1 ? bys[diff->asked->by] : plurals[diff->asked->by],
		 event->allocated ? "more" : "slower", less, event->allocated ? "less" : "faster");
	if (event->method != METHOD_EXACT)
		buf_addf(&diff->text, ", %zu difference%s may be noise", noise,
			 noise == 1 ? "" : "s");
	buf_addf(&diff->text, ", %zu the same\n\n", same);
}

static void print_event(struct diff *diff, const struct compare_event *event)
{
	if (!is_compared(event)) {
		buf_addf(&diff->text, "%s: only %s, not compared\n\n",
			 look_name(&diff->look, 0, event->name),
			 event->has[BEFORE] ? "before" : "after");
		return;
	}
	print_title(diff, event);
	print_idle(diff, event);
	print_method(diff, event);
	print_table(diff, event);
	print_sum(diff, event);
}

static void print_losses(struct diff *diff)
{
	bool any = false;

	for (size_t r = 0; r < diff->compare.nr_runs; r++) {
		const struct run *run = &diff->runs[r];
		const char *path;

		if (!run->job.lost && !run->job.damaged)
			continue;
		path = text_plain(&diff->look.scratch[0], run->path);
		buf_addf(&diff->text, "%s (%s): %" PRIu64 " lost, %" PRIu64 " damaged place%s\n",
			 path, r < diff->compare.nr_before ? "before" : "after", run->job.lost,
			 run->job.damaged, run->job.damaged == 1 ? "" : "s");
		any = true;
	}
	if (any)
		buf_addc(&diff->text, '\n');
}

/* Whether several runs would tell more: a test of single runs does not know how much runs vary. */
static bool is_doubtful(const struct diff *diff, const struct compare_event *event)
{
	if (!is_compared(event) || event->method < METHOD_BLOCKS)
		return false;
	for (size_t i = 0; i < event->nr; i++) {
		const struct compare_row *row = &event->rows[i];
		double points = fabs(compare_points(&diff->compare, event, row));

		if (row->change > CHANGE_NOISE ||
		    (row->change == CHANGE_NOISE && points >= diff->asked->threshold))
			return true;
	}
	return false;
}

static void print_hint(struct diff *diff)
{
	for (size_t e = 0; e < diff->compare.nr; e++) {
		if (!is_doubtful(diff, &diff->compare.events[e]))
			continue;
		buf_adds(&diff->text,
			 "One run on each side does not show how much runs vary: a difference may "
			 "be the host's,\n"
			 "and a change may look like noise. Several runs tell: see --before\n");
		return;
	}
}

static void print_text(struct diff *diff)
{
	size_t beyond = count_beyond(diff);

	print_losses(diff);
	for (size_t e = 0; e < diff->compare.nr; e++)
		print_event(diff, &diff->compare.events[e]);
	if (!diff->compare.nr)
		buf_adds(&diff->text, "no samples\n");
	if (beyond)
		buf_addf(&diff->text, "%zu of them slower by at least %g %s\n", beyond,
			 diff->asked->threshold,
			 diff->asked->absolute	       ? "percent of everything before"
			 : diff->asked->threshold == 1 ? "percentage point"
						       : "percentage points");
	print_hint(diff);
}

/* ---- JSON ---- */

static void json_run(struct diff *diff, size_t r)
{
	struct json_out *to = &diff->json;
	const struct job *job = &diff->runs[r].job;

	json_out_object(to, NULL);
	json_out_text(to, "input", diff->runs[r].path);
	json_out_u64(to, "samples", job->count.samples);
	json_out_u64(to, "unselected", job->chain.unselected);
	json_out_u64(to, "lost", job->lost);
	json_out_u64(to, "damaged", job->damaged);
	json_out_end(to);
}

static void json_runs(struct diff *diff)
{
	json_out_array(&diff->json, "before");
	for (size_t r = 0; r < diff->compare.nr_before; r++)
		json_run(diff, r);
	json_out_end(&diff->json);
	json_out_array(&diff->json, "after");
	for (size_t r = diff->compare.nr_before; r < diff->compare.nr_runs; r++)
		json_run(diff, r);
	json_out_end(&diff->json);
}

static void json_side(struct json_out *to, const char *key, const struct compare_row *row,
		      enum compare_side side)
{
	json_out_object(to, key);
	json_out_u64(to, "self", row->sums[side].self);
	json_out_u64(to, "total", row->sums[side].total);
	json_out_u64(to, "samples", row->sums[side].samples);
	json_out_double(to, "self_percent", 100 * row->self[side], 4);
	json_out_double(to, "total_percent", 100 * row->total[side], 4);
	json_out_end(to);
}

static void json_row(struct diff *diff, const struct compare_event *event,
		     const struct compare_row *row)
{
	struct json_out *to = &diff->json;

	json_out_object(to, NULL);
	json_out_text(to, "name", str_text(&diff->strings, row->name));
	if (diff->asked->by == FLAT_FUNCTION)
		json_out_text(to, "binary", str_text(&diff->strings, row->binary));
	json_side(to, "before", row, BEFORE);
	json_side(to, "after", row, AFTER);
	json_out_double(to, "points", compare_points(&diff->compare, event, row), 4);
	json_out_double(to, "ratio", ratio_of(row), 6);
	json_out_bool(to, "tested", row->tested);
	json_out_double(to, "p", row->test.p, 12);
	json_out_double(to, "p_adjusted", row->test.adjusted, 12);
	json_out_text(to, "change", change_word(event, row));
	json_out_bool(to, "beyond_threshold", is_beyond(diff, event, row));
	json_out_end(to);
}

static void json_totals(struct diff *diff, const struct compare_event *event)
{
	static const char *const keys[2][3] = {
		{ "samples_before", "weight_before", "idle_percent_before" },
		{ "samples_after", "weight_after", "idle_percent_after" }
	};

	for (int side = 0; side < 2; side++) {
		uint64_t samples = 0, weight = 0;

		for (size_t r = 0; r < diff->compare.nr_runs; r++) {
			if (side != (r >= diff->compare.nr_before))
				continue;
			samples += event->runs[r].sums.samples;
			weight += event->runs[r].sums.self;
		}
		json_out_u64(&diff->json, keys[side][0], samples);
		json_out_u64(&diff->json, keys[side][1], weight);
		json_out_double(&diff->json, keys[side][2],
				100 * idle_share(diff, event, (enum compare_side)side), 4);
	}
}

static void json_event(struct diff *diff, const struct compare_event *event)
{
	struct json_out *to = &diff->json;

	json_out_object(to, NULL);
	json_out_text(to, "name", str_text(&diff->strings, event->name));
	json_out_text(to, "unit", event->unit);
	json_totals(diff, event);
	json_out_bool(to, "compared", is_compared(event));
	if (is_compared(event)) {
		json_out_text(to, "noise_from", methods[event->method]);
		json_out_u64(to, "tests", event->tested);
		json_out_u64(to, "slower", count_changes(event, CHANGE_MORE));
		json_out_u64(to, "faster", count_changes(event, CHANGE_LESS));
		json_out_u64(to, "noise", count_changes(event, CHANGE_NOISE));
		json_out_u64(to, "same", count_changes(event, CHANGE_NONE));
		json_out_array(to, "rows");
		for (size_t i = 0; i < event->nr; i++)
			json_row(diff, event, &event->rows[i]);
		json_out_end(to);
	}
	json_out_end(to);
}

static void print_json(struct diff *diff)
{
	struct json_out *to = &diff->json;

	to->to = &diff->text;
	json_out_object(to, NULL);
	json_runs(diff);
	json_out_text(to, "by", bys[diff->asked->by]);
	json_out_text(to, "compares", diff->asked->total ? "total" : "self");
	json_out_bool(to, "absolute", diff->asked->absolute);
	json_out_double(to, "level", COMPARE_LEVEL, 2);
	json_out_double(to, "threshold", diff->asked->threshold, 4);
	json_out_u64(to, "beyond_threshold", count_beyond(diff));
	json_out_array(to, "events");
	for (size_t e = 0; e < diff->compare.nr; e++)
		json_event(diff, &diff->compare.events[e]);
	json_out_end(to);
	json_out_end(to);
}

/* ---- the verb ---- */

static bool is_stream(const char *path)
{
	struct stat st;

	return !strcmp(path, "-") ||
	       (stat(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode));
}

static int check(const struct args *args, struct err *err)
{
	const struct diff_options *asked = args->state;

	if (!asked->before.nr && args->nr_inputs != 2)
		return err_set(err, ERR_USAGE,
			       "diff compares two inputs, BEFORE and AFTER: for several runs, use "
			       "--before FILE for each run from before");
	if (args->nr_outputs > 1)
		return err_set(err, ERR_USAGE, "diff writes one page: use one -o");
	if (!args->nr_outputs)
		return 0;
	for (size_t r = 0; r < asked->before.nr + args->nr_inputs; r++) {
		const char *path = r < asked->before.nr ? asked->before.all[r]
							: args->inputs[r - asked->before.nr];

		if (is_stream(path))
			return err_set(err, ERR_USAGE,
				       "%s: -o reads each input twice: save it in a file", path);
	}
	return page_check(args->outputs[0].path, err);
}

static void init(struct diff *diff, struct args *args)
{
	const struct diff_options *asked = args->state;
	struct compare *compare = &diff->compare;
	size_t nr_before = asked->before.nr ? asked->before.nr : 1;

	*diff = (struct diff){ .asked = asked };
	strtab_init(&diff->strings);
	look_init(&diff->look, &diff->text, &diff->strings);
	*compare = (struct compare){
		.strings = &diff->strings,
		.by = asked->by,
		.total = asked->total,
		.absolute = asked->absolute,
		.idle = asked->idle,
		.nr_before = nr_before,
		.nr_runs = asked->before.nr + args->nr_inputs,
	};
	diff->runs = xcalloc(compare->nr_runs, sizeof(*diff->runs));
	for (size_t r = 0; r < compare->nr_runs; r++) {
		diff->runs[r].diff = diff;
		diff->runs[r].path = r < asked->before.nr ? asked->before.all[r]
							  : args->inputs[r - asked->before.nr];
		args_job(args, &diff->runs[r].job);
	}
}

static void release(struct diff *diff)
{
	for (size_t r = 0; r < diff->compare.nr_runs; r++)
		job_release(&diff->runs[r].job);
	free(diff->runs);
	compare_release(&diff->compare);
	buf_release(&diff->text);
	look_release(&diff->look);
	strtab_release(&diff->strings);
}

static int read_runs(struct diff *diff, const struct args *args, struct err *err)
{
	if (option_apply(diff_ops.options, diff, &args->given, err) < 0)
		return -1;
	for (size_t r = 0; r < diff->compare.nr_runs; r++) {
		if (read_run(&diff->runs[r]) < 0) {
			*err = diff->runs[r].job.err;
			return -1;
		}
	}
	return 0;
}

static void print(struct diff *diff)
{
	compare_finish(&diff->compare);
	for (size_t e = 0; e < diff->compare.nr; e++)
		sort_rows(diff, &diff->compare.events[e]);
	if (diff->asked->json)
		print_json(diff);
	else
		print_text(diff);
	fwrite(diff->text.data, 1, diff->text.len, stdout);
}

/* Logs of allocations without samples lack nothing if no memory is in use at the end. */
static bool all_freed(const struct diff *diff)
{
	for (size_t r = 0; r < diff->compare.nr_runs; r++) {
		if (!diff->runs[r].job.read[EVENT_ALLOC])
			return false;
	}
	return !diff->compare.nr;
}

/* The exit code. */
static int result(struct diff *diff)
{
	int code = ERR_NONE;

	for (size_t r = 0; r < diff->compare.nr_runs; r++)
		code |= job_summary(&diff->runs[r].job);
	if (!count_compared(diff) && !all_freed(diff)) {
		log_warn("nothing to compare: no event has samples both before and after");
		code = ERR_PARTIAL;
	}
	return count_beyond(diff) ? ERR_SLOWER : code;
}

/* Of the same runs, which it reads again. Their losses have been reported. */
static int write_page(const struct diff *diff, struct args *args, struct err *err)
{
	struct page page = { .path = args->outputs[0].path };
	const char **inputs = xcalloc(diff->compare.nr_runs, sizeof(*inputs));
	int ret;

	for (size_t r = 0; r < diff->compare.nr_runs; r++)
		inputs[r] = diff->runs[r].path;
	page.before = inputs;
	page.nr_before = diff->compare.nr_before;
	page.after = inputs + page.nr_before;
	page.nr_after = diff->compare.nr_runs - page.nr_before;
	ret = page_write(&page, args, err);
	free(inputs);
	return ret;
}

static int run(struct args *args)
{
	struct diff diff;
	struct err err = { 0 };
	int code = ERR_NONE, ret;

	init(&diff, args);
	ret = read_runs(&diff, args, &err);
	if (ret == 0) {
		print(&diff);
		code = result(&diff);
		ret = args->nr_outputs ? write_page(&diff, args, &err) : 0;
	}
	if (ret < 0) {
		log_error("%s", err.msg);
		code = (int)err.code;
	}
	release(&diff);
	return code;
}

const struct command cmd_diff = {
	.name = "diff",
	.usage = "diff BEFORE AFTER [OPTIONS]\n"
		 "       kscope diff --before BEFORE --before BEFORE... AFTER... [OPTIONS]",
	.about = "Show what got slower from one recording to another, and what may be noise.\n"
		 "The exit code is 5 if something got slower by the threshold or more.",
	.examples = "  kscope diff before.data after.data\n"
		    "  kscope diff before.data after.data --by binary --threshold 0.5\n"
		    "  kscope diff --before a1.data --before a2.data --before a3.data "
		    "--before a4.data b?.data\n"
		    "  kscope diff old.kscope new.kscope --absolute --build-dir build\n"
		    "  kscope diff before.data after.data -o diff.html\n",
	.options = OPTION_USES({ &diff_table, 0 }, { &output_table, 0 }),
	.defaults = &(const struct diff_options){ .limit = 20, .threshold = 1 },
	.state_size = sizeof(struct diff_options),
	.reads = true,
	.writers = (const struct writer_ops *const[]){ &diff_ops, NULL },
	.check = check,
	.run = run,
};

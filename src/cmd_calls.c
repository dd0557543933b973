// SPDX-License-Identifier: GPL-2.0-or-later
/* calls: prints how often each function was called, and how long its calls took. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_out.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"
#include "cmd.h"
#include "irqs_off.h"
#include "look.h"
#include "pass/durations.h"
#include "pass/masked.h"

struct calls_options {
	bool json;
	const char *function;	    /* NULL: all */
	struct option_list between; /* empty, or two functions */
	bool syscalls, traps, irqs_off;
	bool histogram;
	bool instructions; /* shares are of instructions, not of the time in which tasks run */
	enum durations_sort sort;
	uint64_t limit; /* rows of a table; 0: all */
};

static const char *const sorts[] = { "self", "total", "calls", "max", "name", NULL };

/* clang-format off: tables are read by the row. */
static const struct option_table calls_table = {
	"Output",
	(const struct option_row[]){
		OPTION_JSON(struct calls_options),
		{ "function", 0, "NAME", "print all figures of this function, and a histogram",
		  OPTION_TEXT(struct calls_options, function) },
		{ "between", 0, "A B", "print the time from each entry of A to the next one of B",
		  OPTION_APPEND(struct calls_options, between) },
		{ "syscalls", 0, NULL, "print system calls, by handler and program",
		  OPTION_FLAG(struct calls_options, syscalls) },
		{ "traps", 0, NULL, "print interrupts and exceptions, likewise",
		  OPTION_FLAG(struct calls_options, traps) },
		{ "irqs-off", 0, NULL, "print the longest stretches with interrupts off",
		  OPTION_FLAG(struct calls_options, irqs_off) },
		{ "histogram", 0, NULL, "print a histogram for each row of a table",
		  OPTION_FLAG(struct calls_options, histogram) },
		{ "instructions", 0, NULL,
		  "sort by instructions and print shares of instructions, not of time",
		  OPTION_FLAG(struct calls_options, instructions) },
		{ "sort", 0, "COLUMN", "sort by self (default), total, calls, max or name",
		  OPTION_WORD(struct calls_options, sort, sorts) },
		{ "limit", 'n', "N", "print at most N rows (default 20, 0: all)",
		  OPTION_NUMBER(struct calls_options, limit, 0, 1000000000) },
		{ 0 },
	},
};
/* clang-format on */

struct calls_report {
	const struct calls_options *asked;
	struct job *job;
	struct durations durations;
	struct masked masked;
	struct buf text;
	struct look look;     /* into text */
	struct json_out json; /* likewise */
};

static int calls_put(struct writer *w, const struct event *ev)
{
	struct calls_report *report = w->priv;

	durations_add(&report->durations, ev);
	masked_add(&report->masked, ev);
	return 0;
}

static int calls_finish(struct writer *w)
{
	const struct calls_report *report = w->priv;

	w->written = (struct written){ .knows = WROTE_CALLS,
				       .begins = report->durations.begun,
				       .ends = report->durations.ended };
	return 0;
}

static const struct writer_ops calls_ops = {
	.name = "calls",
	.needs = WRITER_OUTSIDE,
	.takes = EVENT_BIT(EVENT_SLICE),
	.options = OPTION_USES({ &inlines_table, OPTION_ELSEWHERE },
			       { &gate_table, OPTION_ELSEWHERE }),
	.put = calls_put,
	.finish = calls_finish,
};

enum { MEDIAN = 500, P99 = 990 }; /* per mille */

static double self_share(const struct calls_report *report, const struct durations_row *row)
{
	const struct durations *d = &report->durations;

	return report->asked->instructions ? look_share(row->self_instructions, d->instructions)
					   : look_share(row->self_running, d->running);
}

static double total_share(const struct calls_report *report, const struct durations_row *row)
{
	const struct durations *d = &report->durations;

	return report->asked->instructions ? look_share(row->total_instructions, d->instructions)
					   : look_share(row->total_running, d->running);
}

/* Text */

/* A power of two, as in [4K, 8K). */
static void print_power(struct buf *text, unsigned bit)
{
	if (bit < 64)
		buf_addf(text, "%u%.1s", 1u << bit % 10, &"\0KMGTPE"[bit / 10]);
	else
		buf_adds(text, "16E");
}

static void print_histogram(struct buf *text, const struct histogram *histogram)
{
	uint64_t counts[HISTOGRAM_BITS], most = 0;
	unsigned first = HISTOGRAM_BITS, last = 0;

	histogram_powers(histogram, counts);
	for (unsigned i = 0; i < HISTOGRAM_BITS; i++) {
		if (!counts[i])
			continue;
		most = counts[i] > most ? counts[i] : most;
		first = i < first ? i : first;
		last = i;
	}
	if (first < HISTOGRAM_BITS)
		buf_adds(text, "  ns                      count\n");
	for (unsigned i = first; i < HISTOGRAM_BITS && i <= last; i++) {
		size_t start = text->len;

		buf_adds(text, "  [");
		if (i)
			print_power(text, i);
		else
			buf_adds(text, "0");
		buf_adds(text, ", ");
		print_power(text, i + 1);
		buf_adds(text, ")");
		buf_addf(text, "%*" PRIu64 "  ", 31 - (int)(text->len - start), counts[i]);
		look_bar(text, (double)counts[i] / (double)most);
		buf_addc(text, '\n');
	}
}

static void print_quantiles(struct buf *text, const struct histogram *times, int width)
{
	if (!times->count) {
		for (unsigned i = 0; i < 4; i++)
			buf_addf(text, "%*s", width, "-");
		return;
	}
	look_time(text, width, times->min);
	look_time(text, width, histogram_quantile(times, MEDIAN));
	look_time(text, width, histogram_quantile(times, P99));
	look_time(text, width, times->max);
}

static void print_name(struct calls_report *report, const struct durations_row *row)
{
	struct look *look = &report->look;
	char *name;

	if (!row->inlined) {
		look_function(look, row->name, row->binary);
		return;
	}
	name = xasprintf("%s (inlined)", look_name(look, 0, row->name));
	buf_addf(&report->text, "%-40s %s\n", name, look_name(look, 1, row->binary));
	free(name);
}

static void print_row(struct calls_report *report, const struct durations_row *row)
{
	struct buf *text = &report->text;

	look_percent(&report->look, self_share(report, row));
	buf_addc(text, ' ');
	look_percent(&report->look, total_share(report, row));
	buf_addf(text, " %10" PRIu64, row->count);
	look_time(text, 11, row->self_time);
	look_time(text, 12, row->total_time);
	if (report->durations.counted) {
		look_number(text, 12, row->self_instructions);
		look_number(text, 13, row->total_instructions);
	} else {
		buf_addf(text, "%12s%13s", "-", "-");
	}
	print_quantiles(text, &row->times, 9);
	buf_adds(text, "  ");
	if (row->program)
		buf_addf(text, "%-24s ", look_name(&report->look, 0, row->program));
	print_name(report, row);
	if (report->asked->histogram)
		print_histogram(text, &row->times);
}

static void print_table(struct calls_report *report, enum durations_kind kind)
{
	const struct durations *d = &report->durations;
	uint64_t limit = report->asked->limit, nr = 0;
	struct buf *text = &report->text;

	buf_addf(text,
		 "\n    self    total      calls  self time  total time  self insns  total insns"
		 "      min   median      p99      max  %s\n",
		 kind == DURATIONS_FUNCTION  ? "function"
		 : kind == DURATIONS_SYSCALL ? "program                  handler of system calls"
					     : "program                  handler of traps");
	for (size_t i = 0; i < d->nr; i++) {
		if (d->rows[i].kind != kind)
			continue;
		if (!limit || nr < limit)
			print_row(report, &d->rows[i]);
		nr++;
	}
	if (limit && nr > limit)
		buf_addf(text, "%*s(%" PRIu64 " more rows: --limit 0)\n", 114, "", nr - limit);
}

static void print_line(struct calls_report *report, const char *what, uint64_t time,
		       uint64_t running, double percent, uint64_t instructions)
{
	struct buf *text = &report->text;

	buf_addf(text, "  %-14s", what);
	look_time(text, 10, time);
	buf_adds(text, ", running ");
	look_time(text, 0, running);
	buf_addf(text, ", %.2f%%", percent);
	if (report->durations.counted)
		buf_addf(text, ", %" PRIu64 " instructions", instructions);
	buf_addc(text, '\n');
}

static void print_times(struct buf *text, const struct histogram *times)
{
	if (times->count) {
		buf_adds(text, "      min   median      p99      max\n");
		print_quantiles(text, times, 9);
		buf_addc(text, '\n');
	}
	print_histogram(text, times);
}

static void print_details(struct calls_report *report, const struct durations_row *row)
{
	struct buf *text = &report->text;

	buf_addc(text, '\n');
	print_name(report, row);
	buf_addf(text, "  %-14s%10" PRIu64, row->inlined ? "entries" : "calls", row->count);
	if (row->open)
		buf_addf(text, ", %" PRIu64 " of them not complete", row->open);
	buf_addc(text, '\n');
	print_line(report, "self", row->self_time, row->self_running, self_share(report, row),
		   row->self_instructions);
	print_line(report, "total", row->total_time, row->total_running, total_share(report, row),
		   row->total_instructions);
	print_times(text, &row->times);
}

static bool is_selected(const struct calls_report *report, const struct durations_row *row)
{
	const char *function = report->asked->function;

	return row->kind == DURATIONS_FUNCTION &&
	       (!function || !strcmp(str_text(report->look.strings, row->name), function));
}

static void print_function(struct calls_report *report)
{
	const struct durations *d = &report->durations;

	for (size_t i = 0; i < d->nr; i++) {
		if (is_selected(report, &d->rows[i]))
			print_details(report, &d->rows[i]);
	}
}

static void print_between(struct calls_report *report)
{
	const struct durations *d = &report->durations;
	struct buf *text = &report->text;

	buf_adds(text, "\nfrom ");
	text_add_plain(text, d->from);
	buf_adds(text, " to ");
	text_add_plain(text, d->to);
	buf_addf(text, ": %" PRIu64 " time%s", d->between.count, d->between.count == 1 ? "" : "s");
	if (d->entries > d->between.count)
		buf_addf(text, ", and %" PRIu64 " unmatched", d->entries - d->between.count);
	buf_addc(text, '\n');
	print_times(text, &d->between);
}

static void print_irqs_off(struct calls_report *report)
{
	if (report->masked.nr)
		irqs_off_table(&report->look, &report->job->world, &report->masked);
	else if (report->job->masks)
		buf_adds(&report->text, "\ninterrupts were never off in the selection\n");
	if (report->asked->histogram)
		print_histogram(&report->text, &report->masked.times);
}

static void print_text(struct calls_report *report)
{
	struct world *world = &report->job->world;
	const struct calls_options *asked = report->asked;
	const struct durations *d = &report->durations;
	struct buf *text = &report->text;

	if (!d->nr) {
		buf_adds(text, "no calls\n");
		return;
	}
	buf_addf(text, "%" PRIu64 " calls ", d->calls);
	if (d->inlined)
		buf_addf(text, "and %" PRIu64 " entries of inlined functions ", d->inlined);
	buf_addf(text, "in %zu task%s, which ran for ", d->nr_selected,
		 d->nr_selected == 1 ? "" : "s");
	text_duration(text, d->running);
	if (d->counted)
		buf_addf(text, " and %" PRIu64 " instructions", d->instructions);
	buf_addf(text, "; shares are of %s\n",
		 asked->instructions ? "these instructions" : "this time");
	if (d->gaps) {
		buf_addf(text, "%" PRIu64 " gap%s, ", d->gaps, d->gaps == 1 ? "" : "s");
		text_duration(text, d->gap_time);
		buf_addc(text, '\n');
	}
	irqs_off_summary(&report->look, world, &report->masked);
	if (asked->function)
		print_function(report);
	if (asked->between.nr)
		print_between(report);
	if (asked->syscalls)
		print_table(report, DURATIONS_SYSCALL);
	if (asked->traps)
		print_table(report, DURATIONS_TRAP);
	if (asked->irqs_off)
		print_irqs_off(report);
	if (!asked->function && !asked->between.nr && !asked->syscalls && !asked->traps &&
	    !asked->irqs_off)
		print_table(report, DURATIONS_FUNCTION);
}

/* JSON */

static void json_times(struct json_out *to, const struct histogram *times)
{
	uint64_t counts[HISTOGRAM_BITS];

	if (times->count) {
		json_out_u64(to, "min", times->min);
		json_out_u64(to, "median", histogram_quantile(times, MEDIAN));
		json_out_u64(to, "p99", histogram_quantile(times, P99));
		json_out_u64(to, "max", times->max);
	}
	histogram_powers(times, counts);
	json_out_array(to, "histogram");
	for (unsigned i = 0; i < HISTOGRAM_BITS; i++) {
		if (!counts[i])
			continue;
		json_out_object(to, NULL);
		json_out_u64(to, "from", i ? (uint64_t)1 << i : 0);
		json_out_u64(to, "count", counts[i]);
		json_out_end(to);
	}
	json_out_end(to);
}

static void json_row(struct calls_report *report, const struct durations_row *row)
{
	struct json_out *to = &report->json;
	const struct strtab *strings = report->look.strings;

	json_out_object(to, NULL);
	json_out_text(to, "name", str_text(strings, row->name));
	json_out_text(to, "binary", str_text(strings, row->binary));
	if (row->inlined)
		json_out_bool(to, "inlined", true);
	if (row->kind != DURATIONS_FUNCTION)
		json_out_text(to, "program", str_text(strings, row->program));
	json_out_u64(to, "count", row->count);
	json_out_u64(to, "open", row->open);
	json_out_u64(to, "self_time", row->self_time);
	json_out_u64(to, "total_time", row->total_time);
	json_out_u64(to, "self_running", row->self_running);
	json_out_u64(to, "total_running", row->total_running);
	if (report->durations.counted) {
		json_out_u64(to, "self_instructions", row->self_instructions);
		json_out_u64(to, "total_instructions", row->total_instructions);
	}
	json_out_double(to, "self_percent", self_share(report, row), 4);
	json_out_double(to, "total_percent", total_share(report, row), 4);
	json_times(to, &row->times);
	json_out_end(to);
}

static void json_rows(struct calls_report *report, const char *key, enum durations_kind kind)
{
	const struct durations *d = &report->durations;

	json_out_array(&report->json, key);
	for (size_t i = 0; i < d->nr; i++) {
		if (kind == DURATIONS_FUNCTION ? is_selected(report, &d->rows[i])
					       : d->rows[i].kind == kind)
			json_row(report, &d->rows[i]);
	}
	json_out_end(&report->json);
}

static void json_between(struct calls_report *report)
{
	const struct durations *d = &report->durations;
	struct json_out *to = &report->json;

	json_out_object(to, "between");
	json_out_text(to, "from", d->from);
	json_out_text(to, "to", d->to);
	json_out_u64(to, "count", d->between.count);
	json_out_u64(to, "unmatched", d->entries - d->between.count);
	json_times(to, &d->between);
	json_out_end(to);
}

static void json_irqs_off(struct calls_report *report)
{
	struct json_out *to = &report->json;

	json_out_object(to, "interrupts_off");
	json_out_bool(to, "recorded", report->job->masks);
	irqs_off_json(to, &report->job->world, &report->masked);
	json_times(to, &report->masked.times);
	json_out_end(to);
}

static void print_json(struct calls_report *report)
{
	const struct durations *d = &report->durations;
	struct json_out *to = &report->json;

	to->to = &report->text;
	json_out_object(to, NULL);
	json_out_u64(to, "count", d->calls);
	json_out_u64(to, "inlined", d->inlined);
	json_out_u64(to, "tasks", d->nr_selected);
	json_out_u64(to, "time", d->time);
	json_out_u64(to, "running", d->running);
	if (d->counted)
		json_out_u64(to, "instructions", d->instructions);
	json_out_u64(to, "gaps", d->gaps);
	json_out_u64(to, "gap_time", d->gap_time);
	json_out_u64(to, "lost", report->job->lost);
	json_out_u64(to, "damaged", report->job->damaged);
	json_rows(report, "functions", DURATIONS_FUNCTION);
	json_rows(report, "syscalls", DURATIONS_SYSCALL);
	json_rows(report, "traps", DURATIONS_TRAP);
	json_irqs_off(report);
	if (d->from)
		json_between(report);
	json_out_end(to);
}

/* The verb */

static bool was_called(const struct calls_report *report, const char *name)
{
	const struct durations *d = &report->durations;

	for (size_t i = 0; i < d->nr; i++) {
		if (!strcmp(str_text(report->look.strings, d->rows[i].name), name))
			return true;
	}
	return false;
}

/* It may be misspelled, or inlined into its callers. */
static void warn_of_function(const struct calls_report *report, const char *name)
{
	if (name && !was_called(report, name))
		log_warn("function '%s' was not called in the selection", name);
}

static void print_all(struct calls_report *report)
{
	const struct calls_options *asked = report->asked;

	durations_sort_rows(&report->durations, asked->sort, asked->instructions);
	masked_sort(&report->masked);
	if (asked->json)
		print_json(report);
	else
		print_text(report);
	fwrite(report->text.data, 1, report->text.len, stdout);
	warn_of_function(report, asked->function);
	warn_of_function(report, report->durations.from);
	warn_of_function(report, report->durations.to);
	if (asked->irqs_off && !report->job->masks)
		log_warn(
			"the input does not record when interrupts are off: use kscope record qemu "
			"--trace of this version");
}

/* A sample tells that a function is running, not that it was called. */
static int refuse_samples(struct job *job)
{
	const uint64_t *read = job->read;

	if (read[EVENT_BRANCH] || read[EVENT_CALL] || !(read[EVENT_SAMPLE] || read[EVENT_CHAIN]))
		return 0;
	return err_set(&job->err, ERR_INPUT,
		       "samples do not tell how often functions were called, or how long calls "
		       "took: use kscope report or kscope trace");
}

static int check(const struct args *args, struct err *err)
{
	const struct calls_options *asked = args->state;

	return asked->between.nr > 2
		       ? err_set(err, ERR_USAGE, "--between cannot be given more than once")
		       : 0;
}

static int run(struct args *args)
{
	const struct calls_options *asked = args->state;
	struct job job;
	struct calls_report report = { .asked = asked,
				       .job = &job,
				       .masked = { .limit = asked->limit,
						   .instructions = asked->instructions } };
	struct writer writer = { .ops = &calls_ops, .world = &job.world, .priv = &report };
	struct strtab strings;
	int ret;

	strtab_init(&strings);
	look_init(&report.look, &report.text, &strings);
	args_job(args, &job);
	durations_init(&report.durations, &job.world);
	if (asked->between.nr == 2) {
		report.durations.from = asked->between.all[0];
		report.durations.to = asked->between.all[1];
	}
	ret = job_open(&job, &strings);
	if (ret == 0)
		ret = job_run(&job, (struct writer *[]){ &writer }, 1);
	if (ret == 0)
		ret = refuse_samples(&job);
	if (ret == 0)
		print_all(&report);
	ret = job_result(&job, ret);
	durations_release(&report.durations);
	masked_release(&report.masked);
	look_release(&report.look);
	buf_release(&report.text);
	job_release(&job);
	strtab_release(&strings);
	return ret;
}

const struct command cmd_calls = {
	.name = "calls",
	.usage = "calls INPUT... [OPTIONS]",
	.about =
		"Show how often each function of a trace was called, and how long its calls took.\n"
		"\n"
		"Times are from entry to return, also while the task waits; shares are of the\n"
		"time in which tasks run. The median and p99 (99 % of the calls are not longer)\n"
		"are of complete calls: exact up to 64 calls, and within 0.8 % beyond.",
	.examples = "  kscope record qemu --trace -o t.kscope -- qemu-system-x86_64 ...\n"
		    "  kscope calls t.kscope --sort total\n"
		    "  kscope calls t.kscope --function do_idle --time 1.5,2\n"
		    "  kscope calls t.kscope --between trap_entry schedule\n"
		    "  kscope calls t.kscope --syscalls --histogram\n"
		    "  kscope calls t.kscope --irqs-off -n 5\n"
		    "  kscope calls t.kscope --json | python3 -m json.tool\n",
	.options = OPTION_USES({ &calls_table, 0 }),
	.defaults = &(const struct calls_options){ .limit = 20 },
	.state_size = sizeof(struct calls_options),
	.reads = true,
	.writers = (const struct writer_ops *const[]){ &calls_ops, NULL },
	.check = check,
	.run = run,
};

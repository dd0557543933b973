// SPDX-License-Identifier: GPL-2.0-or-later
/* flame: draws a flame graph of one profile, or of the difference between two. */
#include <stdlib.h>

#include "base/log.h"
#include "base/mem.h"
#include "cmd.h"
#include "pass/tally.h"
#include "write/flame_style.h"

struct flame_verb {
	const char *before; /* --diff */
	bool negate;
};

static const struct option_table verb_table = {
	"Output",
	(const struct option_row[]){
		OPTION_OUTPUT("write this file; - is stdout"),
		{ "diff", 0, "BEFORE", "colour frames by the change against BEFORE",
		  OPTION_TEXT(struct flame_verb, before), .completion = COMPLETE_FILE },
		{ "negate", 0, NULL, "with --diff, draw the widths of BEFORE",
		  OPTION_FLAG(struct flame_verb, negate) },
		{ 0 },
	},
};

struct side { /* of a comparison */
	struct flame_options options;
	struct tally tally;
};

static int put_sample(struct writer *w, const struct event *ev)
{
	struct side *side = w->priv;

	tally_add(&side->tally, ev);
	return 0;
}

static const struct writer_ops side_ops = {
	.name = "svg",
	.takes = EVENT_BIT(EVENT_SAMPLE),
	.options = FLAME_OPTIONS(struct side, options),
	.put = put_sample,
};

/* Adds one side of the comparison to the tree. */
static int add_side(struct job *job, struct strtab *strings, struct tree *tree, bool before,
		    struct flame_style *style)
{
	struct side side = { 0 };
	const struct tally_options *options = &side.options.tally;
	struct writer writer = { .ops = &side_ops, .world = &job->world, .priv = &side };
	int ret = option_apply(side_ops.options, &side, job->options->given, &job->err);

	if (ret == 0)
		ret = job_open(job, strings);
	tally_init(&side.tally, &job->world, tally_by_options(options));
	if (ret == 0)
		ret = job_run(job, (struct writer *[]){ &writer }, 1);
	if (ret == 0) {
		struct tally_view view = {
			.options = options,
			.weight = tally_counts_weight(&side.tally, options, MEASURE_SAMPLES),
			.before = before,
		};

		tally_tree(&side.tally, tree, &view);
		if (!before) {
			flame_style_from(style, &side.options);
			style->unit = tally_unit(&side.tally, view.weight);
		}
	}
	tally_release(&side.tally);
	return ret;
}

static int draw(const struct tree *tree, const struct flame_style *style, const char *path,
		struct err *err)
{
	struct out out = { .fd = -1 };

	if (out_open(&out, path, false, err) < 0)
		return -1;
	flame_svg(&out, tree, style);
	return out_commit(&out, err);
}

static int run_diff(struct args *args, const struct flame_verb *asked, const char *output)
{
	struct job before, after;
	struct flame_style style = { 0 };
	struct strtab strings;
	struct tree tree;
	struct err err = { 0 };
	int ret = 0, code;

	args_job(args, &after);
	args_job(args, &before);
	before.inputs = &asked->before;
	before.nr_inputs = 1;
	strtab_init(&strings);
	tree_init(&tree, &strings);
	if (add_side(&before, &strings, &tree, !asked->negate, &style) < 0) {
		err = before.err;
		ret = -1;
	}
	if (ret == 0 && add_side(&after, &strings, &tree, asked->negate, &style) < 0) {
		err = after.err;
		ret = -1;
	}
	if (ret == 0) {
		style.differential = true;
		style.negate = asked->negate;
		tree_finish(&tree);
		ret = draw(&tree, &style, output, &err);
	}
	if (ret < 0) {
		log_error("%s", err.msg);
		code = err.code;
	} else {
		code = job_summary(&before) | job_summary(&after);
	}
	tree_release(&tree);
	job_release(&before);
	job_release(&after);
	strtab_release(&strings);
	return code;
}

/* Any name will do, unless it says that the file is something else. */
static int check_extension(const char *path, struct err *err)
{
	struct err none = { 0 };
	const struct writer_ops *other = writer_choose(NULL, path, &none);

	if (!other || other == writer_by_name("svg"))
		return 0;
	return err_set(err, ERR_USAGE, "%s: flame writes SVG: use kscope convert for %s", path,
		       other->name);
}

static int check(const struct args *args, struct err *err)
{
	const struct flame_verb *asked = args->state;

	if (asked->negate && !asked->before)
		return err_set(err, ERR_USAGE, "--negate needs --diff BEFORE");
	if (args->nr_outputs > 1)
		return err_set(err, ERR_USAGE,
			       "flame draws one picture: use one -o, or kscope convert for several "
			       "outputs");
	return check_extension(args->outputs[0].path, err);
}

static int run(struct args *args)
{
	const struct flame_verb *asked = args->state;
	const char *output = args->outputs[0].path;
	struct job job;

	if (asked->before)
		return run_diff(args, asked, output);
	args_job(args, &job);
	return convert_file(&job, writer_by_name("svg"), output);
}

const struct command cmd_flame = {
	.name = "flame",
	.usage = "flame INPUT... [-o FILE] [OPTIONS]",
	.about = "Draw a flame graph. Widths show samples, or bytes or time if the data counts "
		 "those. With\n--weight, they show the weight of the samples, such as cycles.",
	.examples = "  kscope flame samples.json --build-dir build -o flame.svg\n"
		    "  kscope flame perf.data --inverted --palette by-binary -o leaves.svg\n"
		    "  kscope flame new.folded --diff old.folded -o change.svg\n",
	.options = OPTION_USES({ &verb_table, 0 }),
	.state_size = sizeof(struct flame_verb),
	.reads = true,
	.writers = (const struct writer_ops *const[]){ &side_ops, NULL },
	.output = "flame.svg",
	.check = check,
	.run = run,
};

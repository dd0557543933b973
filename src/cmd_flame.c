// SPDX-License-Identifier: GPL-2.0-or-later
/* flame: a flame graph, of one profile or of the change between two. */
#include <stdlib.h>

#include "base/log.h"
#include "base/mem.h"
#include "cmd.h"
#include "pass/tally.h"
#include "write/flame_style.h"

static int put_sample(struct writer *w, const struct event *ev)
{
	tally_add(w->priv, ev);
	return 0;
}

static const struct writer_ops tally_ops = { .name = "tally",
					     .takes = EVENT_BIT(EVENT_SAMPLE),
					     .put = put_sample };

/* One side of the comparison, added to the tree. */
static int add_side(struct job *job, struct strtab *strings, struct tree *tree, bool before,
		    struct flame_style *style)
{
	struct tally tally;
	struct writer writer = {
		.ops = &tally_ops, .options = job->options, .world = &job->world, .priv = &tally
	};
	int ret = job_open(job, strings);

	tally_init(&tally, &job->world, tally_by_options(job->options));
	if (ret == 0)
		ret = job_run(job, (struct writer *[]){ &writer }, 1);
	if (ret == 0) {
		struct tally_view view = {
			.options = job->options,
			.weight = tally_counts_weight(&tally, job->options, MEASURE_SAMPLES),
			.before = before,
		};

		tally_tree(&tally, tree, &view);
		if (!before)
			style->unit = tally_unit(&tally, view.weight);
	}
	tally_release(&tally);
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

static int run_diff(struct args *args, const char *output)
{
	struct job before, after;
	struct flame_style style;
	struct strtab strings;
	struct tree tree;
	struct err err = { 0 };
	int ret, code;

	args_job(args, &after);
	args_job(args, &before);
	before.inputs = &args->before;
	before.nr_inputs = 1;
	strtab_init(&strings);
	tree_init(&tree, &strings);
	ret = flame_style_from(&style, &args->options, &err);
	style.differential = true;
	style.negate = args->negate;
	if (ret == 0 && add_side(&before, &strings, &tree, !args->negate, &style) < 0) {
		err = before.err;
		ret = -1;
	}
	if (ret == 0 && add_side(&after, &strings, &tree, args->negate, &style) < 0) {
		err = after.err;
		ret = -1;
	}
	if (ret == 0) {
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

static int run(struct args *args)
{
	const char *output = "flame.svg";
	struct job job;

	if (args->nr_outputs > 1) {
		log_error("flame draws one picture: use one -o, or kscope convert for several "
			  "outputs");
		return ERR_USAGE;
	}
	if (args->nr_outputs)
		output = args->outputs[0].path;
	if (args->before)
		return run_diff(args, output);
	args_job(args, &job);
	return convert_file(&job, writer_by_name("svg"), output);
}

const struct command cmd_flame = {
	.name = "flame",
	.verb = VERB_FLAME,
	.usage = "flame INPUT... [-o FILE] [OPTIONS]",
	.about = "Draw a flame graph. Widths are samples, or bytes or time if the data is about "
		 "those; with\n--weight they are cycles or whatever was counted.",
	.examples = "  kscope flame samples.json --build-dir build -o flame.svg\n"
		    "  kscope flame perf.data --inverted --palette by-binary -o leaves.svg\n"
		    "  kscope flame new.folded --diff old.folded -o change.svg\n",
	.run = run,
};

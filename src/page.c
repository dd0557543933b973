// SPDX-License-Identifier: GPL-2.0-or-later
#include "page.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "write/html.h"

int page_check(const char *path, struct err *err)
{
	struct err none = { 0 };
	const struct writer_ops *other = writer_choose(NULL, path, &none);

	if (!strcmp(path, "-"))
		return err_set(
			err, ERR_USAGE,
			"the page cannot go to stdout, which gets the table: use -o FILE.html");
	if (other == writer_by_name("html"))
		return 0;
	return err_set(err, ERR_USAGE, "%s: the page is HTML: use -o FILE.html", path);
}

static int write_side(struct job *job, struct out *out, enum html_part part)
{
	const struct writer_ops *ops = writer_by_name("html");
	struct html *html = xcalloc(1, ops->priv_size);
	struct writer writer = {
		.ops = ops, .input = job_name(job), .world = &job->world, .out = out, .priv = html
	};
	struct strtab strings;
	int ret = option_apply(ops->options, html, job->options->given, &job->err);

	strtab_init(&strings);
	html->part = part;
	if (ret == 0)
		ret = job_open(job, &strings);
	if (ret == 0) {
		ops->open(&writer);
		ret = job_run(job, (struct writer *[]){ &writer }, 1);
		ops->close(&writer);
	}
	free(html);
	job_release(job);
	strtab_release(&strings);
	return ret;
}

int page_write(const struct page *page, const struct args *args, struct err *err)
{
	struct job before, after;
	struct out out = { .fd = -1 };

	args_job(args, &before);
	before.inputs = page->before;
	before.nr_inputs = page->nr_before;
	args_job(args, &after);
	after.inputs = page->after;
	after.nr_inputs = page->nr_after;
	if (output_check_inputs(&before, page->path, false, err) < 0 ||
	    output_check_inputs(&after, page->path, false, err) < 0 ||
	    out_open(&out, page->path, false, err) < 0)
		return -1;
	if (write_side(&before, &out, HTML_BEFORE) < 0) {
		*err = before.err;
	} else if (write_side(&after, &out, HTML_AFTER) < 0) {
		*err = after.err;
	} else {
		return out_commit(&out, err);
	}
	out_abandon(&out);
	return -1;
}

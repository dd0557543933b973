// SPDX-License-Identifier: GPL-2.0-or-later
#include "effect.h"

#include <string.h>

#include "base/buf.h"
#include "base/log.h"

/* These options have an effect if the data has binaries, --kernel only if one is a kernel. */
static void mark_names(struct job *job)
{
	const struct images *images = &job->world.images;

	for (size_t i = 1; i < images->nr; i++) {
		option_mark_name("build-dir", job->options->given);
		option_mark_name("symfs", job->options->given);
		if (images->all[i].kernel)
			option_mark_name("kernel", job->options->given);
	}
}

void effect_mark(struct job *job)
{
	for (size_t i = 0; i < job->merge.nr; i++)
		option_mark(job->merge.inputs[i].reader.ops->options, job->options->given);
	chain_mark_options(&job->chain);
	for (size_t i = 0; i < job->nr_to; i++)
		option_mark(job->to[i]->options, job->options->given);
	mark_names(job);
}

/* Appends a name unless it is already there. */
static void add_name(struct buf *names, const char *name)
{
	size_t len = strlen(name);

	for (const char *at = names->data; at && (at = strstr(at, name)); at += len) {
		if ((at == names->data || at[-1] == ' ') && strchr(", ", at[len]))
			return;
	}
	buf_addf(names, "%s%s", names->len ? ", " : "", name);
}

/* Whether the option belongs to a writer, or to a stage that only other writers need. */
static bool is_of_output(const struct job *job, const char *option)
{
	for (size_t i = 0; writers[i]; i++) {
		if (option_in(writers[i]->options, option))
			return true;
	}
	for (size_t i = 0; i < NR_STAGES; i++) {
		if (option_in(stages[i]->options, option))
			return !chain_has_option(&job->chain, option);
	}
	return false;
}

static void warn_of_option(const struct job *job, const char *option)
{
	bool output = is_of_output(job, option);
	struct buf names = { 0 };

	for (size_t i = 0; output && i < job->nr_to; i++)
		add_name(&names, job->to[i]->name);
	for (size_t i = 0; !output && i < job->merge.nr; i++)
		add_name(&names, job->merge.inputs[i].reader.ops->name);
	log_warn("--%s has no effect on %s %s", option, names.data, output ? "output" : "input");
	buf_release(&names);
}

void effect_warn(const struct job *job)
{
	struct option_line *given = job->options->given;
	bool empty = !job->read[EVENT_SAMPLE] && !job->read[EVENT_CHAIN] && !job_others(job);

	/* Without events, no option can have an effect. */
	for (size_t i = 0; given && !empty && i < given->nr; i++) {
		if (given->all[i].acted)
			continue;
		warn_of_option(job, given->all[i].row->name);
		option_mark_name(given->all[i].row->name, given); /* warn once */
	}
}

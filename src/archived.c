// SPDX-License-Identifier: GPL-2.0-or-later
#include "archived.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/text.h"

/* Those in struct options. --symfs and --build-dir only say where to search: an archive has what they found. */
static const struct option_use kept[] = {
	{ &names_table, 0 },
	{ &elf_table, 0 },
	{ &slide_table, 0 },
	{ 0 },
};

static const struct option_row *find_in(const struct option_use *uses, const char *name)
{
	const struct option_row *row = NULL;

	for (; uses && uses->table && !row; uses++) {
		if (uses->at != OPTION_ELSEWHERE)
			row = option_find(uses->table, name);
	}
	return row;
}

const struct option_row *archived_row(const char *name)
{
	const struct option_row *row = find_in(kept, name);

	if (!strcmp(name, "symfs"))
		return NULL;
	for (size_t i = 0; !row && readers[i]; i++)
		row = find_in(readers[i]->options, name);
	return row;
}

static const struct option_given *find_given(const struct option_line *line, const char *name)
{
	for (size_t i = 0; line && i < line->nr; i++) {
		if (!strcmp(line->all[i].row->name, name))
			return &line->all[i];
	}
	return NULL;
}

/* The file was missing where the archive was made; one of the same name here is another. */
static bool is_other_file(const struct store *archives, const struct store_option *option)
{
	const char *path = option->value, *equals = strchr(path, '=');
	uint32_t pid;

	if (strcmp(option->name, "kernel") != 0 && strcmp(option->name, "elf") != 0)
		return false;
	if (equals && text_u32(path, (size_t)(equals - path), &pid))
		path = equals + 1;
	return !store_find(archives, STORE_NAME, path) && access(path, F_OK) == 0;
}

static int add_option(struct option_line *more, const struct options *given,
		      const struct store *archive, const struct store_option *option,
		      struct err *err)
{
	const struct option_row *row = archived_row(option->name);
	bool repeats = !strcmp(option->name, "elf");
	const struct option_given *before = repeats ? NULL : find_given(more, option->name);
	struct err wrong = { 0 };

	if (!row)
		return err_set(err, ERR_INPUT, "%s: this version of kscope has no option --%s",
			       archive->archive, option->name);
	if (before && strcmp(before->arg, option->value) != 0)
		return err_set(err, ERR_INPUT,
			       "%s: made with another --%s than the archives before it: read them "
			       "separately",
			       archive->archive, option->name);
	if (before || (!repeats && find_given(given->given, option->name)) ||
	    is_other_file(archive, option))
		return 0;
	if (option_check(row, option->value, &wrong) < 0)
		return err_set(err, ERR_INPUT, "%s: %s", archive->archive, wrong.msg);
	option_add(more, row, option->value);
	more->all[more->nr - 1].acted = true; /* it had an effect when the archive was made */
	return 0;
}

static void add_line(struct option_line *to, const struct option_line *from)
{
	for (size_t i = 0; from && i < from->nr; i++) {
		option_add(to, from->all[i].row, from->all[i].arg);
		to->all[to->nr - 1].acted = from->all[i].acted;
	}
}

/* `elfs` grows: the original must not. */
static void copy_options(struct archived *archived, const struct options *options)
{
	struct options *copy = &archived->options;

	*copy = *options;
	copy->elfs = NULL;
	copy->nr_elfs = copy->cap_elfs = 0;
	for (size_t i = 0; i < options->nr_elfs; i++) {
		GROW(copy->elfs, copy->nr_elfs + 1, copy->cap_elfs);
		copy->elfs[copy->nr_elfs++] = options->elfs[i];
	}
	add_line(&archived->line, options->given);
	copy->given = &archived->line;
}

int archived_merge(struct archived *archived, const struct options *options,
		   const struct store *archives, struct err *err)
{
	struct option_line more = { 0 };
	int ret = 0;

	for (; archives && ret == 0; archives = archives->next) {
		for (size_t i = 0; i < archives->nr_options && ret == 0; i++)
			ret = add_option(&more, options, archives, &archives->options[i], err);
	}
	copy_options(archived, options);
	if (ret == 0)
		ret = option_apply(kept, &archived->options, &more, err);
	add_line(&archived->line, &more);
	free(more.all);
	return ret;
}

void archived_release(struct archived *archived)
{
	free(archived->options.elfs);
	free(archived->line.all);
	memset(archived, 0, sizeof(*archived));
}

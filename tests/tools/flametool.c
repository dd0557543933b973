// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * flametool: folded text on stdin to a flame graph, for developing and testing the drawing alone.
 * "name" may be "name@binary"; the suffixes of folded text _[k], _[u] and _[i] tell kinds. With
 * --diff a line ends in two counts, before and after.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/out.h"
#include "model/strtab.h"
#include "pass/tree.h"
#include "write/flame_svg.h"

struct options {
	struct flame_style style;
	const char *output;
	bool times, marks;
};

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void read_marks(struct tree *tree, struct tree_node *node, const char **text, size_t *len)
{
	const char *at;

	if (*len > 4 && (*text)[*len - 4] == '_' && (*text)[*len - 3] == '[') {
		char mark = (*text)[*len - 2];

		node->kind = mark == 'k' ? TREE_KERNEL : mark == 't' ? TREE_TASK : TREE_USER;
		node->inlined = mark == 'i';
		*len -= 4;
	}
	at = memrchr(*text, '@', *len);
	if (at) {
		node->binary = str_intern(tree->names, at + 1, *len - (size_t)(at + 1 - *text));
		*len = (size_t)(at - *text);
	}
}

static uint32_t add_frame(struct tree *tree, uint32_t parent, const char *text, size_t len,
			  bool marks)
{
	struct tree_node looks = { 0 };
	uint32_t id;

	if (marks)
		read_marks(tree, &looks, &text, &len);
	id = tree_child(tree, parent, str_intern(tree->names, text, len));
	tree->nodes[id].kind = looks.kind;
	tree->nodes[id].inlined = looks.inlined;
	tree->nodes[id].binary = looks.binary;
	return id;
}

/* Cuts the number off the end of the line. */
static uint64_t last_number(char *line, size_t *len)
{
	char *space = memrchr(line, ' ', *len);

	if (!space)
		return 0;
	*len = (size_t)(space - line);
	return strtoull(space + 1, NULL, 10);
}

static void add_line(struct tree *tree, char *line, size_t len, const struct options *options)
{
	uint64_t after = last_number(line, &len);
	uint64_t before = options->style.differential ? last_number(line, &len) : 0;
	uint32_t at = 0;

	while (len) {
		char *semicolon = memchr(line, ';', len);
		size_t part = semicolon ? (size_t)(semicolon - line) : len;

		at = add_frame(tree, at, line, part, options->marks);
		part += semicolon != NULL;
		line += part;
		len -= part;
	}
	tree->nodes[at].self += after;
	tree->nodes[at].before_self += before;
}

static void read_folded(struct tree *tree, const struct options *options)
{
	char *line = NULL;
	size_t cap = 0;
	ssize_t len;

	while ((len = getline(&line, &cap, stdin)) > 0) {
		if (line[len - 1] == '\n')
			line[--len] = '\0';
		add_line(tree, line, (size_t)len, options);
	}
	free(line);
}

static bool flag(struct options *options, const char *arg)
{
	static const char *const palettes[] = { "--hot", "--mem", "--kernel-user", "--by-binary" };
	static const char *const themes[] = { "--auto", "--light", "--dark" };
	struct flame_style *style = &options->style;

	for (unsigned i = 0; i < 4; i++)
		if (!strcmp(arg, palettes[i]))
			return style->palette = i, true;
	for (unsigned i = 0; i < 3; i++)
		if (!strcmp(arg, themes[i]))
			return style->theme = i, true;
	if (!strcmp(arg, "--icicle"))
		return style->icicle = true;
	if (!strcmp(arg, "--inverted"))
		return style->inverted = true;
	if (!strcmp(arg, "--diff"))
		return style->differential = true;
	if (!strcmp(arg, "--negate"))
		return style->negate = true;
	if (!strcmp(arg, "--times"))
		return options->times = true;
	if (!strcmp(arg, "--marks"))
		return options->marks = true;
	return false;
}

static bool value(struct options *options, const char *arg, const char *text)
{
	struct flame_style *style = &options->style;

	if (!strcmp(arg, "--title"))
		style->title = text;
	else if (!strcmp(arg, "--subtitle"))
		style->subtitle = text;
	else if (!strcmp(arg, "--notes"))
		style->notes = text;
	else if (!strcmp(arg, "--unit"))
		style->unit = text;
	else if (!strcmp(arg, "--min"))
		style->min_width_percent = strtod(text, NULL);
	else if (!strcmp(arg, "--width"))
		style->width = (unsigned)strtoul(text, NULL, 10);
	else if (!strcmp(arg, "-o"))
		options->output = text;
	else
		return false;
	return true;
}

static bool parse(struct options *options, int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		if (flag(options, argv[i]))
			continue;
		if (i + 1 == argc || !value(options, argv[i], argv[i + 1])) {
			fprintf(stderr, "flametool: what is %s?\n", argv[i]);
			return false;
		}
		i++;
	}
	return true;
}

static int draw(struct tree *tree, const struct options *options)
{
	struct err err = { 0 };
	struct out out;
	double start = now(), finished, written;
	uint64_t size = 0;

	tree_finish(tree);
	finished = now();
	if (!out_open(&out, options->output, false, &err)) {
		flame_svg(&out, tree, &options->style);
		size = out_offset(&out);
		out_commit(&out, &err);
	}
	written = now();
	if (options->times)
		fprintf(stderr, "%u nodes, finish %.1f ms, svg %.1f ms, %llu bytes\n", tree->nr,
			(finished - start) * 1e3, (written - finished) * 1e3,
			(unsigned long long)size);
	if (err.code)
		fprintf(stderr, "flametool: %s\n", err.msg);
	return (int)err.code;
}

int main(int argc, char **argv)
{
	struct options options = { .output = "-" };
	struct strtab names;
	struct tree tree;
	int result;

	if (!parse(&options, argc, argv))
		return ERR_USAGE;
	strtab_init(&names);
	tree_init(&tree, &names);
	read_folded(&tree, &options);
	result = draw(&tree, &options);
	tree_release(&tree);
	strtab_release(&names);
	return result;
}

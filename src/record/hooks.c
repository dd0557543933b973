// SPDX-License-Identifier: GPL-2.0-or-later
#include "record/hooks.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/text.h"
#include "sym/sym.h"

#define MOST_ARG 7 /* the highest argument that the plugin can read */

struct lookup {
	const struct options *options;
	struct symfile *kernel; /* NULL: none, or not opened yet */
	bool opened;
	bool warned;
	bool moves;
	struct err *err;
};

/* The plugin's option, ours, and the default arguments if the user gives none. */
static const struct {
	const char *plugin, *option, *otherwise;
} kinds[HOOK_KINDS] = {
	[HOOK_START] = { "from", "start-at", "" },
	[HOOK_STOP] = { "to", "stop-at", "" },
	[HOOK_ALLOC] = { "alloc", "alloc", ":arg0:ret" },
	[HOOK_FREE] = { "free", "free", ":arg0" },
	[HOOK_REALLOC] = { "realloc", "realloc", ":arg0:arg1:ret" },
};

static struct symfile *open_file(const struct lookup *at, const char *path)
{
	struct sym_search where = { .symfs = at->options->symfs, .folder = at->options->build_dir };
	struct err err = { 0 };
	struct symfile *file = symfile_open(path, &where, &err);

	if (!file)
		log_warn("%s", err.msg);
	return file;
}

static struct symfile *kernel_file(struct lookup *at)
{
	if (!at->opened && at->options->kernel)
		at->kernel = open_file(at, at->options->kernel);
	at->opened = true;
	return at->kernel;
}

/* Linux with KASLR does not run at its link address. */
static void warn_of_kaslr(struct lookup *at)
{
	uint64_t unused;

	if (!at->moves || at->warned || at->options->slide_given ||
	    !symfile_find(at->kernel, "start_kernel", &unused))
		return;
	at->warned = true;
	log_warn("if %s uses KASLR, kscope cannot find its functions: add nokaslr to -append, "
		 "or use --slide",
		 at->options->kernel);
}

static bool find_in_elfs(const struct lookup *at, const char *name, uint64_t *address, bool *moved)
{
	for (size_t i = 0; i < at->options->nr_elfs; i++) {
		struct symfile *file = open_file(at, at->options->elfs[i].path);
		bool found = file && symfile_find(file, name, address);

		*moved = found && symfile_is_relocatable(file);
		symfile_close(file);
		if (found)
			return true;
	}
	return false;
}

static void add_address(struct buf *line, const char *name, uint64_t address)
{
	if (name)
		buf_addf(line, "%s@", name);
	buf_addx(line, address);
}

/*
 * Appends the address of a name, or just the name if only QEMU can know the address. With `shown`,
 * appends both.
 */
static int add_place(struct lookup *at, struct buf *line, const char *name, bool shown)
{
	const char *front = shown ? name : NULL;
	struct symfile *kernel = kernel_file(at);
	uint64_t address;
	bool moved;

	if (text_u64(name, strlen(name), &address)) {
		buf_addx(line, address);
	} else if (kernel && symfile_find(kernel, name, &address)) {
		warn_of_kaslr(at);
		add_address(line, front, address + at->options->slide);
	} else if (find_in_elfs(at, name, &address, &moved)) {
		if (moved)
			buf_adds(line, name);
		else
			add_address(line, front, address);
	} else if (!kernel && !at->options->nr_elfs) {
		buf_adds(line, name);
	} else {
		return err_set(at->err, ERR_USAGE, "no function %s in %s%s", name,
			       kernel ? at->options->kernel : at->options->elfs[0].path,
			       !!kernel + at->options->nr_elfs > 1 ? " or the other binaries" : "");
	}
	return 0;
}

/* Whether `given` has the form of `want`: ":argN" and ":ret", with any N that the plugin reads. */
static bool right_places(const char *given, const char *want)
{
	while (*want) {
		size_t wanted = strcspn(want + 1, ":"), have;
		bool ret = wanted == 3 && !memcmp(want + 1, "ret", 3);
		uint32_t nr;

		if (*given != ':')
			return false;
		have = strcspn(given + 1, ":");
		if (ret ? have != 3 || memcmp(given + 1, "ret", 3) != 0
			: have < 4 || memcmp(given + 1, "arg", 3) != 0 ||
				    !text_u32(given + 4, have - 3, &nr) || nr > MOST_ARG)
			return false;
		given += 1 + have;
		want += 1 + wanted;
	}
	return !*given;
}

static int add_hook(struct lookup *at, struct buf *line, enum hook_kind kind, const char *text)
{
	const char *otherwise = kinds[kind].otherwise;
	size_t len = *otherwise ? strcspn(text, ":") : strlen(text);
	const char *places = text[len] ? text + len : otherwise;
	struct buf name = { 0 };
	int ret;

	buf_add(&name, text, len);
	if (!len || strpbrk(name.data, ",+"))
		ret = err_set(at->err, ERR_USAGE, "--%s expects a symbol or an address, not '%s'",
			      kinds[kind].option, text);
	else if (*otherwise && !right_places(places, otherwise))
		ret = err_set(at->err, ERR_USAGE, "--%s expects FUNC or FUNC%s, not '%s'",
			      kinds[kind].option, otherwise, text);
	else
		ret = add_place(at, line, name.data, *otherwise);
	buf_adds(line, places);
	buf_release(&name);
	return ret;
}

/* Several --start-at, or --stop-at, become one argument, separated by plus signs. */
static int add_kind(struct lookup *at, struct buf *line, const struct record_options *record,
		    enum hook_kind kind)
{
	const struct option_list *hooks = &record->hooks[kind];
	bool list = kind == HOOK_START || kind == HOOK_STOP;

	for (size_t i = 0; i < hooks->nr; i++) {
		if (list && i)
			buf_addc(line, '+');
		else
			buf_addf(line, ",%s=", kinds[kind].plugin);
		if (add_hook(at, line, kind, hooks->all[i]) < 0)
			return -1;
	}
	return 0;
}

int hooks_add(struct buf *line, const struct record_options *record, const struct options *options,
	      bool moves, struct err *err)
{
	struct lookup at = { .options = options, .moves = moves, .err = err };
	int ret = 0;

	for (unsigned kind = 0; kind < HOOK_KINDS && ret == 0; kind++)
		ret = add_kind(&at, line, record, (enum hook_kind)kind);
	symfile_close(at.kernel);
	return ret;
}

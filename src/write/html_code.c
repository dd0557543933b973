// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Source and instructions of the functions in which most samples are. A page that somebody mails must not contain other
 * files: only those that a binary calls its source, and that have the extension of one, are read.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/store.h"
#include "base/text.h"
#include "write/html.h"

#define MOST_FUNCTIONS 300
#define MOST_INSNS 60000
#define MOST_INSNS_EACH 6000
#define MOST_SOURCE ((size_t)3 << 20) /* bytes of all files */
#define MOST_FILE ((uint64_t)8 << 20)
#define AROUND 12 /* lines shown before the first and after the last line with samples */

struct code_line {
	uint32_t file, line;
};

struct code {
	struct writer *w;
	struct html_block block;
	uint64_t *self; /* samples, by function */
	uint32_t *order;
	size_t nr_order;
	struct code_line *lines;
	size_t nr_lines, cap_lines;
	size_t nr_insns, nr_source;
	struct buf text;
};

/* ---- which functions ---- */

static int by_self(const void *va, const void *vb, void *arg)
{
	uint32_t a = *(const uint32_t *)va, b = *(const uint32_t *)vb;
	const uint64_t *self = arg;

	if (self[a] != self[b])
		return self[a] > self[b] ? -1 : 1;
	return a < b ? -1 : 1;
}

static void add_line(struct code *code, uint32_t file, uint32_t line)
{
	if (!file || !line)
		return;
	GROW(code->lines, code->nr_lines + 1, code->cap_lines);
	code->lines[code->nr_lines++] = (struct code_line){ file, line };
}

/* Rows of calls have no place, so they count for the function of their stack. */
static void find_functions(struct code *code)
{
	struct html *html = code->w->priv;
	const struct html_tables *t = &html->tables;

	code->self = xcalloc(t->nr_functions + 1, sizeof(*code->self));
	code->order = xcalloc(t->nr_functions + 1, sizeof(*code->order));
	for (size_t i = 0; i < html->rows.nr; i++) {
		const struct html_row *row = &html->rows.all[i];
		uint32_t place = html_place(&html->tables, row->stack);
		uint32_t stack = html_stack(t, row->stack);

		code->self[place ? t->places[place].function : t->stacks[stack].function] +=
			row->count;
	}
	for (uint32_t i = 0; i < t->nr_functions; i++) {
		if (code->self[i] && t->functions[i].frame)
			code->order[code->nr_order++] = i;
	}
	if (code->nr_order)
		qsort_r(code->order, code->nr_order, sizeof(*code->order), by_self, code->self);
	if (code->nr_order > MOST_FUNCTIONS)
		code->nr_order = MOST_FUNCTIONS;
	memset(code->self, 0, t->nr_functions * sizeof(*code->self));
	for (size_t i = 0; i < code->nr_order; i++)
		code->self[code->order[i]] = 1;
}

static void find_lines(struct code *code)
{
	struct html *html = code->w->priv;
	const struct html_tables *t = &html->tables;

	for (size_t i = 1; i < t->nr_places; i++) {
		if (code->self[t->places[i].function])
			add_line(code, t->places[i].file, t->places[i].line);
	}
	for (size_t i = 0; i < code->nr_order; i++) {
		const struct html_function *function = &t->functions[code->order[i]];

		add_line(code, function->file, function->line);
	}
}

/* ---- instructions ---- */

static void put_insn(struct code *code, struct symfile *file, uint64_t address, uint64_t offset,
		     const char *text)
{
	struct html *html = code->w->priv;
	struct json_out *json = &code->block.json;
	struct sym_frame frames[SYM_MAX_INLINE];
	uint32_t source = 0;

	json_out_array(json, NULL);
	json_out_u64(json, NULL, offset);
	json_out_text(json, NULL, text);
	if (symfile_lookup(file, address, frames, SYM_MAX_INLINE) && frames[0].file)
		source = html_string(&html->tables,
				     str_intern_z(code->w->world->strings, frames[0].file));
	json_out_u64(json, NULL, source);
	json_out_u64(json, NULL, source ? frames[0].line : 0);
	json_out_end(json);
}

static void put_insns(struct code *code, struct symfile *file, uint64_t start, uint64_t size)
{
	uint64_t at = 0;

	for (size_t nr = 0; at < size && nr < MOST_INSNS_EACH; nr++) {
		struct insn_code insn;
		char text[INSN_TEXT];
		size_t len;

		symfile_insns(file, start + at, &insn);
		if (!insn.bytes || !insn_supports(insn.machine))
			return;
		if (insn.len > size - at)
			insn.len = size - at;
		len = insn_size(&insn);
		if (!len)
			return;
		insn_text(&insn, start + at, INSN_ATT, text);
		put_insn(code, file, start + at, at, text);
		code->nr_insns++;
		at += len;
	}
}

static void put_function(struct code *code, uint32_t number)
{
	struct html *html = code->w->priv;
	struct world *world = code->w->world;
	const struct frame frame = world->frames.all[html->tables.functions[number].frame];
	struct json_out *json = &code->block.json;
	struct sym_frame frames[SYM_MAX_INLINE];
	struct symfile *file;
	char start[24];
	size_t nr;

	if (frame.flags & (FRAME_NAMED | FRAME_UNMAPPED) || code->nr_insns >= MOST_INSNS)
		return;
	file = image_symfile(&world->images, frame.image);
	nr = file ? symfile_lookup(file, image_vaddr(&world->images, frame.image, frame.addr),
				   frames, SYM_MAX_INLINE)
		  : 0;
	if (!nr || !frames[nr - 1].size)
		return;
	snprintf(start, sizeof(start), "%" PRIx64, frames[nr - 1].start);
	json_out_array(json, NULL);
	json_out_u64(json, NULL, number);
	json_out_text(json, NULL, start);
	json_out_array(json, NULL);
	put_insns(code, file, frames[nr - 1].start, frames[nr - 1].size);
	json_out_end(json);
	json_out_end(json);
}

/* ---- source ---- */

static bool is_source(const char *path)
{
	static const char *const extensions[] = {
		"c",  "h",   "cc",    "cpp", "cxx", "hh",  "hpp", "hxx", "inc", "inl", "s",
		"S",  "asm", "rs",    "zig", "d",   "go",  "nim", "adb", "ads", "f90", "m",
		"mm", "ml",  "swift", "l",   "y",   "def", "tcc", "ipp", "v",	"dts", "hs",
	};
	const char *dot = strrchr(text_last_part(path), '.');

	for (size_t i = 0; dot && i < sizeof(extensions) / sizeof(*extensions); i++) {
		if (!strcmp(dot + 1, extensions[i]))
			return true;
	}
	return false;
}

static int by_line(const void *va, const void *vb)
{
	const struct code_line *a = va, *b = vb;

	if (a->file != b->file)
		return a->file < b->file ? -1 : 1;
	return a->line < b->line ? -1 : a->line > b->line;
}

/* A link may lead to another file. */
static bool is_source_here(const struct store *store, const char *path)
{
	char *real = store && store->archive ? xstrdup(path) : realpath(path, NULL);
	bool is = real && is_source(real);

	free(real);
	return is;
}

/* store: of the input. It is NULL for folders that the user named, which are on this machine. */
static bool read_at(struct code *code, struct store *store, const char *path)
{
	uint64_t size = 0;
	ssize_t got;

	if (!is_source_here(store, path) || !store_has(store, path) ||
	    store_read(store, path, NULL, 0, 0, &size) < 0 || !size || size > MOST_FILE)
		return false;
	buf_clear(&code->text);
	got = store_read(store, path, buf_reserve(&code->text, size), size, 0, NULL);
	code->text.len = got > 0 ? (size_t)got : 0;
	code->text.data[code->text.len] = '\0';
	return got > 0;
}

static bool read_below(struct code *code, const char *folder, const char *path)
{
	char *name = xasprintf("%s/%s", folder, path);
	bool found = read_at(code, NULL, name);

	free(name);
	return found;
}

/* Below --symfs, at its path, or below --build-dir, where the first folders of its path may be missing. */
static bool read_source(struct code *code, const char *path)
{
	const struct image_search *where = code->w->world->images.where;

	if (!is_source(path))
		return false;
	if (where && where->symfs && read_below(code, where->symfs, path))
		return true;
	if (read_at(code, where ? where->debug.store : NULL, path))
		return true;
	while (where && where->build_dir && path && *path) {
		if (read_below(code, where->build_dir, path))
			return true;
		path = strchr(path + 1, '/');
		path = path ? path + 1 : NULL;
	}
	return false;
}

/* The lines from `first` to `last` of the text, which *at goes through once: it is the start of line *line. */
static void put_lines(struct code *code, size_t *at, uint32_t *line, uint64_t first, uint64_t last)
{
	struct json_out *json = &code->block.json;

	json_out_array(json, NULL);
	json_out_u64(json, NULL, first);
	json_out_array(json, NULL);
	for (; *at < code->text.len && *line <= last; ++*line) {
		char *begin = code->text.data + *at;
		char *end = memchr(begin, '\n', code->text.len - *at);

		*at = end ? (size_t)(end - code->text.data) + 1 : code->text.len;
		if (*line < first)
			continue;
		if (end)
			*end = '\0';
		json_out_text(json, NULL, begin);
		code->nr_source += strlen(begin);
	}
	json_out_end(json);
	json_out_end(json);
}

/* nr: lines with samples in this file, in order. */
static void put_source(struct code *code, const struct code_line *lines, size_t nr)
{
	struct html *html = code->w->priv;
	struct json_out *json = &code->block.json;
	size_t at = 0, i = 0;
	uint32_t line = 1;

	json_out_array(json, NULL);
	json_out_u64(json, NULL, html_string(&html->tables, lines->file));
	json_out_array(json, NULL);
	while (i < nr && at < code->text.len && code->nr_source < MOST_SOURCE) {
		uint64_t first = lines[i].line > AROUND ? lines[i].line - AROUND : 1;
		uint64_t last = (uint64_t)lines[i].line + AROUND;

		for (; i < nr && lines[i].line <= last + AROUND + 1; i++)
			last = (uint64_t)lines[i].line + AROUND;
		put_lines(code, &at, &line, first, last);
	}
	json_out_end(json);
	json_out_end(json);
}

static void put_sources(struct code *code)
{
	const struct strtab *strings = code->w->world->strings;

	if (code->nr_lines)
		qsort(code->lines, code->nr_lines, sizeof(*code->lines), by_line);
	for (size_t i = 0, end; i < code->nr_lines; i = end) {
		for (end = i; end < code->nr_lines && code->lines[end].file == code->lines[i].file;)
			end++;
		if (code->nr_source < MOST_SOURCE &&
		    read_source(code, str_text(strings, code->lines[i].file)))
			put_source(code, code->lines + i, end - i);
	}
}

int html_write_code(struct writer *w, bool before)
{
	struct code code = { .w = w };
	int ret;

	if (before)
		return 0;
	find_functions(&code);
	find_lines(&code);
	html_block_begin(&code.block, w->out, "code", before);
	json_out_array(&code.block.json, "functions");
	for (size_t i = 0; i < code.nr_order; i++)
		put_function(&code, code.order[i]);
	json_out_end(&code.block.json);
	json_out_array(&code.block.json, "sources");
	put_sources(&code);
	json_out_end(&code.block.json);
	ret = html_block_end(&code.block, &w->err);
	free(code.self);
	free(code.order);
	free(code.lines);
	buf_release(&code.text);
	return ret;
}

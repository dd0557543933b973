// SPDX-License-Identifier: GPL-2.0-or-later
#include "record/line.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "record/hooks.h"

static bool starts(const char *text, const char *with)
{
	return !strncmp(text, with, strlen(with));
}

/* The word after word i, if word i is this option, with one dash or two; else NULL. */
static const char *value_of(const struct qemu_line *line, size_t i, const char *option)
{
	const char *word = line->words[i];

	if (*word != '-' || i + 1 == line->nr)
		return NULL;
	word += word[1] == '-' ? 2 : 1;
	return strcmp(word, option) ? NULL : line->words[i + 1];
}

static bool is_flag(const char *word, const char *flag)
{
	return *word == '-' && !strcmp(word + (word[1] == '-' ? 2 : 1), flag);
}

/* A value in a list: ends at a comma, but two commas mean one. The caller frees it. */
static char *copy_value(const char *from)
{
	char *value = xmalloc(strlen(from) + 1), *to = value;

	for (; *from; from++) {
		if (*from == ',' && *++from != ',')
			break;
		*to++ = *from;
	}
	*to = '\0';
	return value;
}

/* The part after the next comma that ends a value; NULL: none. */
static const char *next_part(const char *at)
{
	while ((at = strchr(at, ',')) && at[1] == ',')
		at += 2;
	return at ? at + 1 : NULL;
}

/* The value of "name=value" in a list with commas. The caller frees it. NULL: none. */
static char *list_value(const char *list, const char *name)
{
	size_t len = strlen(name);

	for (const char *at = list; at; at = next_part(at)) {
		if (!strncmp(at, name, len) && at[len] == '=')
			return copy_value(at + len + 1);
	}
	return NULL;
}

/* Hardware accelerators do not translate the guest's code, so a plugin sees nothing. */
static bool is_hardware(const char *name)
{
	return starts(name, "kvm") || starts(name, "hvf") || starts(name, "whpx") ||
	       starts(name, "nvmm") || starts(name, "xen");
}

static void find_accelerator(struct qemu_line *line, size_t i)
{
	const char *accel = value_of(line, i, "accel"), *machine = value_of(line, i, "machine");
	char *of_machine;

	if (is_flag(line->words[i], "enable-kvm") || (accel && is_hardware(accel)))
		line->accelerator = line->words[i + !!accel];
	if (!machine)
		machine = value_of(line, i, "M");
	of_machine = machine ? list_value(machine, "accel") : NULL;
	if (of_machine && is_hardware(of_machine))
		line->accelerator = machine;
	free(of_machine);
}

/* Where a -serial or a -chardev goes. */
static void set_serial(struct qemu_line *line, const char *text)
{
	line->serial_text = text;
	if (starts(text, "mon:"))
		text += 4;
	if (!strcmp(text, "stdio") || starts(text, "stdio,")) {
		line->serial = SERIAL_STDOUT;
	} else if (starts(text, "file:")) {
		line->serial = SERIAL_FILE;
		line->serial_file = xstrdup(text + 5);
	} else if (starts(text, "file,")) {
		char *append = list_value(text, "append");

		line->serial = SERIAL_FILE;
		line->serial_file = list_value(text, "path");
		line->serial_appends = append && !strcmp(append, "on");
		free(append);
	} else {
		line->serial = SERIAL_ELSEWHERE;
	}
}

static const char *chardev(const struct qemu_line *line, const char *id)
{
	for (size_t i = 1; i < line->nr; i++) {
		const char *text = value_of(line, i, "chardev");
		char *its_id = text ? list_value(text, "id") : NULL;
		bool found = its_id && !strcmp(its_id, id);

		free(its_id);
		if (found)
			return text;
	}
	return NULL;
}

/* The first serial port or, if there is none, whatever writes to standard output. */
static void find_serial(struct qemu_line *line)
{
	const char *first = NULL, *other = NULL;
	bool nographic = false;

	for (size_t i = 1; i < line->nr; i++) {
		const char *serial = value_of(line, i, "serial");
		const char *console = value_of(line, i, "chardev");

		if (!console)
			console = value_of(line, i, "debugcon");
		nographic |= is_flag(line->words[i], "nographic");
		if (!first)
			first = serial;
		if (console && starts(console, "stdio"))
			other = console;
	}
	if (first && starts(first, "chardev:"))
		first = chardev(line, first + 8) ? chardev(line, first + 8) : first;
	if (!first || !strcmp(first, "none") || !strcmp(first, "null"))
		first = other ? other : nographic && !first ? "stdio" : first;
	if (first)
		set_serial(line, first);
}

/* Options of a user-mode QEMU without a value; all others have one. */
static bool stands_alone(const char *word)
{
	static const char *const flags[] = { "h",	"help",	   "singlestep",
					     "strace",	"version", "one-insn-per-tb",
					     "perfmap", "jitdump", "xtensa-abi-call0" };

	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		if (is_flag(word, flags[i]))
			return true;
	}
	return false;
}

static void find_program(struct qemu_line *line)
{
	for (size_t i = 1; i < line->nr; i++) {
		if (line->words[i][0] != '-') {
			line->program = line->words[i];
			return;
		}
		i += !stands_alone(line->words[i]);
	}
}

static void find_facts(struct qemu_line *line)
{
	for (size_t i = 1; i < line->nr; i++) {
		const char *kernel = value_of(line, i, "kernel");
		const char *append = value_of(line, i, "append");

		if (kernel)
			line->kernel = kernel;
		line->no_kaslr |= append && strstr(append, "nokaslr");
		line->daemon |= is_flag(line->words[i], "daemonize");
		find_accelerator(line, i);
	}
	find_serial(line);
}

void line_read(struct qemu_line *line, const char *const *words, size_t nr)
{
	const char *name = text_last_part(words[0]);

	*line = (struct qemu_line){ .words = words, .nr = nr };
	line->user = starts(name, "qemu-") && !starts(name, "qemu-system-");
	line->script = !starts(name, "qemu-");
	if (!strcmp(name, "kvm"))
		line->accelerator = words[0];
	if (line->user) {
		find_program(line);
		line->serial = SERIAL_STDOUT;
	} else {
		find_facts(line);
	}
}

void line_release(struct qemu_line *line)
{
	free(line->serial_file);
	line->serial_file = NULL;
}

/* QEMU ends a value at a comma, and reads two commas as one. */
static void add(struct buf *text, const char *name, const char *value)
{
	if (!value)
		return;
	buf_addf(text, "%s%s=", text->len ? "," : "", name);
	for (; *value; value++) {
		buf_addc(text, *value);
		if (*value == ',')
			buf_addc(text, ',');
	}
}

static void add_clock(struct buf *text, const struct record_options *record)
{
	static const char *const clocks[] = { NULL, "guest", "instructions" };
	uint64_t period = record->freq ? 1000000000 / record->freq : record->period;

	add(text, "mode", record->trace ? "trace" : NULL);
	if (record->check)
		buf_addf(text, ",check=%" PRIu64, (record->check + 999) / 1000);
	add(text, "clock", clocks[record->clock]);
	if (period)
		buf_addf(text, ",period=%" PRIu64, period);
	if (record->stack_given)
		buf_addf(text, ",stack=%" PRIu64, record->stack);
	add(text, "vcpu", record->vcpus);
	add(text, "level", record->level);
}

static void add_path(struct buf *text, const char *name, const char *path)
{
	char *whole = path ? realpath(path, NULL) : NULL;

	add(text, name, whole ? whole : path);
	free(whole);
}

int line_plugin(struct buf *text, const struct plugin_paths *paths, const struct qemu_line *line,
		const struct record_options *record, const struct options *options, struct err *err)
{
	buf_clear(text);
	add_path(text, "file", paths->plugin);
	add(text, "out", paths->out);
	add_clock(text, record);
	add_path(text, "kernel", options->kernel);
	for (size_t i = 0; i < options->nr_elfs; i++)
		add_path(text, "elf", options->elfs[i].path);
	add(text, "control", paths->control);
	add(text, "start", record->paused ? "off" : NULL);
	return hooks_add(text, record, options, !line->no_kaslr, err);
}

void line_emulate(struct buf *text, const char *plugin, const char *parts, const char *code)
{
	buf_clear(text);
	add_path(text, "file", plugin);
	add(text, "mode", "pt");
	add(text, "parts", parts);
	add(text, "out", code);
}

const char **line_words(const struct qemu_line *line, const char *plugin, const char *serial)
{
	const char **words = xcalloc(line->nr + 5, sizeof(*words));
	/* A script's own arguments come first; a user program takes all arguments after it. */
	size_t before = line->script ? line->nr : 1, at = before;

	memcpy(words, line->words, before * sizeof(*words));
	words[at++] = "-plugin";
	words[at++] = plugin;
	if (serial) {
		words[at++] = "-serial";
		words[at++] = serial;
	}
	memcpy(words + at, line->words + before, (line->nr - before) * sizeof(*words));
	return words;
}

static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
			    "-_=+,./:@%";

/* In ASCII, as bash, zsh and POSIX.1-2024 read it. */
static void quote_unsafe(struct buf *text, const char *word)
{
	buf_adds(text, "$'");
	for (const char *c = word; *c; c++) {
		if ((uint8_t)*c < ' ' || (uint8_t)*c > '~')
			buf_addf(text, "\\%03o", (uint8_t)*c);
		else if (*c == '\'' || *c == '\\')
			buf_addf(text, "\\%c", *c);
		else
			buf_addc(text, *c);
	}
	buf_addc(text, '\'');
}

static bool is_safe(const char *word)
{
	struct buf scratch = { 0 };
	bool same = !strcmp(text_plain(&scratch, word), word);

	buf_release(&scratch);
	return same;
}

void line_quote(struct buf *text, const char *const *words)
{
	for (size_t i = 0; words[i]; i++) {
		if (i)
			buf_addc(text, ' ');
		if (*words[i] && !words[i][strspn(words[i], plain)]) {
			buf_adds(text, words[i]);
			continue;
		}
		if (!is_safe(words[i])) {
			quote_unsafe(text, words[i]);
			continue;
		}
		buf_addc(text, '\'');
		for (const char *c = words[i]; *c; c++) {
			if (*c == '\'')
				buf_adds(text, "'\\''");
			else
				buf_addc(text, *c);
		}
		buf_addc(text, '\'');
	}
}

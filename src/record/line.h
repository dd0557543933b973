/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * line: reads a QEMU command line for facts about the guest, and adds the plugin to it. A
 * `qemu-system-*` runs a machine, any other `qemu-*` a single program. Any other word is assumed to
 * be a script that passes its arguments on to a `qemu-system-*`.
 */
#ifndef KSCOPE_RECORD_LINE_H
#define KSCOPE_RECORD_LINE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "format.h"
#include "record/record.h"

enum serial {
	SERIAL_NONE,	  /* not on the command line: nobody sees the output */
	SERIAL_STDOUT,	  /* QEMU's standard output */
	SERIAL_FILE,	  /* serial_file */
	SERIAL_ELSEWHERE, /* a socket, a pty... */
};

struct qemu_line {
	const char *const *words; /* borrowed, like all strings here except serial_file */
	size_t nr;
	bool user;		 /* runs a program, not a machine */
	bool script;		 /* not QEMU itself */
	const char *kernel;	 /* from -kernel; NULL: none */
	const char *program;	 /* of a user-mode QEMU */
	const char *accelerator; /* the option for one that is not TCG: plugins do not work */
	bool daemon;		 /* goes to the background */
	bool no_kaslr;		 /* -append has nokaslr */
	enum serial serial;
	const char *serial_text; /* the option's value */
	char *serial_file;	 /* owned */
	bool serial_appends;
};

void line_read(struct qemu_line *line, const char *const *words, size_t nr);
void line_release(struct qemu_line *line);

/* Paths for the plugin's arguments; NULL: none. */
struct plugin_paths {
	const char *plugin, *out, *control;
};

/* The plugin's arguments, from `file=` on. */
int line_plugin(struct buf *text, const struct plugin_paths *paths, const struct qemu_line *line,
		const struct record_options *record, const struct options *options,
		struct err *err);
/* The same for `record emulate`. parts, code: see wire/emulate.h */
void line_emulate(struct buf *text, const char *plugin, const char *parts, const char *code);
/*
 * The words with `-plugin PLUGIN` inserted, and `-serial SERIAL` unless that is NULL; ends with a
 * NULL. The caller frees the array; the words are borrowed.
 */
const char **line_words(const struct qemu_line *line, const char *plugin, const char *serial);
/* Appends the words, quoted for a shell. */
void line_quote(struct buf *text, const char *const *words);

#endif

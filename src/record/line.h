/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * line: the command line of a QEMU: what it tells about the guest, and how the plugin gets in.
 * A `qemu-system-*` runs a machine, another `qemu-*` a single program of it; any other word is
 * taken for a script that hands its arguments on to a `qemu-system-*`.
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
	SERIAL_NONE,	  /* not said: nobody would see it */
	SERIAL_STDOUT,	  /* QEMU's standard output */
	SERIAL_FILE,	  /* serial_file */
	SERIAL_ELSEWHERE, /* a socket, a pty... */
};

struct qemu_line {
	const char *const *words; /* borrowed, as everything here that points to text */
	size_t nr;
	bool user;		 /* runs a program, not a machine */
	bool script;		 /* not QEMU itself */
	const char *kernel;	 /* of -kernel; NULL: none */
	const char *program;	 /* of a user-mode QEMU */
	const char *accelerator; /* one that is not TCG, where no plugin works */
	bool daemon;		 /* goes to the background */
	bool no_kaslr;		 /* the kernel is told to stay where it is linked */
	enum serial serial;
	const char *serial_text; /* how the command line says it */
	char *serial_file;	 /* owned */
	bool serial_appends;
};

void line_read(struct qemu_line *line, const char *const *words, size_t nr);
void line_release(struct qemu_line *line);

/* Which files and sockets the plugin is told of; NULL: none. */
struct plugin_paths {
	const char *plugin, *out, *control;
};

/* The plugin's arguments, from `file=` on. */
int line_plugin(struct buf *text, const struct plugin_paths *paths, const struct qemu_line *line,
		const struct record_options *record, const struct options *options,
		struct err *err);
/*
 * All words with `-plugin TEXT` among them, and `-serial SERIAL` unless that is NULL; ends with a
 * NULL. The array is the caller's to free, the words are borrowed.
 */
const char **line_words(const struct qemu_line *line, const char *plugin, const char *serial);
/* The words as a shell reads them. */
void line_quote(struct buf *text, const char *const *words);

#endif

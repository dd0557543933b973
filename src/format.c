// SPDX-License-Identifier: GPL-2.0-or-later
#include "format.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"

#define MAX_COMPLAINTS 8
#define HEAD 4096 /* bytes at the start of an input that tell its format */

#define READER(name) extern const struct reader_ops read_##name;
#define WRITER(name) extern const struct writer_ops write_##name;
#include "formats.def"
#undef READER
#undef WRITER

const struct reader_ops *const readers[] = {
#define READER(name) &read_##name,
#define WRITER(name)
#include "formats.def"
#undef READER
#undef WRITER
	NULL
};

const struct writer_ops *const writers[] = {
#define READER(name)
#define WRITER(name) &write_##name,
#include "formats.def"
#undef READER
#undef WRITER
	NULL
};

const struct reader_ops *reader_by_name(const char *name)
{
	for (size_t i = 0; readers[i]; i++) {
		if (!strcmp(readers[i]->name, name))
			return readers[i];
	}
	return NULL;
}

const struct reader_ops *reader_by_content(struct in *in)
{
	const struct reader_ops *best = NULL;
	size_t len = 0, want = 1;
	int most = 0;

	/* A reader of live input decides by the first bytes; the others see all of the head. */
	while (want && !(best && best->live)) {
		const uint8_t *head = in_peek(in, want, &len);

		best = NULL;
		most = 0;
		for (size_t i = 0; readers[i]; i++) {
			int bits = readers[i]->probe(head, len < HEAD ? len : HEAD);

			if (bits > most) {
				most = bits;
				best = readers[i];
			}
		}
		want = len < want || len >= HEAD ? 0 : len + 1;
	}
	return best;
}

char *reader_folder_file(const char *path)
{
	for (size_t i = 0; readers[i]; i++) {
		const char *name = readers[i]->folder_file;
		char *file = name ? xasprintf("%s/%s", path, name) : NULL;

		if (file && access(file, F_OK) == 0)
			return file;
		free(file);
	}
	return NULL;
}

const struct writer_ops *writer_by_name(const char *name)
{
	for (size_t i = 0; writers[i]; i++) {
		if (!strcmp(writers[i]->name, name))
			return writers[i];
	}
	return NULL;
}

static const struct writer_ops *by_extension(const char *path)
{
	size_t len = strlen(path);

	for (size_t i = 0; writers[i]; i++) {
		size_t ext = writers[i]->extension ? strlen(writers[i]->extension) : 0;

		if (ext && len > ext && !strcmp(path + len - ext, writers[i]->extension))
			return writers[i];
	}
	return NULL;
}

const struct writer_ops *writer_choose(const char *name, const char *path, struct err *err)
{
	const struct writer_ops *ops = name ? writer_by_name(name) : by_extension(path);

	if (!ops && name)
		err_set(err, ERR_USAGE, "unknown output format '%s': see kscope formats", name);
	else if (!ops)
		err_set(err, ERR_USAGE,
			"%s: the extension selects no format: use -t FORMAT (see kscope formats)",
			path);
	return ops;
}

int reader_damage(struct reader *r, struct event *ev, uint64_t offset, uint64_t count,
		  uint64_t bytes, const char *fmt, ...)
{
	struct err err = { 0 };
	char text[300];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	err_at(&err, ERR_PARTIAL, r->in->path, offset, "%s", text);
	r->nr_damaged++;
	if (r->nr_damaged <= MAX_COMPLAINTS)
		log_warn("%s", err.msg);
	else if (r->nr_damaged == MAX_COMPLAINTS + 1)
		log_warn("%s: more damage follows; kscope only counts it from here on",
			 r->in->path);
	ev->kind = EVENT_LOST;
	ev->lost = (struct event_lost){ .count = count, .bytes = bytes, .damage = true };
	return 1;
}

void reader_missing(struct reader *r, const char *fmt, ...)
{
	char text[900];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	log_warn("%s", text);
	r->partial = true;
}

int reader_needs_pids(struct reader *r)
{
	for (size_t i = 0; i < r->options->nr_elfs; i++) {
		const char *path = r->options->elfs[i].path;

		if (r->options->elfs[i].pid == NO_TASK)
			return err_set(&r->err, ERR_USAGE,
				       "--elf %s: %s needs a process ID: use --elf PID=FILE", path,
				       r->ops->name);
	}
	return 0;
}

// SPDX-License-Identifier: GPL-2.0-or-later
#include "format.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/pack.h"
#include "base/text.h"

#define MAX_COMPLAINTS 8
#define HEAD 4096		  /* bytes at the start of an input, to detect its format */
#define SURE 48			  /* matching bits that more bytes do not change; for live input */
#define FAR ((size_t)64 << 10)	  /* bytes to search for records, if the first are damaged */
#define FARTHER ((size_t)1 << 20) /* the same, if the format is one of a few */
#define LEAST_SHARE 75		  /* percent of records in the bytes from the first one on */
#define LEAST_PART 8		  /* at least one in so many bytes is in a record */

#define READER(name) extern const struct reader_ops read_##name;
#define WRITER(name) extern const struct writer_ops write_##name;
#include "formats.def"
#undef READER
#undef WRITER

/* What is part of another program does not read. */
#ifdef KSCOPE_NO_READERS
#define READER_OPS(name)
#else
#define READER_OPS(name) &read_##name,
#endif

const struct reader_ops *const readers[] = {
#define READER(name) READER_OPS(name)
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

/* ---- options that readers share ---- */

/* clang-format off: tables are read by the row. */
const struct option_table build_dir_table = {
	"Names",
	(const struct option_row[]){
		{ "build-dir", 'b', "DIR", "search DIR for the binaries that the data names",
		  OPTION_TEXT(struct options, build_dir), .completion = COMPLETE_FOLDER },
		{ 0 },
	},
};

const struct option_table names_table = {
	"Names",
	(const struct option_row[]){
		{ "symfs", 0, "DIR", "search DIR for binaries and debug files first",
		  OPTION_TEXT(struct options, symfs), .completion = COMPLETE_FOLDER },
		{ "root-dir", .same_as = "symfs" },
		{ "kernel", 'k', "FILE",
		  "read kernel symbols from an ELF, vmlinuz, kallsyms or System.map",
		  OPTION_TEXT(struct options, kernel), .completion = COMPLETE_FILE },
		{ "vmlinux", .same_as = "kernel" },
		{ "kallsyms", .same_as = "kernel" },
		{ 0 },
	},
};

/* clang-format on */

static int set_elf(const struct option_row *row, void *field, const char *arg, struct err *err)
{
	struct options *options = field;
	const char *equals = strchr(arg, '=');
	struct elf_option elf = { .pid = NO_TASK, .path = arg };

	if (equals && text_u32(arg, (size_t)(equals - arg), &elf.pid))
		elf.path = equals + 1;
	if (!*elf.path)
		return err_set(err, ERR_USAGE, "--%s expects FILE or PID=FILE, not '%s'", row->name,
			       arg);
	GROW(options->elfs, options->nr_elfs + 1, options->cap_elfs);
	options->elfs[options->nr_elfs++] = elf;
	return 0;
}

const struct option_table elf_table = {
	"Names",
	(const struct option_row[]){
		{ "elf", 0, "FILE", "use the symbols of this binary; PID=FILE: of this process",
		  .set = set_elf, .completion = COMPLETE_FILE },
		{ 0 },
	},
};

static int set_slide(const struct option_row *row, void *field, const char *arg, struct err *err)
{
	struct options *options = field;

	options->slide_given = strcmp(arg, "auto") != 0;
	return options->slide_given ? option_number(row, &options->slide, arg, err) : 0;
}

const struct option_table slide_table = {
	"Names",
	(const struct option_row[]){
		{ "slide", 0, "BYTES",
		  "set the kernel's relocation offset, as by KASLR (default: auto)",
		  .set = set_slide, .most = UINT64_MAX },
		{ 0 },
	},
};

const struct option_table event_name_table = {
	"Input",
	(const struct option_row[]){
		{ "event-name", 0, "NAME", "set the name of the event, if the data has none",
		  .set = option_text },
		{ 0 },
	},
};

static const char *const axes[] = { "time", "cycles", "insns", NULL }; /* by enum slice_axis */

/* clang-format off: tables are read by the row. */
const struct option_table timeline_table = {
	"Timeline",
	(const struct option_row[]){
		{ "axis", 0, "UNIT", "draw by time (default), cycles or insns (instructions)",
		  OPTION_WORD(struct options, timeline.axis, axes) },
		{ "split", 0, "SECONDS", "write numbered files of SECONDS each",
		  OPTION_SECONDS(struct options, timeline.split) },
		{ 0 },
	},
};

const struct option_table inlines_table = {
	"Timeline",
	(const struct option_row[]){
		{ "inlines", 0, NULL, "also show inlined functions of a trace",
		  OPTION_FLAG(struct options, timeline.inlines) },
		{ 0 },
	},
};

const struct option_table gate_table = {
	"Selection",
	(const struct option_row[]){
		{ "start", 0, "FUNCTION", "select from each entry of this function",
		  OPTION_TEXT(struct options, timeline.start) },
		{ "end", 0, "FUNCTION", "select up to each return from this function",
		  OPTION_TEXT(struct options, timeline.end) },
		{ 0 },
	},
};

const struct option_table verify_table = {
	"Messages",
	(const struct option_row[]){
		{ "verify", 0, NULL, "check that no sample or call was lost or counted twice",
		  OPTION_FLAG(struct options, verify) },
		{ 0 },
	},
};
/* clang-format on */

/* ---- the table of formats ---- */

const struct reader_ops *reader_by_name(const char *name)
{
	for (size_t i = 0; readers[i]; i++) {
		if (!strcmp(readers[i]->name, name))
			return readers[i];
	}
	return NULL;
}

static bool is_among(const struct reader_ops *ops, const char *const *names)
{
	for (; names && *names; names++) {
		if (!strcmp(ops->name, *names))
			return true;
	}
	return !names;
}

/* The bytes of consecutive records, with one cut at the end; 0: fewer than `proof` records. */
static size_t run_of_records(const uint8_t *data, size_t len, unsigned proof,
			     size_t (*record_size)(const uint8_t *data, size_t len))
{
	size_t at = 0, size = 1;
	unsigned nr = 0;

	while (at < len && (size = record_size(data + at, len - at)) && size != READER_CUT) {
		at += size;
		nr++;
	}
	if (nr < proof)
		return 0;
	return size == READER_CUT ? len : at;
}

int reader_search(const uint8_t *data, size_t len, unsigned proof,
		  size_t (*record_size)(const uint8_t *data, size_t len))
{
	size_t at = 0, first = len, bytes = 0, share;

	while (at < len) {
		size_t run = run_of_records(data + at, len - at, proof, record_size);

		if (run && first == len)
			first = at;
		bytes += run;
		at += run ? run : 1;
	}
	if (bytes * LEAST_PART < len || first == len)
		return 0;
	share = bytes * 100 / (len - first);
	return share < LEAST_SHARE ? 0 : (int)share;
}

/* names: NULL for all formats */
static const struct reader_ops *by_records(const uint8_t *data, size_t len,
					   const char *const *names)
{
	const struct reader_ops *best = NULL;
	int most = 0;

	for (size_t i = 0; readers[i]; i++) {
		int share = readers[i]->search && is_among(readers[i], names)
				    ? readers[i]->search(data, len)
				    : 0;

		if (share > most) {
			most = share;
			best = readers[i];
		}
	}
	return best;
}

static const struct reader_ops *by_probes(const uint8_t *head, size_t len, const char *const *names,
					  int *most)
{
	const struct reader_ops *best = NULL;

	*most = 0;
	for (size_t i = 0; readers[i]; i++) {
		int bits = is_among(readers[i], names)
				   ? readers[i]->probe(head, len < HEAD ? len : HEAD)
				   : 0;

		if (bits > *most) {
			*most = bits;
			best = readers[i];
		}
	}
	return best;
}

const struct reader_ops *reader_by_head(const uint8_t *head, size_t len, bool ended, bool *sure)
{
	int bits;
	const struct reader_ops *best = by_probes(head, len, NULL, &bits);

	/* A reader of live input may be sure by the first bytes; others may need the whole head. */
	*sure = best ? len >= HEAD || (best->live && bits >= SURE) : len >= FAR;
	if (!best && (*sure || ended))
		best = by_records(head, len < FAR ? len : FAR, NULL);
	return best;
}

const struct reader_ops *reader_by_content(struct in *in)
{
	size_t len, want = 1;

	for (;;) {
		const uint8_t *head = in_peek(in, want, &len);
		bool sure, ended = len < want;
		const struct reader_ops *best = reader_by_head(head, len, ended, &sure);

		if (sure || ended)
			return best;
		want = len < HEAD ? len + 1 : FAR;
	}
}

const struct reader_ops *reader_expected(struct in *in, const char *const *names)
{
	size_t len, searched;
	const uint8_t *data = in_peek(in, FARTHER, &len), *at = data;
	int bits;
	const struct reader_ops *best = by_probes(data, len, names, &bits);

	/* The records may be few, at the end. Damage before them may look like another format. */
	searched = len < FARTHER ? len : FARTHER;
	for (; !best && searched; at += searched - searched / 2, searched /= 2)
		best = by_records(at, searched, names);
	if (best)
		return best;
	best = by_probes(data, len, NULL, &bits);
	return best && bits >= SURE ? best : reader_by_name(names[0]);
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

/* Whether the first bytes of a path end in an extension; NULL: no. profile.json.gz ends in .profile.json. */
static bool ends_in(const char *path, size_t len, const char *extension)
{
	size_t ext = extension ? strlen(extension) : 0;
	const char *name = text_last_part(path);

	if (ext && strchr(extension + 1, '.') && path + len == name + ext - 1)
		return !memcmp(name, extension + 1, ext - 1);
	return ext && len > ext && !memcmp(path + len - ext, extension, ext);
}

static const struct writer_ops *by_extension(const char *path)
{
	size_t len = pack_stem(path);

	for (size_t i = 0; writers[i]; i++) {
		if (ends_in(path, len, writers[i]->extension) ||
		    ends_in(path, len, writers[i]->other_extension))
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
			"%s: cannot tell the format from the name: use -t FORMAT (see kscope "
			"formats)",
			path);
	return ops;
}

int reader_damage_in(struct reader *r, struct event *ev, const char *path, uint64_t offset,
		     uint64_t count, uint64_t bytes, const char *text)
{
	struct err err = { 0 };

	err_at(&err, ERR_PARTIAL, path, offset, "%s", text);
	r->nr_damaged++;
	if (r->nr_damaged <= MAX_COMPLAINTS)
		log_warn("%s", err.msg);
	else if (r->nr_damaged == MAX_COMPLAINTS + 1)
		log_warn("%s: more damage follows; kscope only counts it from here on", path);
	ev->kind = EVENT_LOST;
	ev->lost = (struct event_lost){ .count = count, .bytes = bytes, .damage = true };
	return 1;
}

int reader_damage(struct reader *r, struct event *ev, uint64_t offset, uint64_t count,
		  uint64_t bytes, const char *fmt, ...)
{
	char text[300];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return reader_damage_in(r, ev, r->in->path, offset, count, bytes, text);
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

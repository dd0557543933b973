/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * format: the interface of readers and writers, and the table of all formats (formats.def). A
 * format is one file that defines its ops; tools/check-layers lists the headers that it may
 * include.
 */
#ifndef KSCOPE_FORMAT_H
#define KSCOPE_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/folder.h"
#include "base/in.h"
#include "base/option.h"
#include "base/out.h"
#include "model/event.h"

struct world;
struct store;
struct frames;
struct library;

struct elf_option {   /* --elf [PID=]FILE */
	uint32_t pid; /* NO_TASK: any process */
	const char *path;
};

struct timeline_options {
	enum slice_axis axis;
	uint64_t split;		 /* ns in each file; 0: one file */
	bool inlines;		 /* inlined functions are slices, too */
	const char *start, *end; /* functions between which calls are selected; NULL: no such end */
};

/* Options that the whole run shares. The strings live as long as the program. */
struct options {
	const char *build_dir;
	const char *symfs;
	const char *kernel; /* the kernel's ELF, its compressed image, or kallsyms */
	bool slide_given;
	uint64_t slide; /* distance of the kernel from its link address; detected if not given */
	struct elf_option *elfs;
	size_t nr_elfs, cap_elfs;
	struct timeline_options timeline;
	bool verify;
	/* All given options, from which readers, stages and writers take theirs. May be NULL. */
	struct option_line *given;
};

/* Options stored in struct options. A reader lists those that affect it, with OPTION_ELSEWHERE. */
extern const struct option_table build_dir_table, elf_table, slide_table;
extern const struct option_table names_table; /* --symfs, --kernel */
/* For writers that take slices, into struct options. */
extern const struct option_table timeline_table; /* --axis, --split */
extern const struct option_table inlines_table;	 /* --inlines */
extern const struct option_table gate_table;	 /* --start, --end */
#define TIMELINE_OPTIONS                                                                         \
	OPTION_USES({ &timeline_table, OPTION_ELSEWHERE }, { &inlines_table, OPTION_ELSEWHERE }, \
		    { &gate_table, OPTION_ELSEWHERE })
extern const struct option_table verify_table;
/* For readers whose data does not name the event. Sets a const char *. */
extern const struct option_table event_name_table;

#define READER_AGAIN 2

struct reader {
	const struct reader_ops *ops;
	const struct options *options;
	struct in *in;
	struct frames *frames;	 /* for data with names; see IP_NAMED */
	struct library *library; /* for data whose code must be found in binaries */
	bool all_branches;	 /* also jumps inside a function */
	bool decodes;		 /* branches are wanted, not the bytes of hardware traces */
	bool live_view; /* somebody watches: rather show a stream at once than in exact order */
	struct store *store; /* where other files of the input are (base/store.h); may be NULL */
	struct err err;
	uint64_t nr_damaged; /* places where the input was damaged */
	bool partial;	     /* something the input refers to could not be used */
	void *priv;
};

/* open and close may be NULL. */
struct reader_ops {
	const char *name, *about;
	/* Returns how many bits of the input's first bytes match this format; 0: not this format. */
	int (*probe)(const uint8_t *head, size_t len);
	/*
	 * Called if no format's probe() matches, for data whose start is damaged or something else.
	 * Returns how many percent of the bytes from its first records on are of this format;
	 * 0: not this format. NULL: the start is needed.
	 */
	int (*search)(const uint8_t *data, size_t len);
	/*
	 * next() may return READER_AGAIN. If probe() finds 48 bits or more in the first few bytes, more bytes do
	 * not change that.
	 */
	bool live;
	bool live_view; /* next() may return READER_AGAIN, but only if reader->live_view is set */
	/*
	 * A file may consist of a header alone. In other formats, an input without data is not
	 * valid.
	 */
	bool header;
	/* Of a live reader: whether open() can run without waiting for more input; NULL: always. */
	bool (*ready)(struct in *in);
	const char *folder_file; /* if the input is a folder, read this file in it; NULL: none */
	const struct option_use *options; /* set in the private state before open(); NULL: none */
	size_t priv_size;
	int (*open)(struct reader *r);
	/*
	 * Fills *ev; the caller has zeroed it, and set time, cpu and task to unknown. Returns 1, 0 at
	 * the end, -1 with r->err set, or READER_AGAIN if the input is still being written and has
	 * no more yet.
	 */
	int (*next)(struct reader *r, struct event *ev);
	/*
	 * Optional, for speed: sets *events to the next events that are ready, all of one kind, and
	 * returns their number. They are complete, belong to the reader, and are valid until the next
	 * call. 0: call next().
	 */
	size_t (*run)(struct reader *r, struct event **events);
	void (*close)(struct reader *r);
};

enum writer_needs {
	WRITER_SEEK = 1,    /* seeks back to patch its output */
	WRITER_TEXT = 2,    /* the output may go to a terminal */
	WRITER_SYMBOLS = 4, /* its consumer finds symbols in perf's build-id cache */
	WRITER_PLAIN = 16,  /* makes names safe for a terminal itself, and may use colors */
	WRITER_OUTSIDE = 8, /* also gets unselected events, to follow the state they change */
};

/* What an output contains, for --verify. A writer counts it where it encodes it. */
struct written {
	unsigned knows; /* enum written_knows: what the writer counts */
	uint64_t samples, weight;
	uint64_t begins, ends; /* of slices; with WROTE_CALLS only of those of functions */
};

enum written_knows { WROTE_SAMPLES = 1, WROTE_WEIGHT = 2, WROTE_SLICES = 4, WROTE_CALLS = 8 };

struct writer {
	const struct writer_ops *ops;
	const char *input; /* its name, for titles: of the first one; NULL: unknown */
	struct world *world;
	struct out *out;       /* NULL if the format is a folder */
	struct folder *folder; /* NULL if it is a file */
	/* Ends the output, and begins the next one of several; NULL: there is only one. */
	int (*next_part)(struct writer *w);
	struct written written;
	struct err err;
	void *priv;
};

/* open, finish and close may be NULL. */
struct writer_ops {
	const char *name, *about;
	const char *extension; /* with the dot; NULL: only -t selects the format */
	const char *other_extension;
	unsigned needs; /* enum writer_needs */
	uint32_t takes; /* EVENT_BIT()s of what put() gets */
	/* The output is a folder, recognized by this; NULL: a file. */
	const struct folder_mark *folder;
	const char *next; /* what to do with the file, for messages: "open it in a browser" */
	const struct option_use *options; /* set in the private state before open(); NULL: none */
	size_t priv_size;
	int (*open)(struct writer *w);
	int (*put)(struct writer *w, const struct event *ev);
	int (*finish)(struct writer *w);
	void (*close)(struct writer *w);
};

/* For aggregated formats, whose numbers are either samples or weights. */
static inline struct written written_sum(bool is_weight, uint64_t sum)
{
	return (struct written){ .knows = is_weight ? WROTE_WEIGHT : WROTE_SAMPLES,
				 .samples = sum,
				 .weight = sum };
}

static inline void written_sample(struct written *written, const struct event_sample *sample)
{
	written->samples += sample->count + !sample->count;
	written->weight += sample->weight;
}

static inline void written_slice(struct written *written, const struct event_slice *slice)
{
	written->begins += !slice->leave;
	written->ends += slice->leave;
}

extern const struct reader_ops *const readers[];
extern const struct writer_ops *const writers[];

const struct reader_ops *reader_by_name(const char *name);
/*
 * Detects the format by the first bytes of an input; `ended`: these are all. *sure: more bytes would
 * not change the answer.
 */
const struct reader_ops *reader_by_head(const uint8_t *head, size_t len, bool ended, bool *sure);
/* Detects the format by as few bytes as possible: the input may still be being written. */
const struct reader_ops *reader_by_content(struct in *in);
/*
 * The same for a tool that knows its formats: one of `names`, which end with NULL. It is the first
 * one if nothing can be detected, and another format only if that is certain and there are no
 * records of its own formats.
 */
const struct reader_ops *reader_expected(struct in *in, const char *const *names);
/* The data file in `path`, if that is a folder that a reader knows, else NULL. Caller frees. */
char *reader_folder_file(const char *path);
const struct writer_ops *writer_by_name(const char *name);
/* Finds a writer by name, or if that is NULL, by the extension of path before .gz or .zst. NULL: see err. */
const struct writer_ops *writer_choose(const char *name, const char *path, struct err *err);

/*
 * A search() for data that consists of records. record_size() returns the size of the record at
 * `data`; 0: none, READER_CUT: it does not end in `len` bytes. `proof` records in a row are no coincidence.
 */
#define READER_CUT SIZE_MAX
int reader_search(const uint8_t *data, size_t len, unsigned proof,
		  size_t (*record_size)(const uint8_t *data, size_t len));
/*
 * For readers: reports damage at `offset` (only the first few times) and fills a lost event. Always
 * returns 1, so that a reader can `return reader_damage(...)`.
 */
int reader_damage(struct reader *r, struct event *ev, uint64_t offset, uint64_t count,
		  uint64_t bytes, const char *fmt, ...) __attribute__((format(printf, 6, 7)));
/* The same for damage to another file of the input. */
int reader_damage_in(struct reader *r, struct event *ev, const char *path, uint64_t offset,
		     uint64_t count, uint64_t bytes, const char *text);
/* For readers whose data has a binary per process: fails if an --elf option has no PID. */
int reader_needs_pids(struct reader *r);
/* For readers: warns that something the input refers to is missing, and sets r->partial. */
void reader_missing(struct reader *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * format: what a reader and a writer are, and the table of them all (formats.def). A format is one
 * file that defines its ops and includes nothing but this header, model/, pass/, base/ and abi/.
 */
#ifndef KSCOPE_FORMAT_H
#define KSCOPE_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/in.h"
#include "base/option.h"
#include "base/out.h"
#include "model/event.h"

struct world;
struct frames;
struct library;

struct elf_option {   /* --elf [PID=]FILE */
	uint32_t pid; /* NO_TASK: whoever runs it */
	const char *path;
};

/* What the command line says to everybody. Strings live as long as the program. */
struct options {
	const char *build_dir;
	const char *symfs;
	const char *kernel; /* the kernel's ELF, its compressed image, or kallsyms */
	bool slide_given;
	uint64_t slide; /* how far the kernel is from where it was linked; not given: found */
	struct elf_option *elfs;
	size_t nr_elfs, cap_elfs;
	/* Everything that was given, for readers, stages and writers with own options; may be NULL. */
	struct option_line *given;
};

/* Options of struct options. A reader names those that it acts on, with OPTION_ELSEWHERE. */
extern const struct option_table build_dir_table, elf_table, slide_table;
extern const struct option_table names_table; /* --symfs, --kernel */
/* Of readers whose data does not name the event: a const char *. */
extern const struct option_table event_name_table;

#define READER_AGAIN 2

struct reader {
	const struct reader_ops *ops;
	const struct options *options;
	struct in *in;
	struct frames *frames;	 /* for data with names; see IP_NAMED */
	struct library *library; /* for data whose code must be found in binaries */
	struct err err;
	uint64_t nr_damaged; /* places where the input was damaged */
	bool partial;	     /* something the input refers to could not be used */
	void *priv;
};

/* open and close may be NULL: there is nothing to do. */
struct reader_ops {
	const char *name, *about;
	/* How many bits of the input's first bytes speak for this format; 0: it is not. */
	int (*probe)(const uint8_t *head, size_t len);
	/* next() may return READER_AGAIN, and the first bytes suffice for probe() to be sure. */
	bool live;
	const char *folder_file; /* a folder with a file of this name is read by it; NULL: none */
	const struct option_use *options; /* set in the private state before open(); NULL: none */
	size_t priv_size;
	int (*open)(struct reader *r);
	/*
	 * 1: *ev is filled, 0: the end, -1: r->err. READER_AGAIN: the input is still being written,
	 * and there is nothing yet. ev is zeroed, its time and cpu "unknown".
	 */
	int (*next)(struct reader *r, struct event *ev);
	void (*close)(struct reader *r);
};

enum writer_needs {
	WRITER_SEEK = 1,    /* patches what it has written */
	WRITER_TEXT = 2,    /* fit for a terminal */
	WRITER_SYMBOLS = 4, /* its consumer finds symbols in perf's build-id cache */
	WRITER_OUTSIDE = 8, /* also gets events outside the selection, to follow their state */
};

struct writer {
	const struct writer_ops *ops;
	struct world *world;
	struct out *out;
	struct err err;
	void *priv;
};

/* open, finish and close may be NULL: there is nothing to do. */
struct writer_ops {
	const char *name, *about;
	const char *extension; /* with the dot; NULL: not guessed from a file's name */
	unsigned needs;	       /* enum writer_needs */
	uint32_t takes;	       /* EVENT_BIT()s of what put() gets */
	const char *next;      /* what to do with the file, for messages: "open it in a browser" */
	const struct option_use *options; /* set in the private state before open(); NULL: none */
	size_t priv_size;
	int (*open)(struct writer *w);
	int (*put)(struct writer *w, const struct event *ev);
	int (*finish)(struct writer *w);
	void (*close)(struct writer *w);
};

extern const struct reader_ops *const readers[];
extern const struct writer_ops *const writers[];

const struct reader_ops *reader_by_name(const char *name);
/* As few bytes as decide it: the input may still be being written. */
const struct reader_ops *reader_by_content(struct in *in);
/* The file that holds the data if `path` is a folder that a reader knows, else NULL. Owned by the caller. */
char *reader_folder_file(const char *path);
const struct writer_ops *writer_by_name(const char *name);
/* By its name, or by the file's extension if name is NULL. NULL: err says what to do. */
const struct writer_ops *writer_choose(const char *name, const char *path, struct err *err);

/*
 * For readers: the input is damaged at `offset`. Says so (the first few times) and fills a lost
 * event. Always returns 1, so that a reader can `return reader_damage(...)`.
 */
int reader_damage(struct reader *r, struct event *ev, uint64_t offset, uint64_t count,
		  uint64_t bytes, const char *fmt, ...) __attribute__((format(printf, 6, 7)));
/* For readers whose data tells binaries apart by process: --elf must have named one each time. */
int reader_needs_pids(struct reader *r);
/* For readers: something the input refers to is missing. Warns and is told by the exit code. */
void reader_missing(struct reader *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * option: tables of options. Whoever has options (a verb, a reader, a stage, a writer) has a table
 * of them; a row says everything about one option: how it is spelled, what --help prints, what
 * completes its argument, and where in its owner's state the value goes.
 *
 * The command line collects what was given (struct option_line); each owner takes from there what
 * its tables have. What no owner in a run takes has no effect, and the user gets to know that.
 */
#ifndef KSCOPE_BASE_OPTION_H
#define KSCOPE_BASE_OPTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* What completes the argument in a shell, in addition to the row's words. */
enum option_completion {
	COMPLETE_NOTHING,
	COMPLETE_FILE,
	COMPLETE_FOLDER,
	COMPLETE_INPUT_FORMAT,
	COMPLETE_OUTPUT_FORMAT,
};

struct option_row {
	const char *name;
	char letter;	   /* '\0': none */
	const char *arg;   /* NULL: takes none; in brackets: may be omitted */
	const char *about; /* for --help */
	/*
	 * Parses arg into *field, which is at `at` in the owner's struct and has at most
	 * OPTION_FIELD bytes. NULL: the owner looks at the option_line itself.
	 */
	int (*set)(const struct option_row *row, void *field, const char *arg, struct err *err);
	size_t at;
	uint64_t least, most;	  /* of a number */
	const char *const *words; /* to choose from; ends with NULL */
	enum option_completion completion;
	const char *same_as; /* an old or foreign spelling of this option of the table; not shown */
};

#define OPTION_FIELD 64

struct option_table {
	const char *heading;	       /* in --help; tables with the same one stand together */
	const struct option_row *rows; /* ends with a row without a name */
};

/* A table as its owner has it: the table's struct is at `at` in the owner's state. */
struct option_use {
	const struct option_table *table; /* NULL: the end of a list */
	size_t at;
};

/* A list of them: OPTION_USES({ &table, at }, { &other_table, at }) */
#define OPTION_USES(...) ((const struct option_use[]){ __VA_ARGS__, { 0 } })

/* For option_use.at: the value is kept elsewhere, for all; this owner only acts on it. */
#define OPTION_ELSEWHERE SIZE_MAX

struct option_given {
	const struct option_row *row;
	const char *arg; /* NULL: none; borrowed from the command line */
	bool acted;	 /* somebody in this run takes it */
};

struct option_line { /* in the order of the command line */
	struct option_given *all;
	size_t nr, cap;
};

/* ---- the types: how to write the second half of a row ---- */

struct option_list { /* of an option that may be repeated; borrowed strings */
	const char **all;
	size_t nr, cap;
};

int option_flag(const struct option_row *row, void *field, const char *arg, struct err *err);
int option_value(const struct option_row *row, void *field, const char *arg, struct err *err);
int option_text(const struct option_row *row, void *field, const char *arg, struct err *err);
int option_number(const struct option_row *row, void *field, const char *arg, struct err *err);
int option_percent(const struct option_row *row, void *field, const char *arg, struct err *err);
int option_seconds(const struct option_row *row, void *field, const char *arg, struct err *err);
int option_word(const struct option_row *row, void *field, const char *arg, struct err *err);
int option_append(const struct option_row *row, void *field, const char *arg, struct err *err);

/* The offset of a member, if it has the type; else the build fails. */
#define OPTION_AT(owner, member, type)                                                        \
	(offsetof(owner, member) +                                                            \
	 0 * sizeof(char[__builtin_types_compatible_p(__typeof__(((owner *)0)->member), type) \
				 ? 1                                                          \
				 : -1]))
#define OPTION_ENUM_AT(owner, member) \
	(offsetof(owner, member) +    \
	 0 * sizeof(char[sizeof(((owner *)0)->member) == sizeof(unsigned) ? 1 : -1]))

#define OPTION_FLAG(owner, member) .set = option_flag, .at = OPTION_AT(owner, member, bool)
/* A flag that stands for one value of an enum. */
#define OPTION_VALUE(owner, member, value) \
	.set = option_value, .at = OPTION_ENUM_AT(owner, member), .most = (value)
/* An argument that was omitted is "". */
#define OPTION_TEXT(owner, member) .set = option_text, .at = OPTION_AT(owner, member, const char *)
#define OPTION_NUMBER(owner, member, from, to)                                           \
	.set = option_number, .at = OPTION_AT(owner, member, uint64_t), .least = (from), \
	.most = (to)
#define OPTION_PERCENT(owner, member) .set = option_percent, .at = OPTION_AT(owner, member, double)
/* More than 0, in ns. */
#define OPTION_SECONDS(owner, member) \
	.set = option_seconds, .at = OPTION_AT(owner, member, uint64_t)
/* An enum: the place in the list of words. */
#define OPTION_WORD(owner, member, list) \
	.set = option_word, .at = OPTION_ENUM_AT(owner, member), .words = (list)
#define OPTION_APPEND(owner, member) \
	.set = option_append, .at = OPTION_AT(owner, member, struct option_list)

/* A setter of the owner's own. */
#define OPTION_SET(setter, owner, member) .set = (setter), .at = offsetof(owner, member)

/* ---- using them ---- */

/* By the name that it is shown with; NULL: none. */
const struct option_row *option_find(const struct option_table *table, const char *name);
bool option_in(const struct option_use *uses, const char *name);
/* The same, but only if option_apply() stores the value: not with OPTION_ELSEWHERE. */
bool option_stored(const struct option_use *uses, const char *name);

void option_add(struct option_line *line, const struct option_row *row, const char *arg);
/* Is the argument right? Changes nothing. */
int option_check(const struct option_row *row, const char *arg, struct err *err);
/* Sets in *state what was given. `uses` and `line` may be NULL: there is nothing to do. */
int option_apply(const struct option_use *uses, void *state, const struct option_line *line,
		 struct err *err);
/* An owner with these tables takes part in the run. */
void option_mark(const struct option_use *uses, struct option_line *line);
void option_mark_name(const char *name, struct option_line *line);
/* Frees the lists in *state. */
void option_release(const struct option_use *uses, void *state);

#endif

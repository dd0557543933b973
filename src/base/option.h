/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * option: tables of options. Every owner of options (a verb, a reader, a stage, a writer) has a
 * table of them. A row describes one option: its spelling, its text in --help, the completion of
 * its argument, and where in the owner's state its value goes.
 *
 * The command line becomes a struct option_line; each owner takes the options in its tables from
 * there. kscope warns of an option that no owner in a run takes.
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
	char letter; /* '\0': none */
	/* NULL: none; in brackets: optional; with a space: two, for each of which set() is called. */
	const char *arg;
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
	const char *same_as; /* this row is an alias of that option of the table; not in --help */
};

#define OPTION_FIELD 64

struct option_table {
	const char *heading;	       /* in --help, which groups tables by it */
	const struct option_row *rows; /* ends with a row without a name */
};

/* A table of an owner. `at`: offset in the owner's state of the struct that the table fills. */
struct option_use {
	const struct option_table *table; /* NULL: the end of a list */
	size_t at;
};

/* A list of them: OPTION_USES({ &table, at }, { &other_table, at }) */
#define OPTION_USES(...) ((const struct option_use[]){ __VA_ARGS__, { 0 } })

/* For option_use.at: the value is stored elsewhere; this owner only acts on it. */
#define OPTION_ELSEWHERE SIZE_MAX

struct option_given {
	const struct option_row *row;
	const char *arg; /* NULL: none; borrowed from the command line */
	bool acted;	 /* it has an effect in this run */
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
/* A flag that selects one value of an enum. */
#define OPTION_VALUE(owner, member, value) \
	.set = option_value, .at = OPTION_ENUM_AT(owner, member), .most = (value)
/* An argument that was omitted is "". */
#define OPTION_TEXT(owner, member) .set = option_text, .at = OPTION_AT(owner, member, const char *)
#define OPTION_NUMBER(owner, member, from, to)                                           \
	.set = option_number, .at = OPTION_AT(owner, member, uint64_t), .least = (from), \
	.most = (to)
#define OPTION_PERCENT(owner, member) .set = option_percent, .at = OPTION_AT(owner, member, double)
/* Greater than 0; stored in ns. */
#define OPTION_SECONDS(owner, member) \
	.set = option_seconds, .at = OPTION_AT(owner, member, uint64_t)
/* An enum: the index in the list of words. */
#define OPTION_WORD(owner, member, list) \
	.set = option_word, .at = OPTION_ENUM_AT(owner, member), .words = (list)
#define OPTION_APPEND(owner, member) \
	.set = option_append, .at = OPTION_AT(owner, member, struct option_list)

/* With the owner's own setter. */
#define OPTION_SET(setter, owner, member) .set = (setter), .at = offsetof(owner, member)

/* ---- using them ---- */

/* Whether the option has two arguments: the second one is the next word. */
bool option_is_pair(const struct option_row *row);
/* Finds an option by name, but not by an alias. NULL: not in the table. */
const struct option_row *option_find(const struct option_table *table, const char *name);
bool option_in(const struct option_use *uses, const char *name);
/* The same, but only if option_apply() stores the value: not with OPTION_ELSEWHERE. */
bool option_stored(const struct option_use *uses, const char *name);

void option_add(struct option_line *line, const struct option_row *row, const char *arg);
/* Checks the argument without storing it. */
int option_check(const struct option_row *row, const char *arg, struct err *err);
/* Stores the given options in *state. Does nothing if `uses` or `line` is NULL. */
int option_apply(const struct option_use *uses, void *state, const struct option_line *line,
		 struct err *err);
/* Marks the options of these tables, or of this name, as having an effect in the run. */
void option_mark(const struct option_use *uses, struct option_line *line);
void option_mark_name(const char *name, struct option_line *line);
/* Frees the lists in *state. */
void option_release(const struct option_use *uses, void *state);

#endif

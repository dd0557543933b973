/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * perfscript_branch: branches of a hardware trace, as perf script prints them:
 *
 *	FLAGS IP SYMBOL+OFFSET (BINARY) => ADDRESS SYMBOL+OFFSET (BINARY) EXTRA
 *
 * Each part may be missing, except the two addresses. The functions are named by EVENT_SYMBOL.
 */
#ifndef KSCOPE_READ_PERFSCRIPT_BRANCH_H
#define KSCOPE_READ_PERFSCRIPT_BRANCH_H

#include "base/hash.h"
#include "format.h"
#include "read/perfscript_line.h"

struct script_branches {
	struct script_function *functions;
	uint32_t *order; /* of the functions: by process and start */
	size_t nr_functions, cap_functions, cap_order;
	struct hash function_at; /* process and start */
	struct script_place *places;
	size_t nr_places, cap_places;
	struct hash place_at; /* address and text */
	struct script_thread *threads;
	size_t nr_threads, cap_threads;
	struct hash thread_by_tid;
	struct event queue[4]; /* of one line */
	unsigned nr, next;
};

/* The name of a frame's function, or of its binary, if it has no name: a handle. */
uint32_t script_name(struct reader *r, const struct frame_parts *parts);

void script_branches_release(struct script_branches *all);
/* Takes a line whose first part has been parsed, and fills the queue. False: it is not a branch. */
bool script_branch(struct reader *r, struct script_branches *all, const struct first_line *first);
/* Whether it is an " instruction trace error" line. */
bool script_is_error(struct span line);
/* Takes such a line. False: it is none. */
bool script_error(struct script_branches *all, struct span line);
/* Whether there is an arrow in the text after the event, as in branches. */
bool script_has_arrow(struct span tail);
/* Whether the text after the event is that of a branch. */
bool script_is_branch(struct span tail);

#endif

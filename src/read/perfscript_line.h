/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * perfscript_line: parses single lines of perf script's output: the first line of a sample, and
 * frames. Nothing is copied: spans point into the line.
 */
#ifndef KSCOPE_READ_PERFSCRIPT_LINE_H
#define KSCOPE_READ_PERFSCRIPT_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct span {
	const char *at, *end;
};

struct start {
	uint64_t time, period;
	uint32_t cpu, pid, tid;
	bool skip; /* not a sample, even if frames follow */
};

struct first_line { /* of a sample */
	struct start start;
	struct span comm, event; /* empty: missing */
	struct span tail;	 /* the text after the event */
	const char *before;	 /* where the text before the tail ends */
};

struct frame_parts {
	struct span name, binary; /* either may be empty; the binary without its directory */
	bool kernel, inlined;
};

extern const struct start script_no_start; /* everything unknown */

static inline bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static inline size_t span_len(struct span s)
{
	return (size_t)(s.end - s.at);
}

/* Without blanks at both ends and a carriage return. */
struct span span_trim(struct span s);
bool span_begins(struct span s, const char *with);

/* A first line with a task and a time, which no other line has. */
bool script_timed_start(struct span line, struct first_line *first);
/* A first line with a time, or with comm, task and event. */
bool script_start(struct span line, struct first_line *first);
/* Whether a line has a time, be it readable or not. */
bool script_has_time(struct span line);
/* A line about a record that is no sample (--show-mmap-events and the like). */
bool script_is_record(struct span line);
/* A first line without time and event. Accepts any line. */
void script_bare_start(struct span line, struct first_line *first);

/* The text after the address of a frame; false if the line is not a frame. */
bool script_frame(struct span line, struct span *text);
/* Whether a line that is a frame may begin a sample: its first word cannot be a comm. */
bool script_first_frame(struct span line);
/* A frame in perf's usual layout: a tab, then the address right-aligned in 16 columns. */
bool script_usual_frame(struct span line);
/* The frame on the first line: the last address in 16 columns, or one with a binary. */
bool script_tail_frame(const struct first_line *first, struct span *text);
struct frame_parts script_frame_parts(struct span text);

#endif

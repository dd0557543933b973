/* SPDX-License-Identifier: GPL-2.0-or-later */
/* look: what the tables that several verbs print have in common. */
#ifndef KSCOPE_LOOK_H
#define KSCOPE_LOOK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "model/strtab.h"

struct look {
	struct buf *text;	      /* where it prints; borrowed */
	const struct strtab *strings; /* of names; borrowed */
	struct buf scratch[2];
	bool colors; /* for a terminal */
};

void look_init(struct look *look, struct buf *text, const struct strtab *strings);
void look_release(struct look *look);
/* A name without terminal escapes, which data may contain. `which` is one of two buffers. */
const char *look_name(struct look *look, unsigned which, uint32_t handle);
/* In percent. */
double look_share(uint64_t part, uint64_t all);
/* A column of 8 characters; large shares have a color. */
void look_percent(struct look *look, double percent);
/* The last columns of a row: a function, and its binary unless that is 0. */
void look_function(struct look *look, uint32_t name, uint32_t binary);
/* Right-aligned, with three digits and a unit. */
void look_time(struct buf *text, int width, uint64_t ns);
void look_number(struct buf *text, int width, uint64_t number);
/* A bar whose length is a share from 0 to 1. */
void look_bar(struct buf *text, double share);

#endif

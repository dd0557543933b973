/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * perfscript_extra: what perf script prints around the frames of a sample if -F asks for it:
 * registers, source lines, bytes of instructions, physical addresses, branch stacks. kscope does
 * not use it, but has to tell it from frames.
 */
#ifndef KSCOPE_READ_PERFSCRIPT_EXTRA_H
#define KSCOPE_READ_PERFSCRIPT_EXTRA_H

#include "read/perfscript_line.h"

/* Whether the text has an entry of a branch stack: FROM/TO/P/-/-/0. */
bool script_has_stack(struct span text);
/* The frame at the start of the text, without what follows it on the same line. */
struct span script_cut_extras(struct span text);
/* Whether the line is one that perf prints among the frames of a sample or after them. */
bool script_extra_line(struct span line);
/* Whether the text after an address has no name, but may be the sizes of pages. */
bool script_no_name(struct span text);

#endif

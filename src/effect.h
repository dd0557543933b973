/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * effect: warns of options that had no effect in a run. An option has an effect if its owner took
 * part: a reader or writer that was opened, or a stage that got an event.
 */
#ifndef KSCOPE_EFFECT_H
#define KSCOPE_EFFECT_H

#include "convert.h"

/* Marks the options that had an effect. Call it at the end of a run. */
void effect_mark(struct job *job);
/* Warns of unmarked options, and marks them: several runs may share a command line. */
void effect_warn(const struct job *job);

#endif

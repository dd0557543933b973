/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * effect: options that did nothing in a run. An option acts if its owner took part: a reader or
 * writer that was opened, a stage that saw an event that it takes.
 */
#ifndef KSCOPE_EFFECT_H
#define KSCOPE_EFFECT_H

#include "convert.h"

/* At the end of a run: marks the options that acted in it. */
void effect_mark(struct job *job);
/* Warns of those that are not marked, and marks them: several runs may share a command line. */
void effect_warn(const struct job *job);

#endif

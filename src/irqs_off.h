/* SPDX-License-Identifier: GPL-2.0-or-later */
/* irqs_off: prints the longest stretches with interrupts off, for `calls`. */
#ifndef KSCOPE_IRQS_OFF_H
#define KSCOPE_IRQS_OFF_H

#include "base/json_out.h"
#include "look.h"
#include "model/world.h"
#include "pass/masked.h"

/* The stretches are sorted. The summary is one line; without stretches, nothing. */
void irqs_off_summary(struct look *look, struct world *world, const struct masked *masked);
void irqs_off_table(struct look *look, struct world *world, const struct masked *masked);
/* The members of an object that is open. */
void irqs_off_json(struct json_out *to, struct world *world, const struct masked *masked);

#endif

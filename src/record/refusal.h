/* SPDX-License-Identifier: GPL-2.0-or-later */
/* refusal: explains why QEMU exited before anything was recorded, and what to do about it. */
#ifndef KSCOPE_RECORD_REFUSAL_H
#define KSCOPE_RECORD_REFUSAL_H

#include "record/guest.h"
#include "record/line.h"

/* Prints the explanation, after QEMU's own messages. */
void refusal_explain(const struct guest *guest, const struct qemu_line *line, const char *plugin);

#endif

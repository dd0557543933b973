/* SPDX-License-Identifier: GPL-2.0-or-later */
/* refusal: why a QEMU gave up before anything was recorded, and what to do then. */
#ifndef KSCOPE_RECORD_REFUSAL_H
#define KSCOPE_RECORD_REFUSAL_H

#include "record/guest.h"
#include "record/line.h"

/* Says it. QEMU's own words stand above. */
void refusal_explain(const struct guest *guest, const struct qemu_line *line, const char *plugin);

#endif

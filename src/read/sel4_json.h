/* SPDX-License-Identifier: GPL-2.0-or-later */
/* sel4_json: reads only the mappings, from a separate file. */
#ifndef KSCOPE_READ_SEL4_JSON_H
#define KSCOPE_READ_SEL4_JSON_H

#include "base/err.h"

struct sel4;
struct store;

int sel4_json_mappings(struct store *store, const char *path, struct sel4 *s, struct err *err);

#endif

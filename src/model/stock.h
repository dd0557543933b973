/* SPDX-License-Identifier: GPL-2.0-or-later */
/* stock: perf's events that are the same on all machines, by name and by number. */
#ifndef KSCOPE_MODEL_STOCK_H
#define KSCOPE_MODEL_STOCK_H

#include <stdbool.h>
#include <stdint.h>

#define STOCK_NAME 64

/* The name, maybe in `room`. NULL: it is none of these events. type: enum source_type */
const char *stock_name(uint32_t type, uint64_t config, char room[STOCK_NAME]);
/* An event of the cpu or of software. False: none has this name. */
bool stock_find(const char *name, uint32_t *type, uint64_t *config);

#endif

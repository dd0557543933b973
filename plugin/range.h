/* SPDX-License-Identifier: GPL-2.0-or-later */
/* range: from= and to=, the places in the guest's code where recording starts and stops. */
#ifndef KSCOPE_PLUGIN_RANGE_H
#define KSCOPE_PLUGIN_RANGE_H

#include <stdbool.h>
#include <stdint.h>

#include "args.h"

struct qemu_plugin_tb;
struct qemu_plugin_insn;

void range_translate(struct qemu_plugin_tb *tb);
/*
 * Whether an instruction is at a place. The place of a symbol is the first of its instructions that QEMU
 * translates: its entry.
 */
bool range_is_at(struct args_place *place, const struct qemu_plugin_insn *insn);

#endif

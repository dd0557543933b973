/* SPDX-License-Identifier: GPL-2.0-or-later */
/* pt: mode=pt, the control flow of an x86-64 program in user mode as Intel PT, for `kscope record emulate`. */
#ifndef KSCOPE_PLUGIN_PT_H
#define KSCOPE_PLUGIN_PT_H

#include <stdint.h>

/* 0, or -1 after a message. */
int pt_open(uint64_t plugin_id);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hooks: looks up functions of the guest for the plugin, which knows only addresses: in the kernel
 * and then in the other binaries, before the guest starts.
 */
#ifndef KSCOPE_RECORD_HOOKS_H
#define KSCOPE_RECORD_HOOKS_H

#include "base/buf.h"
#include "base/err.h"
#include "format.h"
#include "record/record.h"

/* Appends ",alloc=0x...:arg0:ret" and the like. `moves`: the kernel may use KASLR. */
int hooks_add(struct buf *line, const struct record_options *record, const struct options *options,
	      bool moves, struct err *err);

#endif

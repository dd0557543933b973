/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hooks: functions of the guest by name, for the plugin, which knows only addresses. Names are
 * looked up in the kernel and then in the other binaries, before the guest starts.
 */
#ifndef KSCOPE_RECORD_HOOKS_H
#define KSCOPE_RECORD_HOOKS_H

#include "base/buf.h"
#include "base/err.h"
#include "format.h"
#include "record/record.h"

/* Appends ",alloc=0x...:arg0:ret" and the like. `moves`: the kernel may not be where it is linked. */
int hooks_add(struct buf *line, const struct record_options *record, const struct options *options,
	      bool moves, struct err *err);

#endif

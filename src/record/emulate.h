/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * emulate: `kscope record emulate`. Runs an x86-64 program in QEMU's user mode, with the plugin in mode=pt, and
 * writes a perf.data with Intel PT.
 */
#ifndef KSCOPE_RECORD_EMULATE_H
#define KSCOPE_RECORD_EMULATE_H

#include <stddef.h>

#include "base/err.h"

struct emulation {
	const char *const *words; /* the program and its arguments, NULL at the end */
	const char *out;	  /* the perf.data */
	const char *qemu;	  /* NULL: qemu-x86_64 in $PATH */
};

/*
 * Returns the exit code: that of the program, or 128 and the signal that killed it. Returns -1 and sets err if there
 * is no recording.
 */
int emulate(const struct emulation *emulation, struct err *err);

#endif

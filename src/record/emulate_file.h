/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * emulate_file: makes a perf.data with Intel PT of the files that the threads of a program left in a folder (see
 * wire/emulate.h).
 */
#ifndef KSCOPE_RECORD_EMULATE_FILE_H
#define KSCOPE_RECORD_EMULATE_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "base/out.h"

struct emulate_sums {
	size_t threads;
	uint64_t packets; /* bytes */
	size_t running;	  /* threads that have not ended: their last packets are missing */
	size_t damaged;	  /* files of which only the first records could be read */
};

/* words: the command line, NULL at the end. Writes nothing if no thread left a file. */
void emulate_file_write(struct out *out, const char *parts, const char *const *words,
			struct emulate_sums *sums);

#endif

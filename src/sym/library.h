/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * library: the binaries of a run. Each file is opened once, whoever asks for it, and reported once
 * if it is not usable.
 */
#ifndef KSCOPE_SYM_LIBRARY_H
#define KSCOPE_SYM_LIBRARY_H

#include "base/hash.h"
#include "sym/sym.h"

struct library {			/* zeroed but for `where`: empty */
	const struct sym_search *where; /* borrowed; may be NULL */
	struct library_file {
		char *path;
		struct symfile *symfile; /* NULL: not usable */
	} * files;
	size_t nr, cap;
	struct hash by_path; /* places in files, + 1 */
};

/* The library owns what it returns. NULL: not usable, which is reported the first time. */
struct symfile *library_open(struct library *library, const char *path);
void library_release(struct library *library);

#endif

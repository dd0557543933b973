/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * library: the binaries of a run. Each file is opened only once, and if it is not usable, reported
 * only once.
 */
#ifndef KSCOPE_SYM_LIBRARY_H
#define KSCOPE_SYM_LIBRARY_H

#include "base/hash.h"
#include "sym/sym.h"

struct library {			/* zeroed except for `where`: empty */
	const struct sym_search *where; /* borrowed; may be NULL */
	struct library_file {
		char *path;
		struct symfile *symfile; /* NULL: not usable */
	} * files;
	size_t nr, cap;
	struct hash by_path; /* index in files, + 1 */
};

/* The library owns the result. Returns NULL if the file is not usable, and warns once. */
struct symfile *library_open(struct library *library, const char *path);
/* The same, but it may turn out not to be the right file: an archive of the run does not get it. */
struct symfile *library_try(struct library *library, const char *path);
void library_release(struct library *library);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* archived: the options that an archive keeps, because its recordings cannot be read without them. */
#ifndef KSCOPE_ARCHIVED_H
#define KSCOPE_ARCHIVED_H

#include "base/store.h"
#include "format.h"

struct archived {
	struct options options;
	struct option_line line;
};

/* The row of an option that archives keep: of --kernel, --elf, --slide and those of readers. NULL: not one. */
const struct option_row *archived_row(const char *name);
/*
 * Fills *archived with the given options and those of the archives; given ones win. `options` and the archives must
 * outlive it.
 */
int archived_merge(struct archived *archived, const struct options *options,
		   const struct store *archives, struct err *err);
void archived_release(struct archived *archived);

#endif

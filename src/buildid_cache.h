/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * buildid_cache: perf's cache of binaries, by build ID. perf reads symbols from it even if the
 * original binaries were moved or deleted.
 */
#ifndef KSCOPE_BUILDID_CACHE_H
#define KSCOPE_BUILDID_CACHE_H

#include "base/err.h"
#include "model/image.h"

/*
 * Adds every binary that was found and has a build ID to the cache in `dir`, or in ~/.debug if
 * `dir` is "". Returns the number of binaries added, or -1 on error.
 */
int buildid_cache_fill(struct images *images, const char *dir, struct err *err);
/* Whether the file is in ~/.debug. */
bool buildid_cache_has(const char *file);

#endif

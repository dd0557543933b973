/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * buildid_cache: perf's own store of binaries, by their build ids. With the binaries in there a
 * perf.data can be read after the originals are gone, and wherever they were.
 */
#ifndef KSCOPE_BUILDID_CACHE_H
#define KSCOPE_BUILDID_CACHE_H

#include "base/err.h"
#include "model/image.h"

/*
 * Puts every binary that was found and has a build id under `dir`, or ~/.debug if that is "".
 * Returns the number of them, or -1.
 */
int buildid_cache_fill(struct images *images, const char *dir, struct err *err);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * perfdata_code: the code of the binaries that a perf.data maps, for decoding Intel PT. It finds files as
 * names are found: by path and build ID, and under the folders that the user gave.
 */
#ifndef KSCOPE_READ_PERFDATA_CODE_H
#define KSCOPE_READ_PERFDATA_CODE_H

#include "base/hash.h"
#include "format.h"
#include "model/image.h"
#include "model/strtab.h"
#include "pt/code.h"

struct perfdata_code { /* zeroed: not open */
	struct strtab strings;
	struct image_search where;
	struct images images;
	pthread_mutex_t lock;  /* for looking up functions */
	struct symfile *kcore; /* the kernel's memory, in the folder of the recording; NULL: none */
	struct code_file **files;
	size_t nr, cap;
	struct hash index;
	struct hash raw; /* of an image: the index + 1 of the first file that has only code */
};

void perfdata_code_open(struct perfdata_code *code, const struct reader *r, const char *kcore);
/* The code of a map, which is shared by all maps of the same part of a file. NULL: not found. */
struct ipt_code *perfdata_code_of(struct perfdata_code *code, const struct event_map *map);
void perfdata_code_release(struct perfdata_code *code);

#endif

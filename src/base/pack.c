// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/pack.h"

#include <string.h>

static size_t stem_of(const char *path, const struct pack_ops *ops)
{
	size_t len = strlen(path), ext = strlen(ops->extension);

	return len > ext && !strcmp(path + len - ext, ops->extension) ? len - ext : len;
}

const struct pack_ops *pack_by_name(const char *path)
{
	static const struct pack_ops *const all[] = { &pack_gzip, &pack_zstd };

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		if (path[stem_of(path, all[i])])
			return all[i];
	}
	return NULL;
}

size_t pack_stem(const char *path)
{
	const struct pack_ops *ops = pack_by_name(path);

	return ops ? stem_of(path, ops) : strlen(path);
}

// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/unpack.h"

const struct unpack_ops *unpack_probe(const uint8_t *head, size_t len)
{
	static const struct unpack_ops *const all[] = { &unpack_zstd, &unpack_gzip, &unpack_xz,
							&unpack_lzma, &unpack_lz4 };

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		if (all[i]->magic(head, len))
			return all[i];
	}
	return 0;
}

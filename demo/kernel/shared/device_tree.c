// SPDX-License-Identifier: GPL-2.0-or-later
/* The command line, from the device tree that QEMU's virt machines pass. */
#include "kernel.h"

#define DT_PROPERTY 3
#define DT_END 9

static bool same(const char *a, const char *b)
{
	while (*a && *a == *b)
		a++, b++;
	return *a == *b;
}

/* The device tree's bootargs. Node names are text and cannot be mistaken for a property token. */
const char *command_line(uintptr_t boot_info)
{
	const uint32_t *tree = (const uint32_t *)(boot_info + KERNEL_OFFSET);
	const uint32_t *at = tree + __builtin_bswap32(tree[2]) / 4;
	const char *names = (const char *)tree + __builtin_bswap32(tree[3]);

	for (uint32_t token; (token = __builtin_bswap32(*at++)) != DT_END;) {
		uint32_t length;

		if (token != DT_PROPERTY)
			continue;
		length = __builtin_bswap32(at[0]);
		if (same(names + __builtin_bswap32(at[1]), "bootargs"))
			return (const char *)(at + 2);
		at += 2 + (length + 3) / 4;
	}
	return "";
}

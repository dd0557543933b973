/* SPDX-License-Identifier: GPL-2.0-or-later */
/* pb: reads protobuf from memory, one field at a time. */
#ifndef KSCOPE_BASE_PB_H
#define KSCOPE_BASE_PB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum pb_wire { PB_VARINT = 0, PB_FIXED64 = 1, PB_BYTES = 2, PB_FIXED32 = 5 };

struct pb {
	const uint8_t *at, *end;
};

struct pb_field {
	uint32_t number;
	enum pb_wire wire;
	uint64_t value;	 /* 0 for PB_BYTES */
	struct pb bytes; /* empty unless PB_BYTES */
};

bool pb_varint(struct pb *pb, uint64_t *value);
/* Returns 1 for a field, 0 at the end, -1 if the bytes are not protobuf. */
int pb_next(struct pb *pb, struct pb_field *field);

#endif

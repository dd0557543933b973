/* SPDX-License-Identifier: GPL-2.0-or-later */
/* pb: reading protobuf, one field at a time, from memory. */
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
	uint64_t value;	 /* of a number, else 0 */
	struct pb bytes; /* of PB_BYTES, else nothing */
};

bool pb_varint(struct pb *pb, uint64_t *value);
/* 1: a field, 0: the end, -1: not protobuf. */
int pb_next(struct pb *pb, struct pb_field *field);

#endif

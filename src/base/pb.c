// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/le.h"
#include "base/pb.h"

#include <string.h>

bool pb_varint(struct pb *pb, uint64_t *value)
{
	uint64_t sum = 0;

	for (unsigned shift = 0; shift < 64 && pb->at < pb->end; shift += 7) {
		uint8_t byte = *pb->at++;

		if (shift == 63 && byte > 1)
			return false;
		sum |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80)) {
			*value = sum;
			return true;
		}
	}
	return false;
}

static bool fixed(struct pb *pb, size_t size, uint64_t *value)
{
	if ((size_t)(pb->end - pb->at) < size)
		return false;
	*value = le_at(pb->at, size);
	pb->at += size;
	return true;
}

int pb_next(struct pb *pb, struct pb_field *field)
{
	uint64_t tag, len;

	if (pb->at == pb->end)
		return 0;
	if (!pb_varint(pb, &tag) || tag >> 3 == 0 || tag >> 3 > 0x1fffffff)
		return -1;
	field->number = (uint32_t)(tag >> 3);
	field->wire = (enum pb_wire)(tag & 7);
	field->value = 0;
	field->bytes = (struct pb){ pb->at, pb->at };
	switch (field->wire) {
	case PB_VARINT: return pb_varint(pb, &field->value) ? 1 : -1;
	case PB_FIXED64: return fixed(pb, 8, &field->value) ? 1 : -1;
	case PB_FIXED32: return fixed(pb, 4, &field->value) ? 1 : -1;
	case PB_BYTES:
		if (!pb_varint(pb, &len) || len > (uint64_t)(pb->end - pb->at))
			return -1;
		field->bytes = (struct pb){ pb->at, pb->at + len };
		pb->at += len;
		return 1;
	}
	return -1;
}

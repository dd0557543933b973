// SPDX-License-Identifier: GPL-2.0-or-later
/* The checksum of chunks: the encoder in wire.h writes it, the reader verifies it. */
#include <string.h>

#include "read/wire_parts.h"
#include "test.h"

static size_t encode(uint8_t *to, size_t size, bool checked)
{
	struct wire w = wire_into(to, size);
	uint8_t *opened = wire_chunk(&w, 3, 7, 1);
	struct wire_sample sample = { .time = 5, .pc = 0x1234, .level = 1 };
	struct wire_info info = { .arch = "riscv64", .checked = checked };

	wire_info(&w, WIRE_CHUNK_INFO, &info);
	wire_sample(&w, WIRE_CHUNK_SAMPLE, &sample);
	if (checked)
		wire_close_checked(&w, opened);
	else
		wire_close(&w, opened);
	return w.full ? 0 : (size_t)(w.at - to);
}

static int peek(const uint8_t *data, size_t len, struct wire_chunk *chunk)
{
	struct in in;
	int ret;

	in_open_memory(&in, "memory", data, len);
	ret = wire_peek(&in, chunk);
	in_close(&in);
	return ret;
}

int main(void)
{
	uint8_t data[256];
	struct wire_chunk chunk;
	size_t len = encode(data, sizeof(data), true), small = 0;
	bool wrong_is_found = true;

	check("CRC-32C of the standard's example", wire_crc(0, "123456789", 9) == 0xe3069283);
	check("in two parts", wire_crc(wire_crc(0, "1234", 4), "56789", 5) == 0xe3069283);
	check("a checked chunk",
	      len && peek(data, len, &chunk) == 1 && chunk.check == WIRE_CHECK_GOOD && !chunk.cut);
	for (size_t bit = 0; bit < len * 8; bit++) {
		data[bit / 8] ^= (uint8_t)(1 << bit % 8);
		wrong_is_found &= peek(data, len, &chunk) < 0 || chunk.check != WIRE_CHECK_GOOD;
		data[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	check("no flipped bit goes unnoticed", wrong_is_found);
	while (!encode(data, small, true))
		small++;
	check("a buffer that is too small is full", small == len);
	len = encode(data, sizeof(data), false);
	check("a plain chunk",
	      len && peek(data, len, &chunk) == 1 && chunk.check == WIRE_CHECK_NONE);
	return test_result();
}

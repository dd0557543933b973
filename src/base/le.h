/* SPDX-License-Identifier: GPL-2.0-or-later */
/* le: numbers in files and in code that have the low byte first, on any machine. */
#ifndef KSCOPE_BASE_LE_H
#define KSCOPE_BASE_LE_H

#include <endian.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline uint16_t le16_at(const void *at)
{
	uint16_t value;

	memcpy(&value, at, sizeof(value));
	return le16toh(value);
}

static inline uint32_t le32_at(const void *at)
{
	uint32_t value;

	memcpy(&value, at, sizeof(value));
	return le32toh(value);
}

static inline uint64_t le64_at(const void *at)
{
	uint64_t value;

	memcpy(&value, at, sizeof(value));
	return le64toh(value);
}

/* Of up to 8 bytes. */
static inline uint64_t le_at(const void *at, size_t len)
{
	uint64_t value = 0;

	memcpy(&value, at, len);
	return le64toh(value);
}

#endif

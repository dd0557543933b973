// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/tar.h"

#include <stdio.h>
#include <string.h>

struct header {
	char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], sum[8], type, link[100];
	char magic[6], version[2], user[32], group[32], major[8], minor[8], prefix[155], pad[12];
};

_Static_assert(sizeof(struct header) == TAR_BLOCK, "a header is a block");

#define TYPE_FILE '0'
#define TYPE_OLD_FILE '\0'
#define SIZE_DIGITS 11
#define SIZE_BINARY 0x80 /* in the first byte: the rest is a binary number, as GNU tar writes it */

/* The sum of all bytes, with the field of the sum itself as spaces. */
static unsigned sum_of(const struct header *header)
{
	const uint8_t *bytes = (const uint8_t *)header;
	unsigned sum = 0;

	for (size_t i = 0; i < sizeof(*header); i++) {
		bool own = i >= offsetof(struct header, sum) && i < offsetof(struct header, type);

		sum += own ? ' ' : bytes[i];
	}
	return sum;
}

static bool has_magic(const struct header *header)
{
	return !memcmp(header->magic, "ustar", 5) && (!header->magic[5] || header->magic[5] == ' ');
}

/* ---- reading ---- */

/* Digits, then spaces or NULs. */
static bool get_octal(const char *field, size_t len, uint64_t *value)
{
	size_t i = 0;

	*value = 0;
	while (i < len && field[i] == ' ')
		i++;
	for (; i < len && field[i] >= '0' && field[i] <= '7'; i++)
		*value = *value << 3 | (uint64_t)(field[i] - '0');
	for (; i < len; i++) {
		if (field[i] != ' ' && field[i] != '\0')
			return false;
	}
	return true;
}

static bool get_size(const char field[12], uint64_t *value)
{
	if ((uint8_t)field[0] != SIZE_BINARY)
		return get_octal(field, 12, value);
	*value = 0;
	for (size_t i = 1; i < 12; i++) {
		if (*value >> 55)
			return false;
		*value = *value << 8 | (uint8_t)field[i];
	}
	return true;
}

static void get_name(const struct header *header, char name[TAR_NAME])
{
	bool old = header->magic[5] == ' '; /* GNU tar: no prefix, but other fields in its place */

	snprintf(name, TAR_NAME, "%.*s%s%.*s", old ? 0 : (int)sizeof(header->prefix),
		 header->prefix, !old && header->prefix[0] ? "/" : "", (int)sizeof(header->name),
		 header->name);
}

bool tar_name_fits(const char *name)
{
	size_t len = strlen(name);

	if (!len || len > sizeof(((struct header *)0)->name) || name[0] == '/')
		return false;
	for (const char *part = name; part; part = strchr(part, '/')) {
		part += *part == '/';
		if (!strncmp(part, "..", 2) && (!part[2] || part[2] == '/'))
			return false;
	}
	return true;
}

static const char *type_text(char type)
{
	switch (type) {
	case '1': return "a hard link";
	case '2': return "a symbolic link";
	case '3':
	case '4': return "a device";
	case '5': return "a directory";
	case '6': return "a pipe";
	default: return "a kind of member that kscope does not write";
	}
}

static int wrong(struct err *err, const struct in *in, uint64_t at, const char *what)
{
	return err_at(err, ERR_INPUT, in->path, at, "%s", what);
}

static bool is_zero(const uint8_t *block)
{
	for (size_t i = 0; i < TAR_BLOCK; i++) {
		if (block[i])
			return false;
	}
	return true;
}

static int check_header(const struct in *in, const struct header *header, struct tar_member *member,
			struct err *err)
{
	uint64_t sum;

	if (!has_magic(header) || !get_octal(header->sum, sizeof(header->sum), &sum) ||
	    sum != sum_of(header))
		return wrong(err, in, member->at, "this is no header of a tar file");
	get_name(header, member->name);
	if (header->type != TYPE_FILE && header->type != TYPE_OLD_FILE)
		return err_at(err, ERR_INPUT, in->path, member->at,
			      "'%s' is %s; an archive of kscope has only regular files",
			      member->name, type_text(header->type));
	if (!tar_name_fits(member->name))
		return err_at(err, ERR_INPUT, in->path, member->at,
			      "'%s' is not a name in an archive of kscope", member->name);
	if (!get_size(header->size, &member->size))
		return err_at(err, ERR_INPUT, in->path, member->at, "the size of '%s' is no number",
			      member->name);
	return 1;
}

int tar_next(struct in *in, struct tar_member *member, struct err *err)
{
	struct header header;
	const uint8_t *block;
	size_t have;

	member->at = in_offset(in);
	block = in_peek(in, TAR_BLOCK, &have);
	if (in->err.code) {
		*err = in->err;
		return -1;
	}
	if (have < TAR_BLOCK)
		return wrong(err, in, member->at + have, "the archive is cut short");
	if (is_zero(block))
		return 0;
	memcpy(&header, block, sizeof(header));
	in_skip(in, TAR_BLOCK);
	return check_header(in, &header, member, err);
}

bool tar_probe(const uint8_t *head, size_t len, const char *first)
{
	struct header header;

	if (len < sizeof(header))
		return false;
	memcpy(&header, head, sizeof(header));
	return has_magic(&header) && !strncmp(header.name, first, sizeof(header.name));
}

/* ---- writing ---- */

static void put_size(char field[12], uint64_t size)
{
	if (size < (uint64_t)1 << 3 * SIZE_DIGITS) {
		snprintf(field, 12, "%011llo", (unsigned long long)size);
		return;
	}
	field[0] = (char)SIZE_BINARY;
	for (size_t i = 11; i >= 1; i--, size >>= 8)
		field[i] = (char)(size & 0xff);
}

void tar_put_header(struct out *out, const char *name, uint64_t size)
{
	struct header header = {
		.mode = "0000644",
		.uid = "0000000",
		.gid = "0000000",
		.mtime = "00000000000",
		.type = TYPE_FILE,
		.magic = "ustar",
		.version = { '0', '0' },
	};

	memcpy(header.name, name, strnlen(name, sizeof(header.name)));
	put_size(header.size, size);
	snprintf(header.sum, sizeof(header.sum), "%06o", sum_of(&header));
	header.sum[7] = ' ';
	out_write(out, &header, sizeof(header));
}

static void put_zeros(struct out *out, size_t len)
{
	static const uint8_t zeros[2 * TAR_BLOCK];

	out_write(out, zeros, len);
}

void tar_put_padding(struct out *out, uint64_t size)
{
	put_zeros(out, tar_padding(size));
}

void tar_put_end(struct out *out)
{
	put_zeros(out, 2 * TAR_BLOCK);
}

// SPDX-License-Identifier: GPL-2.0-or-later
#include "read/kpdata_record.h"

#include <endian.h>
#include <string.h>

#define MAX_BODY (24 + 8 * (size_t)UINT16_MAX)
#define MAP_HEADER 36
#define PROCESS_HEADER 12
#define CHAIN 3			  /* records in a row that make a stretch of bytes believable */
#define SEARCH ((size_t)64 << 10) /* how much damage is looked through at a time */

/* Size of the header before the addresses; n is always its last field. */
static const uint8_t trace_header[KP_VERSIONS][3] = {
	[KP_V1] = { 0, 12, 16 },
	[KP_V2] = { 0, 20, 24 },
	[KP_V3] = { 0, 24, 24 },
};

uint64_t kp_u64(const uint8_t *at)
{
	uint64_t value;

	memcpy(&value, at, sizeof(value));
	return le64toh(value);
}

static uint32_t u32(const uint8_t *at)
{
	return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 |
	       (uint32_t)at[3] << 24;
}

static uint16_t u16(const uint8_t *at)
{
	return (uint16_t)(at[0] | at[1] << 8);
}

static enum kp_result bad(const char **why, const char *text)
{
	*why = text;
	return KP_BAD;
}

static bool trace_fits(const uint8_t *body, size_t size, size_t header)
{
	return size >= header && size == header + 8 * (size_t)u16(body + header - 2);
}

static void trace_fields(const uint8_t *body, enum kp_version version, struct kp_record *record)
{
	const uint8_t *at = body;
	size_t header = trace_header[version][record->type];

	if (version >= KP_V2) {
		record->info = kp_u64(at);
		at += 8;
	}
	record->time = kp_u64(at);
	if (record->type == KP_USER || version == KP_V3)
		record->pid = u32(at + 8);
	record->cpu = u16(body + header - 4);
	record->nr = u16(body + header - 2);
	record->content += header;
}

static enum kp_result parse_trace(const uint8_t *body, size_t size, enum kp_version version,
				  struct kp_record *record, const char **why)
{
	unsigned fits = 0;

	for (enum kp_version v = KP_V1; v < KP_VERSIONS; v++) {
		size_t header = trace_header[v][record->type];

		if (!trace_fits(body, size, header))
			continue;
		fits |= 1U << v;
		record->votes |= (unsigned)(size > header) << v;
	}
	if (!fits)
		return bad(why, "a trace whose size is not that of its addresses");
	if (version == KP_ANY)
		return KP_GOOD;
	if (!(fits & 1U << version))
		return bad(why, "a trace that is not of this file's version");
	trace_fields(body, version, record);
	return KP_GOOD;
}

static enum kp_result parse_named(const uint8_t *body, size_t size, size_t header,
				  struct kp_record *record, const char **why)
{
	const uint8_t *path = body + header;

	if (*path == '\0' || memchr(path, '\0', size - header) != body + size - 1)
		return bad(why, "a path that is empty or does not end with its record");
	record->time = kp_u64(body);
	record->pid = u32(body + header - 4);
	record->content += header;
	if (record->pid == KP_NO_PID)
		return bad(why, "a map or a name of no process");
	if (record->type == KP_MAP) {
		record->addr = kp_u64(body + 8);
		record->len = kp_u64(body + 16);
		record->offset = kp_u64(body + 24);
		if (record->len - 1 > UINT64_MAX - record->addr) /* none, or too much */
			return bad(why, "a map of an impossible length");
	}
	return KP_GOOD;
}

static size_t smallest_body(enum kp_type type)
{
	switch (type) {
	case KP_KERNEL: return 12;
	case KP_USER: return 16;
	case KP_MAP: return MAP_HEADER + 2;
	default: return PROCESS_HEADER + 2;
	}
}

/* The size of the body; sets record->content to where it starts. */
static enum kp_result parse_size(const uint8_t *data, size_t have, struct kp_record *record,
				 size_t *size, const char **why)
{
	size_t most = MAX_BODY, at = 1;

	if (record->type == KP_MAP || record->type == KP_PROCESS)
		most = smallest_body(record->type) + KP_MAX_PATH;
	*size = 0;
	do {
		if (at == have)
			return KP_CUT;
		if (at == 4) /* three times 7 bits are plenty */
			return bad(why, "a record that is longer than any can be");
		*size |= (size_t)(data[at] & 0x7f) << 7 * (at - 1);
	} while (data[at++] & 0x80);
	record->content = at;
	if (*size > most)
		return bad(why, "a record that is longer than any can be");
	if (*size < smallest_body(record->type))
		return bad(why, "a record that is shorter than any can be");
	return KP_GOOD;
}

enum kp_result kp_parse(const uint8_t *data, size_t have, enum kp_version version,
			struct kp_record *record, size_t *need, const char **why)
{
	enum kp_result ret;
	size_t size;

	*need = 8;
	*record = (struct kp_record){ .pid = KP_NO_PID };
	if (!have)
		return KP_CUT;
	if (data[0] < KP_KERNEL || data[0] > KP_PROCESS)
		return bad(why, "not a record");
	record->type = (enum kp_type)data[0];
	ret = parse_size(data, have, record, &size, why);
	if (ret != KP_GOOD)
		return ret;
	record->size = *need = record->content + size;
	if (have < record->size)
		return KP_CUT;
	data += record->content;
	if (record->type == KP_MAP)
		return parse_named(data, size, MAP_HEADER, record, why);
	if (record->type == KP_PROCESS)
		return parse_named(data, size, PROCESS_HEADER, record, why);
	return parse_trace(data, size, version, record, why);
}

/* Parses at offset + at. KP_CUT: the stream ends inside the record; KP_END: it ends before. */
static enum kp_result parse_at(const struct kp_bytes *bytes, uint64_t offset, size_t at,
			       enum kp_version version, struct kp_record *record, const char **why)
{
	size_t need = 8, want, have;

	for (;;) {
		const uint8_t *data = bytes->peek(bytes->ctx, offset, want = at + need, &have);
		enum kp_result ret;

		if (have <= at)
			return KP_END;
		ret = kp_parse(data + at, have - at, version, record, &need, why);
		if (ret != KP_CUT || have < want)
			return ret;
	}
}

static bool chain_at(const struct kp_bytes *bytes, uint64_t offset, size_t at,
		     enum kp_version version)
{
	struct kp_record record;
	const char *why;

	for (unsigned i = 0; i < CHAIN; i++) {
		enum kp_result ret = parse_at(bytes, offset, at, version, &record, &why);

		if (ret == KP_END)
			return i > 0;
		if (ret != KP_GOOD)
			return false;
		at += record.size;
	}
	return true;
}

/* The first place in [from, to) where records go on; `to` if there is none. */
static size_t search(const struct kp_bytes *bytes, uint64_t offset, size_t from, size_t to,
		     enum kp_version version)
{
	for (size_t at = from; at < to; at++) {
		size_t have;
		const uint8_t *data = bytes->peek(bytes->ctx, offset, to, &have);

		while (at < to && at < have && (data[at] < KP_KERNEL || data[at] > KP_PROCESS))
			at++;
		if (at >= have)
			return have;
		if (at < to && chain_at(bytes, offset, at, version))
			return at;
	}
	return to;
}

static void skip_damage(const struct kp_bytes *bytes, uint64_t offset, enum kp_version version,
			struct kp_step *step)
{
	size_t from = 1, found, have;

	step->what = KP_BAD;
	step->bytes = 0;
	do {
		found = search(bytes, offset + step->bytes, from, SEARCH, version);
		step->bytes += found;
		bytes->peek(bytes->ctx, offset + step->bytes, 1, &have);
		from = 0;
	} while (found == SEARCH && have);
}

/* Code of the kernel is in the upper half of the address space, and that of users in the lower. */
static bool has_odd_addresses(const uint8_t *data, const struct kp_record *record)
{
	uint64_t upper = record->type == KP_KERNEL ? UINT64_MAX >> 47 : 0;

	for (unsigned i = 0; i < record->nr; i++) {
		if (kp_u64(data + record->content + 8 * (size_t)i) >> 47 != upper)
			return true;
	}
	return false;
}

/*
 * A queue that overflowed dropped blocks from its front, one of them half read: a record then
 * breaks off and another begins inside what it claims to hold. What it holds then looks odd, or
 * what follows does.
 */
static bool is_suspect(const struct kp_bytes *bytes, uint64_t offset, enum kp_version version,
		       const struct kp_record *record)
{
	struct kp_record next;
	const char *why;
	size_t have;

	if (parse_at(bytes, offset, record->size, version, &next, &why) == KP_BAD)
		return true;
	return has_odd_addresses(bytes->peek(bytes->ctx, offset, record->size, &have), record);
}

/* True: records go on inside of this one. */
static bool breaks_off(const struct kp_bytes *bytes, uint64_t offset, enum kp_version version,
		       struct kp_step *step)
{
	size_t size = step->record.size, found = search(bytes, offset, 1, size, version);

	if (found == size)
		return false;
	step->what = KP_BAD;
	step->bytes = found;
	step->why = "a record breaks off and another begins";
	return true;
}

/* A record that is wrong inside, with another where it ends: no more than that one is lost. */
static bool is_framed(const struct kp_bytes *bytes, uint64_t offset, enum kp_version version,
		      struct kp_step *step)
{
	struct kp_record next;
	enum kp_result ret;
	const char *why;

	if (!step->record.size)
		return false;
	ret = parse_at(bytes, offset, step->record.size, version, &next, &why);
	step->bytes = step->record.size;
	return ret == KP_GOOD || ret == KP_END;
}

static void wrong_step(const struct kp_bytes *bytes, uint64_t offset, enum kp_version version,
		       struct kp_step *step)
{
	bool cut = step->what == KP_CUT;
	size_t have;

	if (!cut && is_framed(bytes, offset, version, step)) {
		breaks_off(bytes, offset, version, step);
		return;
	}
	skip_damage(bytes, offset, version, step);
	bytes->peek(bytes->ctx, offset + step->bytes, 1, &have);
	if (cut)
		step->why = have ? "a record that goes beyond the end of the file"
				 : "the file ends inside a record";
}

void kp_step(const struct kp_bytes *bytes, uint64_t offset, enum kp_version version,
	     struct kp_step *step)
{
	step->what = parse_at(bytes, offset, 0, version, &step->record, &step->why);
	if (step->what == KP_END)
		return;
	if (step->what != KP_GOOD) {
		wrong_step(bytes, offset, version, step);
		return;
	}
	step->bytes = step->record.size;
	if (is_suspect(bytes, offset, version, &step->record))
		breaks_off(bytes, offset, version, step);
}

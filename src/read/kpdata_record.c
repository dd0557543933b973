// SPDX-License-Identifier: GPL-2.0-or-later
#include "read/kpdata_record.h"

#define MAX_BODY (24 + 8 * (size_t)UINT16_MAX)
#define MAP_HEADER 36
#define PROCESS_HEADER 12
#define CHAIN 3			  /* consecutive records needed to resume after damage */
#define SEARCH ((size_t)64 << 10) /* bytes of damage to search at a time */

/* Layouts of a trace, by version and type. */
static const struct layout {
	uint32_t header; /* size of what precedes the addresses; its last field is n */
	uint32_t no_pid; /* KP_NO_PID if there is no pid, otherwise 0 */
} layouts[KP_VERSIONS][3] = {
	[KP_V1] = { [KP_KERNEL] = { 12, KP_NO_PID }, [KP_USER] = { 16, 0 } },
	[KP_V2] = { [KP_KERNEL] = { 20, KP_NO_PID }, [KP_USER] = { 24, 0 } },
	[KP_V3] = { [KP_KERNEL] = { 24, 0 }, [KP_USER] = { 24, 0 } },
};

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

static bool trace_fits(const uint8_t *body, size_t size, const struct layout *layout)
{
	size_t header = layout->header;

	return size >= header && size == header + 8 * (size_t)u16(body + header - 2);
}

static inline void trace_fields(const uint8_t *body, enum kp_version version,
				struct kp_record *record)
{
	const struct layout *layout = &layouts[version][record->type];
	const uint8_t *at = version == KP_V1 ? body : body + 8;

	record->info = version == KP_V1 ? 0 : kp_u64(body);
	record->time = kp_u64(at);
	record->pid = u32(at + 8) | layout->no_pid;
	record->cpu = u16(body + layout->header - 4);
	record->nr = u16(body + layout->header - 2);
	record->content = record->body + layout->header;
}

/*
 * A fast path for nearly all records: complete traces of this version, smaller than 16 KiB. Returns
 * false for anything else, which may still be a valid record.
 */
static inline bool parse_short_trace(const uint8_t *data, size_t have, enum kp_version version,
				     struct kp_record *record)
{
	size_t second, size;

	if (have < 3 || (data[0] != KP_KERNEL && data[0] != KP_USER) || data[1] & data[2] & 0x80)
		return false;
	second = data[1] >> 7; /* no branch on the length of the size field: it is unpredictable */
	size = (data[1] & 0x7f) | (data[2] & 0x7f & (0 - second)) << 7;
	record->type = (enum kp_type)data[0];
	record->body = 2 + second;
	record->size = record->body + size;
	if (version == KP_ANY || have < record->size ||
	    !trace_fits(data + record->body, size, &layouts[version][record->type]))
		return false;
	trace_fields(data + record->body, version, record);
	return true;
}

static enum kp_result parse_trace(const uint8_t *body, size_t size, enum kp_version version,
				  struct kp_record *record, const char **why)
{
	bool fits = false;

	if (version != KP_ANY && trace_fits(body, size, &layouts[version][record->type])) {
		trace_fields(body, version, record);
		return KP_GOOD;
	}
	for (enum kp_version v = KP_V1; v < KP_VERSIONS; v++) {
		const struct layout *layout = &layouts[v][record->type];

		if (!trace_fits(body, size, layout))
			continue;
		fits = true;
		record->votes |= (unsigned)(size > layout->header) << v;
	}
	if (!fits)
		return bad(why, "the size of a trace does not match its number of addresses");
	return version == KP_ANY ? KP_GOOD : bad(why, "a trace of another kpdata version");
}

static enum kp_result parse_named(const uint8_t *body, size_t size, size_t header,
				  struct kp_record *record, const char **why)
{
	const uint8_t *path = body + header;

	if (*path == '\0' || memchr(path, '\0', size - header) != body + size - 1)
		return bad(why, "a path is empty or does not end with its record");
	record->time = kp_u64(body);
	record->pid = u32(body + header - 4);
	record->content = record->body + header;
	if (record->pid == KP_NO_PID)
		return bad(why, "a map or process record without a pid");
	if (record->type == KP_MAP) {
		record->addr = kp_u64(body + 8);
		record->len = kp_u64(body + 16);
		record->offset = kp_u64(body + 24);
		if (record->len - 1 > UINT64_MAX - record->addr) /* also if len is 0 */
			return bad(why, "a map has an invalid length");
	}
	return KP_GOOD;
}

/* Limits of the size of a body. */
static const struct {
	size_t least, most;
} body_size[] = {
	[KP_KERNEL] = { 12, MAX_BODY },
	[KP_USER] = { 16, MAX_BODY },
	[KP_MAP] = { MAP_HEADER + 2, MAP_HEADER + 2 + KP_MAX_PATH },
	[KP_PROCESS] = { PROCESS_HEADER + 2, PROCESS_HEADER + 2 + KP_MAX_PATH },
};

/* Reads the size of the body, and sets record->body. */
static enum kp_result parse_size(const uint8_t *data, size_t have, struct kp_record *record,
				 size_t *size, const char **why)
{
	size_t at = 1;

	*size = 0;
	do {
		if (at == have)
			return KP_CUT;
		if (at == 4) /* MAX_BODY fits in 3 x 7 bits */
			return bad(why, "a record is too long");
		*size |= (size_t)(data[at] & 0x7f) << 7 * (at - 1);
	} while (data[at++] & 0x80);
	record->body = at;
	if (*size > body_size[record->type].most)
		return bad(why, "a record is too long");
	if (*size < body_size[record->type].least)
		return bad(why, "a record is too short");
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
		return bad(why, "unknown record type");
	record->type = (enum kp_type)data[0];
	ret = parse_size(data, have, record, &size, why);
	if (ret != KP_GOOD)
		return ret;
	record->size = *need = record->body + size;
	if (have < record->size)
		return KP_CUT;
	data += record->body;
	if (record->type == KP_MAP)
		return parse_named(data, size, MAP_HEADER, record, why);
	if (record->type == KP_PROCESS)
		return parse_named(data, size, PROCESS_HEADER, record, why);
	return parse_trace(data, size, version, record, why);
}

/* Parses at offset + at. KP_CUT: the stream ends inside the record; KP_END: before it. */
static enum kp_result parse_any_at(struct kp_bytes *bytes, uint64_t offset, size_t at,
				   enum kp_version version, struct kp_record *record,
				   const char **why)
{
	size_t need = 8, want, have;

	for (;;) {
		const uint8_t *data = kp_peek(bytes, offset, want = at + need, &have);
		enum kp_result ret;

		if (have <= at)
			return KP_END;
		ret = kp_parse(data + at, have - at, version, record, &need, why);
		if (ret != KP_CUT || have < want)
			return ret;
	}
}

static inline enum kp_result parse_at(struct kp_bytes *bytes, uint64_t offset, size_t at,
				      enum kp_version version, struct kp_record *record,
				      const char **why)
{
	size_t have;
	const uint8_t *data = kp_window(bytes, offset + at, &have);

	return parse_short_trace(data, have, version, record)
		       ? KP_GOOD
		       : parse_any_at(bytes, offset, at, version, record, why);
}

static bool chain_at(struct kp_bytes *bytes, uint64_t offset, size_t at, enum kp_version version)
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

/* Finds the first place in [from, to) where records resume. Returns `to` if there is none. */
static size_t search(struct kp_bytes *bytes, uint64_t offset, size_t from, size_t to,
		     enum kp_version version)
{
	for (size_t at = from; at < to; at++) {
		size_t have;
		const uint8_t *data = kp_peek(bytes, offset, to, &have);

		while (at < to && at < have && (data[at] < KP_KERNEL || data[at] > KP_PROCESS))
			at++;
		if (at >= have)
			return have;
		if (at < to && chain_at(bytes, offset, at, version))
			return at;
	}
	return to;
}

static void skip_damage(struct kp_bytes *bytes, uint64_t offset, enum kp_version version,
			struct kp_step *step)
{
	size_t from = 1, found, have;

	step->what = KP_BAD;
	step->bytes = 0;
	do {
		found = search(bytes, offset + step->bytes, from, SEARCH, version);
		step->bytes += found;
		kp_peek(bytes, offset + step->bytes, 1, &have);
		from = 0;
	} while (found == SEARCH && have);
}

/* Kernel code is in the upper half of the address space, user code in the lower half. */
static bool has_odd_addresses(const uint8_t *data, const struct kp_record *record)
{
	uint64_t upper = record->type == KP_KERNEL ? UINT64_MAX >> 47 : 0;
	const uint8_t *pc = data + record->content, *end = pc + 8 * (size_t)record->nr;

	for (; pc < end; pc += 8) {
		if (kp_u64(pc) >> 47 != upper)
			return true;
	}
	return false;
}

/*
 * When the kernel's queue overflowed, it dropped blocks from the front, even one that was partly
 * read. Such a record is cut off, and another one starts inside its claimed size. Then either its
 * addresses or the bytes after it look wrong.
 */
static bool is_suspect(struct kp_bytes *bytes, uint64_t offset, enum kp_version version,
		       struct kp_step *step)
{
	const struct kp_record *record = &step->record;
	enum kp_result next;
	const char *why;
	size_t have;

	next = parse_at(bytes, offset, record->size, version, &step->next, &why);
	step->knows_next = next == KP_GOOD;
	return next == KP_BAD ||
	       has_odd_addresses(kp_peek(bytes, offset, record->size, &have), record);
}

/* Returns true if other records start inside this one. */
static bool is_cut_off(struct kp_bytes *bytes, uint64_t offset, enum kp_version version,
		       struct kp_step *step)
{
	size_t size = step->record.size, found = search(bytes, offset, 1, size, version);

	if (found == size)
		return false;
	step->what = KP_BAD;
	step->bytes = found;
	step->why = "a record is cut off by another one";
	return true;
}

/* An invalid record with a valid one where it ends: only this one is lost. */
static bool is_framed(struct kp_bytes *bytes, uint64_t offset, enum kp_version version,
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

static void wrong_step(struct kp_bytes *bytes, uint64_t offset, enum kp_version version,
		       struct kp_step *step)
{
	bool cut = step->what == KP_CUT;
	size_t have;

	if (!cut && is_framed(bytes, offset, version, step)) {
		is_cut_off(bytes, offset, version, step);
		return;
	}
	skip_damage(bytes, offset, version, step);
	kp_peek(bytes, offset + step->bytes, 1, &have);
	if (cut)
		step->why = have ? "a record extends past the end of the file"
				 : "the file ends inside a record";
}

void kp_step(struct kp_bytes *bytes, uint64_t offset, enum kp_version version, bool trusted,
	     struct kp_step *step)
{
	if (step->knows_next) {
		step->what = KP_GOOD;
		step->record = step->next;
		step->knows_next = false;
	} else {
		step->what = parse_at(bytes, offset, 0, version, &step->record, &step->why);
	}
	if (step->what == KP_END)
		return;
	if (step->what != KP_GOOD) {
		wrong_step(bytes, offset, version, step);
		return;
	}
	step->bytes = step->record.size;
	if (!trusted && is_suspect(bytes, offset, version, step) &&
	    is_cut_off(bytes, offset, version, step))
		step->knows_next = false;
}

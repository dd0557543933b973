// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * perfdata_header: the header and feature sections around the records of a perf.data file, and the
 * records that replace them in a pipe. A damaged feature is skipped with a warning. A damaged
 * attribute is an error: without it samples cannot be parsed.
 */
#include "read/perfdata.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/store.h"

#define MAX_ATTRS 65536
#define MAX_FEATURE IN_MAX_PEEK
#define MAX_STREAMS 1024 /* one per thread of perf record */

static uint64_t reverse_bits(uint64_t value)
{
	uint64_t result = 0;

	for (int i = 0; i < 64; i++, value >>= 1)
		result = result << 1 | (value & 1);
	return result;
}

/* Big-endian machines allocate bit fields from the other end. One of these has two bits. */
static uint64_t big_flags(uint64_t flags)
{
	uint64_t bits = reverse_bits(flags), precise = bits >> PERF_ATTR_PRECISE_SHIFT & 3;

	if (precise == 1 || precise == 2)
		bits ^= 3ULL << PERF_ATTR_PRECISE_SHIFT;
	return bits;
}

/* Decodes an attribute of `len` bytes. Missing fields are 0, unknown ones are ignored. */
static struct perf_attr read_attr(const struct perfdata *p, const uint8_t *data, size_t len)
{
	struct perf_attr attr = { 0 };
	uint8_t bytes[sizeof(attr)] = { 0 };
	struct cursor c = { bytes, bytes + sizeof(bytes), p->swap, false };

	memcpy(bytes, data, len < sizeof(bytes) ? len : sizeof(bytes));
	attr.type = cursor_u32(&c);
	attr.size = cursor_u32(&c);
	attr.config = cursor_u64(&c);
	attr.sample_period = cursor_u64(&c);
	attr.sample_type = cursor_u64(&c);
	attr.read_format = cursor_u64(&c);
	attr.flags = cursor_u64(&c);
	if (p->big)
		attr.flags = big_flags(attr.flags);
	attr.wakeup_events = cursor_u32(&c);
	attr.bp_type = cursor_u32(&c);
	attr.config1 = cursor_u64(&c);
	attr.config2 = cursor_u64(&c);
	attr.branch_sample_type = cursor_u64(&c);
	attr.sample_regs_user = cursor_u64(&c);
	attr.sample_stack_user = cursor_u32(&c);
	attr.clockid = (int32_t)cursor_u32(&c);
	attr.sample_regs_intr = cursor_u64(&c);
	return attr;
}

static uint32_t place(uint64_t type, uint64_t field, uint32_t *at)
{
	if (!(type & field))
		return 0;
	*at += 8;
	return *at;
}

/* Offsets of the fields; the first one follows the 8 bytes of the record header. */
static void find_places(struct attr *attr)
{
	uint64_t type = attr->raw.sample_type;
	uint32_t at = 0, back = 0, id, identifier;

	identifier = place(type, PERF_SAMPLE_IDENTIFIER, &at);
	place(type, PERF_SAMPLE_IP, &at);
	place(type, PERF_SAMPLE_TID, &at);
	attr->sample_time = place(type, PERF_SAMPLE_TIME, &at);
	place(type, PERF_SAMPLE_ADDR, &at);
	id = place(type, PERF_SAMPLE_ID, &at);
	attr->sample_id = identifier ? identifier : id;
	if (!(attr->raw.flags & PERF_ATTR_SAMPLE_ID_ALL))
		return;
	identifier = place(type, PERF_SAMPLE_IDENTIFIER, &back);
	attr->back_cpu = place(type, PERF_SAMPLE_CPU, &back);
	place(type, PERF_SAMPLE_STREAM_ID, &back);
	id = place(type, PERF_SAMPLE_ID, &back);
	attr->back_id = identifier ? identifier : id;
	attr->back_time = place(type, PERF_SAMPLE_TIME, &back);
	attr->back_task = place(type, PERF_SAMPLE_TID, &back);
	attr->back_all = back;
}

static void add_attr(struct perfdata *p, const struct perf_attr *raw)
{
	struct attr attr = { .raw = *raw };

	find_places(&attr);
	GROW(p->attrs, p->nr_attrs + 1, p->cap_attrs);
	p->attrs[p->nr_attrs++] = attr;
}

void header_add_id(struct perfdata *p, uint64_t id, uint32_t attr)
{
	uint32_t *at = hash_at(&p->id_index, (struct hash_key){ id, 0 });

	if (!*at) {
		GROW(p->ids, p->nr_ids + 1, p->cap_ids);
		*at = (uint32_t)++p->nr_ids;
	}
	p->ids[*at - 1] = (struct known_id){ .attr = attr };
}

void header_release(struct perfdata *p)
{
	for (size_t i = 0; i < p->nr_attrs; i++) {
		free(p->attrs[i].name);
		free(p->attrs[i].unit);
	}
	for (size_t i = 0; i < p->nr_facts; i++)
		free(p->facts[i].value);
	free(p->attrs);
	free(p->facts);
	free(p->ids);
	free(p->build_ids);
	free(p->kallsyms);
	hash_release(&p->id_index);
	hash_release(&p->build_id_index);
}

/* ---- attributes as records ---- */

void header_name(struct perfdata *p, size_t attr, char *name)
{
	if (attr < p->nr_attrs && name && *name && !p->attrs[attr].name)
		p->attrs[attr].name = name;
	else
		free(name);
}

bool header_attr_record(struct perfdata *p, const struct record *rec)
{
	struct cursor c = record_body(p, rec), size_at = c;
	const uint8_t *raw;
	struct perf_attr attr;
	uint32_t size;

	cursor_u32(&size_at); /* type */
	size = cursor_u32(&size_at);
	if (!size)
		size = PERF_ATTR_SIZE_MIN;
	raw = cursor_bytes(&c, size);
	if (!raw || size < PERF_ATTR_SIZE_MIN || p->nr_attrs >= MAX_ATTRS)
		return false;
	attr = read_attr(p, raw, size);
	add_attr(p, &attr);
	while (c.end - c.at >= 8)
		header_add_id(p, cursor_u64(&c), (uint32_t)p->nr_attrs - 1);
	return true;
}

/* If the event was already emitted without its unit, emit it again. */
static void set_unit(struct perfdata *p, size_t attr, char *unit)
{
	if (attr >= p->nr_attrs || p->attrs[attr].unit || p->attrs[attr].scaled) {
		free(unit);
		return;
	}
	p->attrs[attr].unit = unit;
	if (p->told_attrs > attr)
		p->told_attrs = attr;
}

/* A scale: the unit is that of perf stat's output, such as ms of cpu-clock, not of weights. */
static void set_scaled(struct perfdata *p, size_t attr)
{
	if (attr >= p->nr_attrs)
		return;
	free(p->attrs[attr].unit);
	p->attrs[attr].unit = NULL;
	p->attrs[attr].scaled = true;
}

bool header_update_record(struct perfdata *p, const struct record *rec)
{
	struct cursor c = record_body(p, rec);
	uint64_t type = cursor_u64(&c), id = cursor_u64(&c);
	const struct known_id *known = c.bad ? NULL : header_id(p, id);
	char *text;

	if (c.bad)
		return false;
	if (!known || c.at == c.end)
		return true;
	if (type == PERF_EVENT_UPDATE_SCALE) {
		set_scaled(p, known->attr);
		return true;
	}
	text = xstrndup((const char *)c.at, strnlen((const char *)c.at, (size_t)(c.end - c.at)));
	if (type == PERF_EVENT_UPDATE_NAME)
		header_name(p, known->attr, text);
	else if (type == PERF_EVENT_UPDATE_UNIT && *text)
		set_unit(p, known->attr, text);
	else
		free(text);
	return true;
}

/* ---- the header of a file ---- */

/* Up to `size` bytes at `offset`, limited by the window; *have is how many. */
static const uint8_t *bytes_at(struct reader *r, uint64_t offset, uint64_t size, size_t *have)
{
	const uint8_t *data;

	if (in_seek(r->in, offset, &r->err) < 0)
		return NULL;
	data = in_peek(r->in, size > IN_MAX_PEEK ? IN_MAX_PEEK : (size_t)size, have);
	if (*have > size)
		*have = (size_t)size;
	return data;
}

static bool fits(struct perf_section section, uint64_t length)
{
	return section.offset <= length && section.size <= length - section.offset;
}

static struct perf_section take_section(struct cursor *c)
{
	struct perf_section section;

	section.offset = cursor_u64(c);
	section.size = cursor_u64(c);
	return section;
}

static int read_ids(struct reader *r, struct perf_section section, uint64_t length, uint32_t attr)
{
	struct perfdata *p = r->priv;
	struct cursor c = { .swap = p->swap };
	size_t have;

	if (!section.size)
		return 0;
	if (!fits(section, length) || section.size % 8)
		return err_at(&r->err, ERR_INPUT, r->in->path, section.offset,
			      "ids of event %" PRIu32 " (%" PRIu64
			      " bytes) are outside the file or incomplete",
			      attr, section.size);
	c.at = bytes_at(r, section.offset, section.size, &have);
	if (!c.at)
		return -1;
	c.end = c.at + have;
	while (c.end - c.at >= 8)
		header_add_id(p, cursor_u64(&c), attr);
	return 0;
}

static int read_attrs(struct reader *r, const struct perf_header *header, uint64_t length)
{
	struct perfdata *p = r->priv;
	uint64_t size = header->attr_size;
	uint64_t nr = size ? header->attrs.size / size : 0;
	size_t have;

	if (size < PERF_ATTR_SIZE_MIN + sizeof(struct perf_section) || size > 4096)
		return err_at(&r->err, ERR_INPUT, r->in->path,
			      offsetof(struct perf_header, attr_size),
			      "invalid event attribute size %" PRIu64, size);
	if (!fits(header->attrs, length) || nr > MAX_ATTRS)
		return err_at(&r->err, ERR_INPUT, r->in->path, header->attrs.offset,
			      "event attributes (%" PRIu64
			      " bytes) are outside the file or too many",
			      header->attrs.size);
	for (uint64_t i = 0; i < nr; i++) {
		const uint8_t *data = bytes_at(r, header->attrs.offset + i * size, size, &have);
		size_t len = (size_t)size - sizeof(struct perf_section);
		struct cursor c;
		struct perf_attr attr;

		if (!data)
			return -1;
		if (have < size) /* the file shrank while we read it */
			return err_at(&r->err, ERR_INPUT, r->in->path, header->attrs.offset,
				      "truncated event attributes");
		c = (struct cursor){ data + len, data + size, p->swap, false };
		attr = read_attr(p, data, len);
		add_attr(p, &attr);
		if (read_ids(r, take_section(&c), length, (uint32_t)i) < 0)
			return -1;
	}
	return 0;
}

static int read_feature_section(struct reader *r, unsigned bit, struct perf_section section,
				uint64_t length)
{
	struct perfdata *p = r->priv;
	struct cursor c = { .swap = p->swap };
	size_t have;

	if (!feature_wanted(bit) || !section.size)
		return 0;
	if (!fits(section, length) || section.size > MAX_FEATURE) {
		reader_missing(r,
			       "%s: byte %" PRIu64 ": feature %u (%" PRIu64
			       " bytes) is outside the file or too large; skipping it",
			       r->in->path, section.offset, bit, section.size);
		return 0;
	}
	c.at = bytes_at(r, section.offset, section.size, &have);
	if (!c.at)
		return -1;
	c.end = c.at + have;
	if (!feature_read(p, bit, &c))
		reader_missing(r, "%s: byte %" PRIu64 ": damaged feature %u; skipping it",
			       r->in->path, section.offset, bit);
	return 0;
}

/* Do we want any feature from this bit on? */
static bool some_wanted(const struct perf_header *header, unsigned bit)
{
	for (; bit < PERF_FEATURES; bit++) {
		if ((header->features[bit / 64] >> bit % 64 & 1) && feature_wanted(bit))
			return true;
	}
	return false;
}

/* The feature table follows the data: one section per bit, in the order of the bits. */
static int read_features(struct reader *r, const struct perf_header *header, uint64_t length)
{
	struct perfdata *p = r->priv;
	uint64_t table = header->data.offset + header->data.size;

	for (unsigned bit = 0; bit < PERF_FEATURES; bit++) {
		struct cursor c = { .swap = p->swap };
		size_t have;

		if (!(header->features[bit / 64] >> bit % 64 & 1))
			continue;
		c.at = bytes_at(r, table, sizeof(struct perf_section), &have);
		if (!c.at)
			return -1;
		c.end = c.at + have;
		if (have < sizeof(struct perf_section)) {
			/* toperf sets an unknown bit and writes no section for it. */
			if (some_wanted(header, bit))
				reader_missing(r,
					       "%s: byte %" PRIu64
					       ": truncated feature table; skipping features "
					       "from %u on",
					       r->in->path, table, bit);
			return 0;
		}
		if (read_feature_section(r, bit, take_section(&c), length) < 0)
			return -1;
		table += sizeof(struct perf_section);
	}
	return 0;
}

/* A 32-bit big-endian machine writes the bits in words of 4 bytes: swap the halves. perf always writes the host's name. */
static void settle_features(const struct perfdata *p, struct perf_header *header)
{
	uint64_t word = header->features[0];

	if (!p->swap || word >> PERF_FEATURE_HOSTNAME & 1 ||
	    !(word >> (32 + PERF_FEATURE_HOSTNAME) & 1))
		return;
	for (unsigned i = 0; i < 4; i++)
		header->features[i] = header->features[i] << 32 | header->features[i] >> 32;
}

static struct perf_header take_header(const struct perfdata *p, const uint8_t *data)
{
	struct cursor c = { data, data + sizeof(struct perf_header), p->swap, false };
	struct perf_header header = { 0 };

	memcpy(header.magic, cursor_bytes(&c, 8), 8);
	header.size = cursor_u64(&c);
	header.attr_size = cursor_u64(&c);
	header.attrs = take_section(&c);
	header.data = take_section(&c);
	header.event_types = take_section(&c);
	for (unsigned i = 0; i < 4; i++)
		header.features[i] = cursor_u64(&c);
	settle_features(p, &header);
	return header;
}

/* perf record wrote a directory: it may hold the kernel's symbols. */
static void find_folder(struct reader *r)
{
	struct perfdata *p = r->priv;
	size_t len = strlen(r->in->path);

	p->folder = len >= 5 && !strcmp(r->in->path + len - 5, "/data");
	if (!p->folder)
		return;
	p->kallsyms = xasprintf("%.*s/kcore_dir/kallsyms", (int)(len - 5), r->in->path);
	if (!store_has(r->store, p->kallsyms)) {
		free(p->kallsyms);
		p->kallsyms = NULL;
	}
}

/* perf record --threads: files without a header, data.0, data.1... */
static int open_streams(struct reader *r)
{
	struct perfdata *p = r->priv;

	for (unsigned i = 0; p->folder && i < MAX_STREAMS; i++) {
		char *path = xasprintf("%s.%u", r->in->path, i);
		struct stream *stream = &p->streams[p->nr_streams];
		int ret = 0;

		if (!store_has(r->store, path))
			i = MAX_STREAMS;
		else
			ret = store_in(r->store, &stream->own, path, &r->err);
		free(path);
		if (ret < 0)
			return -1;
		if (i == MAX_STREAMS)
			break;
		stream->in = &stream->own;
		stream->data_end = UINT64_MAX;
		p->nr_streams++;
	}
	return 0;
}

static int check_data(struct reader *r, const struct perf_header *header, uint64_t length)
{
	struct perfdata *p = r->priv;

	if (header->data.offset > length)
		return err_at(&r->err, ERR_INPUT, r->in->path, offsetof(struct perf_header, data),
			      "the data starts at byte %" PRIu64 ", but the file has only %" PRIu64
			      " bytes",
			      header->data.offset, length);
	if (!header->data.size) {
		p->streams->data_end = UINT64_MAX;
		if (length > header->data.offset)
			reader_missing(r,
				       "%s: perf record did not finish this file: reading the data "
				       "up to its end, without build IDs and event names",
				       r->in->path);
		return 0;
	}
	p->streams->data_end = header->data.size > UINT64_MAX - header->data.offset
				       ? UINT64_MAX
				       : header->data.offset + header->data.size;
	return 0;
}

static int read_file_header(struct reader *r)
{
	struct perfdata *p = r->priv;
	struct perf_header header;
	const uint8_t *data;
	uint64_t length;
	size_t have;

	if (in_length(r->in, &length, &r->err) < 0)
		return -1;
	data = bytes_at(r, 0, sizeof(header), &have);
	if (!data)
		return -1;
	if (have < sizeof(header))
		return err_at(&r->err, ERR_INPUT, r->in->path, have, "truncated header");
	header = take_header(p, data);
	find_folder(r);
	if (check_data(r, &header, length) < 0 || read_attrs(r, &header, length) < 0)
		return -1;
	if (header.data.size && p->streams->data_end <= length &&
	    read_features(r, &header, length) < 0)
		return -1;
	if (open_streams(r) < 0)
		return -1;
	p->data_start = header.data.offset;
	return in_seek(r->in, header.data.offset, &r->err);
}

int header_read(struct reader *r)
{
	struct perfdata *p = r->priv;
	size_t have;
	const uint8_t *head = in_peek(r->in, PERF_PIPE_HEADER, &have);
	const union {
		uint16_t word;
		uint8_t first;
	} order = { 1 };
	struct cursor c;
	uint64_t size;

	if (have < PERF_PIPE_HEADER)
		return err_at(&r->err, ERR_INPUT, r->in->path, have, "truncated header");
	if (!memcmp(head, "PERFFILE", 8))
		return err_at(&r->err, ERR_INPUT, r->in->path, 0,
			      "perf.data version 1 is not supported");
	p->streams = p->s = xcalloc(MAX_STREAMS + 1, sizeof(*p->streams));
	p->streams->in = r->in;
	p->nr_streams = 1;
	p->big = memcmp(head, PERF_MAGIC, 8) != 0;
	p->swap = p->big == (order.first == 1);
	c = (struct cursor){ head + 8, head + 16, p->swap, false };
	size = cursor_u64(&c);
	if (size == PERF_PIPE_HEADER) {
		p->pipe = true;
		p->streams->data_end = UINT64_MAX;
		in_skip(r->in, PERF_PIPE_HEADER);
		return 0;
	}
	if (size != sizeof(struct perf_header))
		return err_at(&r->err, ERR_INPUT, r->in->path, 8,
			      "invalid header size %" PRIu64 " (expected 104 or 16)", size);
	return read_file_header(r);
}

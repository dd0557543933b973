// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * perfdata_simple: what simpleperf, Android's profiler, adds to perf.data: records of its own, which can be
 * larger than perf's, and a feature with the names of events.
 */
#include "base/in.h"
#include "read/perfdata.h"

#define MAX_SPLIT IN_MAX_PEEK

bool simple_type(uint32_t type)
{
	return type >= SIMPLE_RECORD_KERNEL_SYMBOL && type <= SIMPLE_RECORD_DEBUG;
}

uint32_t simple_size(const struct record *rec)
{
	return (uint32_t)rec->misc << 16 | rec->size;
}

/* Pairs of an event's number and an id that it got while simpleperf recorded. */
static bool event_ids(struct perfdata *p, struct cursor c)
{
	uint64_t nr = cursor_u64(&c);

	if (c.bad || nr > (uint64_t)(c.end - c.at) / 16)
		return false;
	while (nr--) {
		uint64_t attr = cursor_u64(&c), id = cursor_u64(&c);

		if (attr >= p->nr_attrs)
			return false;
		header_add_id(p, id, (uint32_t)attr);
	}
	return true;
}

static bool tracing_data(struct perfdata *p, struct cursor c)
{
	uint32_t len = cursor_u32(&c);
	const uint8_t *data = cursor_bytes(&c, len);

	return data && (p->tracing.len || tracing_take(p, data, len));
}

/* A part of a record that is too large. Of these, only tracing data matters. */
static bool split(struct perfdata *p, struct cursor c)
{
	size_t len = (size_t)(c.end - c.at);

	if (len > MAX_SPLIT - p->split.len)
		return false;
	buf_add(&p->split, c.at, len);
	return true;
}

static bool split_end(struct perfdata *p)
{
	const uint8_t *data = (const uint8_t *)p->split.data;
	struct record rec;
	struct cursor c;
	bool good = p->split.len >= sizeof(struct perf_record);

	if (good) {
		rec = record_at(p, data, 0);
		good = simple_type(rec.type) && simple_size(&rec) == p->split.len;
	}
	if (good && rec.type == SIMPLE_RECORD_TRACING_DATA) {
		c = (struct cursor){ data + sizeof(struct perf_record), data + p->split.len,
				     p->swap, false };
		good = tracing_data(p, c);
	}
	buf_clear(&p->split);
	return good;
}

bool simple_record(struct perfdata *p, const struct record *rec)
{
	struct cursor c = record_body(p, rec);

	switch (rec->type) {
	case SIMPLE_RECORD_EVENT_ID: return event_ids(p, c);
	case SIMPLE_RECORD_TRACING_DATA: return tracing_data(p, c);
	case SIMPLE_RECORD_SPLIT: return split(p, c);
	case SIMPLE_RECORD_SPLIT_END: return split_end(p);
	}
	return true;
}

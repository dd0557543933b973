// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * perfdata_resync: finds where records resume after damage. Records have no mark, only a size:
 * several of them in a row, or up to the end of the data, are no coincidence.
 */
#include "read/perfdata.h"

#include <string.h>

#define PROOF 4			    /* records in a row */
#define LAST_PROOF 2		    /* the same, if the data ends with them */
#define REACH ((size_t)PROOF << 16) /* no more bytes are in them */
#define MISC_UNUSED 0x0ff8	    /* bits of misc that perf and Linux never set */
#define NO_TYPE 1024		    /* neither perf nor Linux will have as many types */
#define SIMPLE_TYPES 32768	    /* simpleperf's own begin here */

bool record_type_known(uint32_t type)
{
	return (type >= PERF_RECORD_MMAP && type <= PERF_RECORD_CALLCHAIN_DEFERRED) ||
	       (type >= PERF_RECORD_HEADER_ATTR && type < PERF_RECORD_KNOWN_USER_END) ||
	       simple_type(type);
}

bool resync_type(uint32_t type)
{
	return type < NO_TYPE || (type >= SIMPLE_TYPES && type < SIMPLE_TYPES + NO_TYPE);
}

static bool may_be_empty(uint32_t type)
{
	return type == PERF_RECORD_SWITCH || type == PERF_RECORD_FINISHED_ROUND ||
	       type == PERF_RECORD_FINISHED_INIT;
}

/* Data that its size does not count follows the record. */
static bool has_more(uint32_t type)
{
	return type == PERF_RECORD_AUXTRACE || type == PERF_RECORD_HEADER_TRACING_DATA;
}

static bool records_at(const struct perfdata *p, const uint8_t *at, size_t len, bool ended)
{
	unsigned nr;

	for (nr = 0; nr < PROOF && len >= sizeof(struct perf_record); nr++) {
		struct record rec = record_at(p, at, 0);

		if (!record_type_known(rec.type) || simple_type(rec.type) ||
		    rec.misc & MISC_UNUSED ||
		    rec.size < sizeof(struct perf_record) + 8 * !may_be_empty(rec.type) ||
		    rec.size % 8 || rec.size > len)
			return false;
		if (has_more(rec.type))
			return nr + 1 >= LAST_PROOF;
		at += rec.size;
		len -= rec.size;
	}
	return nr == PROOF || (ended && !len && nr >= LAST_PROOF);
}

bool resync_follows(const struct perfdata *p, const uint8_t *data, size_t len)
{
	return records_at(p, data, len, false);
}

/* For speed, before records_at(): most places cannot be a record. */
static inline bool may_begin(const struct perfdata *p, const uint8_t *at)
{
	struct perf_record head;

	memcpy(&head, at, sizeof(head));
	return (p->swap ? __builtin_bswap32(head.type) : head.type) < NO_TYPE && head.size;
}

bool resync_search(const struct perfdata *p, const uint8_t *data, size_t len, bool ended,
		   size_t *at)
{
	size_t end = ended ? len : len - REACH;

	for (*at = 0; *at < end; ++*at) {
		if (len - *at >= sizeof(struct perf_record) && may_begin(p, data + *at) &&
		    records_at(p, data + *at, len - *at, ended))
			return true;
	}
	return false;
}

static bool is_of_kernel(const struct record *rec)
{
	return rec->type < PERF_RECORD_HEADER_ATTR;
}

/* One of the kernel's records without a copy of memory, in which there may be anything. */
static bool is_plain(const struct perfdata *p, const struct record *rec)
{
	const struct attr *attr;

	if (rec->type != PERF_RECORD_SAMPLE)
		return is_of_kernel(rec) && record_type_known(rec->type) &&
		       rec->type != PERF_RECORD_TEXT_POKE;
	attr = record_attr(p, rec);
	return attr && !(attr->raw.sample_type &
			 (PERF_SAMPLE_RAW | PERF_SAMPLE_STACK_USER | PERF_SAMPLE_AUX));
}

/* The bytes after the record are not a record, or one of both sizes is not one that the kernel writes. */
static bool ends_wrong(const struct perfdata *p, const struct record *rec, size_t have)
{
	struct record next;

	if (have < rec->size + sizeof(struct perf_record) || has_more(rec->type))
		return false;
	next = record_at(p, rec->data + rec->size, 0);
	return !resync_type(next.type) || next.size < sizeof(struct perf_record) ||
	       (is_of_kernel(rec) && rec->size % 8) || (is_of_kernel(&next) && next.size % 8);
}

size_t resync_hidden(const struct perfdata *p, const struct record *rec, size_t have)
{
	bool wrong = ends_wrong(p, rec, have);
	size_t step = wrong ? 1 : 8;

	if (!wrong && !is_plain(p, rec))
		return 0;
	for (size_t at = step; at + PROOF * sizeof(struct perf_record) <= rec->size; at += step) {
		if (may_begin(p, rec->data + at) &&
		    records_at(p, rec->data + at, rec->size - at, false))
			return at;
	}
	return 0;
}

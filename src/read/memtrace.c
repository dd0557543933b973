// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * memtrace: what a Maestro kernel built with the feature `memtrace` sends over its second serial
 * port: for every alloc, realloc and free, a record of the allocator's name, the operation, the
 * pointer, the size and the stack. Serial lines lose bytes: the reader resumes at the next name.
 */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/mem.h"
#include "read/bare.h"

#define MAX_FRAMES 64
#define MAX_NAME 64
#define FIXED 19 /* bytes of a record besides the name and the frames */
#define RECORD_MAX (FIXED + 255 + 8 * 255)
#define MAX_SIZE ((uint64_t)1 << 52) /* bytes or pages; larger sizes are damage */
#define PAGE 4096
#define CUT READER_CUT
#define PROOF 3 /* valid records in a row that we require for an unknown allocator */

struct memtrace {
	struct bare bare;
	uint64_t ips[MAX_FRAMES];
	char name[MAX_NAME + 1];
};

struct record {
	const uint8_t *name;
	uint8_t name_len, op, nr;
	uint64_t ptr, size;
	const uint8_t *frames;
};

static bool name_plausible(const uint8_t *name, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (name[i] <= ' ' || name[i] >= 0x7f)
			return false;
	}
	return true;
}

/* Maestro's own allocators. */
static bool name_known(const uint8_t *name, size_t len)
{
	return (len == 6 && !memcmp(name, "malloc", 6)) || (len == 5 && !memcmp(name, "buddy", 5));
}

/* The record's length; 0: not a record, and *why says why; CUT: truncated. */
static size_t parse(const uint8_t *data, size_t len, struct record *rec, const char **why)
{
	size_t name_len = data[0], size;

	*why = "record has no valid allocator name";
	if (!name_len || name_len > MAX_NAME)
		return 0;
	if (!name_plausible(data + 1, len - 1 < name_len ? len - 1 : name_len))
		return 0;
	if (len < 2 + name_len)
		return CUT;
	*rec = (struct record){ .name = data + 1, .name_len = data[0], .op = data[1 + name_len] };
	*why = "unknown operation (expected alloc, realloc or free)";
	if (rec->op > 2)
		return 0;
	if (len < FIXED + name_len)
		return CUT;
	rec->ptr = bare_le64(data + 2 + name_len);
	rec->size = bare_le64(data + 10 + name_len);
	rec->nr = data[18 + name_len];
	rec->frames = data + FIXED + name_len;
	*why = "impossible allocation size";
	if (rec->size > MAX_SIZE)
		return 0;
	*why = "stack of more than 64 frames";
	if (rec->nr > MAX_FRAMES)
		return 0;
	size = FIXED + name_len + 8 * (size_t)rec->nr;
	return size > len ? CUT : size;
}

/* May this name an allocator we do not know, for example of a modified kernel? */
static bool name_likely(const uint8_t *name, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (!isalnum(name[i]) && !strchr("_-.:", name[i]))
			return false;
	}
	return len > 2;
}

/* Counts consecutive complete records, up to `most`. Returns `most` if they end with the data. */
static unsigned walk(const uint8_t *data, size_t len, unsigned most, bool *cut)
{
	struct record rec;
	const char *why;
	unsigned nr = 0;

	for (*cut = false; len && nr < most; nr++) {
		size_t size = parse(data, len, &rec, &why);

		*cut = size == CUT;
		if (!size || *cut || !name_likely(rec.name, rec.name_len))
			return nr;
		data += size;
		len -= size;
	}
	return most;
}

/* Does a record of a known allocator start here, or PROOF records of unknown ones? */
static bool begins(const uint8_t *data, size_t len)
{
	struct record rec;
	const char *why;
	bool cut;

	if (len > 6 && name_known(data + 1, data[0]))
		return parse(data, len, &rec, &why);
	return len && walk(data, len, PROOF, &cut) == PROOF;
}

static int memtrace_probe(const uint8_t *head, size_t len)
{
	bool cut;

	if (!begins(head, len))
		return 0;
	if (walk(head, len, 4, &cut) == 4)
		return 60;
	return cut ? 48 : 24;
}

static size_t record_size(const uint8_t *data, size_t len)
{
	struct record rec;
	const char *why;
	size_t size = parse(data, len, &rec, &why);

	return size && size != CUT && !name_likely(rec.name, rec.name_len) ? 0 : size;
}

static int memtrace_search(const uint8_t *data, size_t len)
{
	return reader_search(data, len, PROOF, record_size);
}

static int resync(struct reader *r, struct event *ev, const char *why)
{
	uint64_t start = in_offset(r->in);
	const uint8_t *data;
	size_t have;

	do {
		in_skip(r->in, 1);
		data = in_peek(r->in, RECORD_MAX, &have);
	} while (have && !begins(data, have));
	if (!why)
		why = have ? "record has missing bytes" : "truncated record";
	return reader_damage(r, ev, start, 1, in_offset(r->in) - start, "%s", why);
}

/*
 * If the line lost bytes, the record seems to reach into the next one: then no record starts
 * after it, but one starts inside it.
 */
static bool reaches_too_far(const uint8_t *data, size_t have, size_t size)
{
	struct record rec;
	const char *why;

	if (have == size || parse(data + size, have - size, &rec, &why))
		return false;
	for (size_t i = 1; i < size; i++) {
		if (begins(data + i, have - i))
			return true;
	}
	return false;
}

static void tell(struct memtrace *m, const struct record *rec, uint64_t offset, struct event *ev)
{
	static const enum alloc_op ops[] = { ALLOC_NEW, ALLOC_RESIZE, ALLOC_FREE };
	uint32_t nr = rec->nr;

	for (uint32_t i = 0; i < nr; i++)
		m->ips[i] = bare_le64(rec->frames + 8 * i);
	if (!nr)
		m->ips[nr++] = 0;
	memcpy(m->name, rec->name, rec->name_len);
	m->name[rec->name_len] = '\0';
	ev->kind = EVENT_ALLOC;
	ev->alloc = (struct event_alloc){
		.op = ops[rec->op],
		.allocator = m->name,
		.ptr = rec->ptr,
		/* The buddy allocator counts pages. */
		.size = rec->size * (!strcmp(m->name, "buddy") ? PAGE : 1),
		.offset = offset,
		.ips = m->ips,
		.nr = bare_chain(m->ips, nr),
		.context = IP_KERNEL,
	};
}

static int memtrace_next(struct reader *r, struct event *ev)
{
	struct memtrace *m = r->priv;
	const uint8_t *data;
	const char *why;
	struct record rec;
	size_t have, size;

	if (bare_tell(&m->bare, NULL, ev))
		return 1;
	data = in_peek(r->in, 2 * RECORD_MAX, &have);
	if (!have)
		return 0;
	size = parse(data, have, &rec, &why);
	if (!size)
		return resync(r, ev, why);
	if (size == CUT || reaches_too_far(data, have, size))
		return resync(r, ev, NULL);
	tell(m, &rec, in_offset(r->in), ev);
	in_skip(r->in, size);
	return 1;
}

const struct reader_ops read_memtrace = {
	.name = "memtrace",
	.about = "Maestro memtrace, allocations from its serial port",
	.probe = memtrace_probe,
	.search = memtrace_search,
	.priv_size = sizeof(struct memtrace),
	.next = memtrace_next,
};

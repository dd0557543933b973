// SPDX-License-Identifier: GPL-2.0-or-later
#include "read/perfdata_trace.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/le.h"
#include "base/mem.h"
#include "base/spool.h"
#include "pt/packet.h"

#define WINDOW ((size_t)64 << 10)
#define PADDED_TO 8    /* perf and the kernel pad a part to a multiple of as many bytes */
#define TIME_LOOK 4096 /* bytes in which to look for the first time */
#define MUCH ((uint64_t)1 << 20)
#define ENOUGH 32     /* equal bytes: a PSB packet, its time, and more */
#define FIRST_LOOK 64 /* bytes: almost always enough to tell two PSB packets by their times */

void trace_add(struct trace *trace, const struct trace_part *part)
{
	GROW(trace->parts, trace->nr + 1, trace->cap);
	trace->parts[trace->nr++] = *part;
}

void trace_release(struct trace *trace)
{
	free(trace->parts);
	*trace = (struct trace){ 0 };
}

/* A full trace */

static int by_offset(const void *a, const void *b)
{
	const struct trace_part *x = a, *y = b;

	return (x->offset > y->offset) - (x->offset < y->offset);
}

/*
 * Parts overlap because perf pads each to a multiple of 8 bytes, which the next offset does not count: so this
 * cuts the end of the earlier part.
 */
void trace_sort(struct trace *trace)
{
	struct trace_part *last = NULL;

	if (trace->nr)
		qsort(trace->parts, trace->nr, sizeof(*trace->parts), by_offset);
	for (size_t i = 0; i < trace->nr; i++) {
		struct trace_part *part = &trace->parts[i];

		if (last && part->offset + part->len <= last->offset + last->len) {
			part->len = 0;
			continue;
		}
		if (last && last->offset + last->len > part->offset)
			last->len = part->offset - last->offset;
		last = part;
	}
}

/* Snapshots */

/* Some bytes of a part that are in memory, and room to compare two parts. */
struct view {
	const struct trace_part *part;
	uint64_t at;
	size_t len;
	uint8_t bytes[WINDOW], a[WINDOW], b[WINDOW];
};

/* The bytes of the part from an offset on: at least `want`, unless it ends. */
static const uint8_t *look(struct view *view, const struct trace_part *part, uint64_t at,
			   size_t want, size_t *have)
{
	uint64_t left = part->len - at;

	if (want > left)
		want = (size_t)left;
	if (view->part != part || at < view->at || at - view->at > view->len ||
	    view->len - (at - view->at) < want) {
		view->part = part;
		view->at = at;
		view->len = in_copy(part->in, part->file_offset + at, view->bytes,
				    left < WINDOW ? (size_t)left : WINDOW);
	}
	*have = view->len - (size_t)(at - view->at);
	return view->bytes + (at - view->at);
}

/* The first PSB packet at an offset of the part or behind it; its length if there is none. */
static uint64_t find_psb(struct view *view, const struct trace_part *part, uint64_t at)
{
	while (at < part->len) {
		size_t have;
		const uint8_t *bytes = look(view, part, at, IPT_PSB_SIZE, &have), *psb;

		if (have < IPT_PSB_SIZE)
			break;
		psb = ipt_packet_find_psb(bytes, bytes + have);
		if (psb)
			return at + (uint64_t)(psb - bytes);
		at += have - IPT_PSB_SIZE + 1;
	}
	return part->len;
}

/* How many bytes of two parts are equal, from these offsets on. */
static uint64_t common(struct view *view, const struct trace_part *a, uint64_t at_a,
		       const struct trace_part *b, uint64_t at_b)
{
	uint64_t max = a->len - at_a < b->len - at_b ? a->len - at_a : b->len - at_b, done = 0;

	while (done < max) {
		size_t len = max - done < WINDOW ? (size_t)(max - done) : WINDOW, same = 0;

		if (in_copy(a->in, a->file_offset + at_a + done, view->a, len) < len ||
		    in_copy(b->in, b->file_offset + at_b + done, view->b, len) < len)
			break;
		while (same < len && view->a[same] == view->b[same])
			same++;
		done += same;
		if (same < len)
			break;
	}
	return done;
}

/* Whether all bytes before these offsets are equal, as far as both parts have some. Adds how many were compared. */
static bool agree_before(struct view *view, const struct trace_part *a, uint64_t at_a,
			 const struct trace_part *b, uint64_t at_b, uint64_t *compared)
{
	struct trace_part x = *a, y = *b;
	uint64_t left = at_a < at_b ? at_a : at_b;

	for (size_t step = FIRST_LOOK; left; step = step * 8 < WINDOW ? step * 8 : WINDOW) {
		size_t len = left < step ? (size_t)left : step;

		x.len = at_a;
		y.len = at_b;
		*compared += len;
		if (common(view, &x, at_a - len, &y, at_b - len) < len)
			return false;
		at_a -= len;
		at_b -= len;
		left -= len;
	}
	return true;
}

/* Whether a part has only padding from an offset on. */
static bool is_padding(const struct trace_part *part, uint64_t at)
{
	static const uint8_t zeros[PADDED_TO];
	uint8_t rest[PADDED_TO];
	size_t len = (size_t)(part->len - at);

	return part->len - at < PADDED_TO &&
	       in_copy(part->in, part->file_offset + at, rest, len) == len &&
	       !memcmp(rest, zeros, len);
}

static uint64_t find_last_psb(struct view *view, const struct trace_part *part)
{
	uint64_t at = find_psb(view, part, 0), last = at;

	while (at < part->len) {
		last = at;
		at = find_psb(view, part, at + IPT_PSB_SIZE);
	}
	return last;
}

/*
 * Whether the end of one part is also in the next one. Sets the offsets at which the first ends, and the second goes
 * on. Searches for the last PSB packet of the first part. Its time may be missing or cut off, so all bytes that
 * both have must be equal. A crafted file can have many near matches: then this gives up.
 */
static bool find_overlap(struct view *view, const struct trace_part *a, const struct trace_part *b,
			 uint64_t *end_of_a, uint64_t *start_of_b)
{
	uint64_t last = find_last_psb(view, a), compared = 0;
	uint8_t start[FIRST_LOOK];
	size_t nr = a->len - last < sizeof(start) + PADDED_TO ? IPT_PSB_SIZE : sizeof(start);

	if (last == a->len || in_copy(a->in, a->file_offset + last, start, nr) < nr)
		return false;
	for (uint64_t at = find_psb(view, b, 0); at < b->len && compared <= 2 * a->len + MUCH;
	     at = find_psb(view, b, at + IPT_PSB_SIZE)) {
		size_t have;
		const uint8_t *bytes = look(view, b, at, nr, &have);
		uint64_t same;

		if (have >= nr && memcmp(bytes, start, nr) != 0)
			continue;
		same = common(view, a, last, b, at);
		*end_of_a = last + same;
		*start_of_b = at + same;
		if (same + (last < at ? last : at) < ENOUGH)
			continue;
		if (at <= last && is_padding(b, at + same)) { /* nothing is new */
			*end_of_a = a->len;
			*start_of_b = b->len;
		} else if (!is_padding(a, last + same)) {
			continue;
		}
		if (agree_before(view, a, last, b, at, &compared))
			return true;
	}
	return false;
}

void trace_lay_out(struct trace *trace)
{
	struct view *view = xcalloc(1, sizeof(*view));
	struct trace_part whole, before = { 0 }; /* a part, with what it repeats */
	struct trace_part *last = NULL;		 /* that part, without */
	uint64_t repeats = 0, position = 0;	 /* repeats: bytes */

	for (size_t i = 0; i < trace->nr; i++) {
		struct trace_part *part = &trace->parts[i];
		uint64_t end, start = 0;

		whole = *part;
		view->part = NULL;
		if (last && find_overlap(view, &before, &whole, &end, &start)) {
			last->len = end > repeats ? end - repeats : 0;
			position = last->offset + last->len;
			part->file_offset += start;
			part->len -= start;
		} else {
			start = 0;
			position += i > 0; /* a hole */
		}
		part->offset = part->len || !last ? position : last->offset;
		position += part->len;
		if (part->len) {
			last = part;
			before = whole;
			repeats = start;
		}
	}
	free(view);
}

/* Lookups */

const struct trace_part *trace_at(const struct trace *trace, uint64_t position)
{
	size_t low = 0, high = trace->nr;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (trace->parts[middle].offset <= position)
			low = middle + 1;
		else
			high = middle;
	}
	while (low && !trace->parts[low - 1].len)
		low--;
	return low ? &trace->parts[low - 1] : NULL;
}

bool trace_read(const struct trace *trace, uint64_t position, uint8_t *to, size_t len)
{
	while (len) {
		const struct trace_part *part = trace_at(trace, position);
		uint64_t skip = part ? position - part->offset : 0;
		size_t some;

		if (!part || skip >= part->len)
			return false;
		some = part->len - skip < len ? (size_t)(part->len - skip) : len;
		if (in_copy(part->in, part->file_offset + skip, to, some) < some)
			return false;
		to += some;
		position += some;
		len -= some;
	}
	return true;
}

uint64_t trace_first_time(const struct trace *trace)
{
	uint8_t bytes[TIME_LOOK + IPT_LONGEST] = { 0 };
	const struct trace_part *part = trace->parts;
	size_t len = trace->nr && part->len < TIME_LOOK ? (size_t)part->len : TIME_LOOK;
	const uint8_t *at, *end = bytes + len;
	struct ipt_packet packet;
	uint64_t tsc = 0;

	if (!trace->nr || !trace_read(trace, part->offset, bytes, len))
		return 0;
	at = ipt_packet_find_psb(bytes, end);
	while (at && at < end) {
		if (*at == 0x19 && end - at >= 8)
			tsc = le64_at(at);
		if (ipt_packet_read(at, end, &packet) <= 0 || packet.kind == IPT_PSBEND)
			break;
		if (packet.kind == IPT_PIP && packet.other) /* it was the guest's */
			return 0;
		at += packet.size;
	}
	return tsc >> 8;
}

/* Bytes that have no place of their own in the file */

int trace_spool_add(struct trace_spool *spool, struct trace_part *part, const uint8_t *bytes,
		    struct err *err)
{
	int failed, fd;

	if (!spool->in.path) {
		fd = spool_file();
		if (fd < 0)
			return err_set(err, ERR_INPUT, "cannot create a temporary file in %s: %s",
				       spool_folder(), strerror(errno));
		if (in_open_fd(&spool->in, fd, "samples", err) < 0)
			return -1;
	}
	failed = fd_write(spool->in.fd, bytes, (size_t)part->len);
	if (failed)
		return err_set(err, ERR_INPUT, "cannot write a temporary file in %s: %s",
			       spool_folder(), strerror(failed));
	part->in = &spool->in;
	part->file_offset = spool->len;
	spool->len += part->len;
	return 0;
}

void trace_spool_close(struct trace_spool *spool)
{
	if (spool->in.path)
		in_close(&spool->in);
}
